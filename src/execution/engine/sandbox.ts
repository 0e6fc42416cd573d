import { WITHOUT_BLOOM_FILTERS } from '../../connectors/spi/parquet-scan.ts'

/** The resources that an engine may use; applied once as settings, before the lock. */
export interface SandboxLimits {
  readonly spillFolder: string
  /** Absolute, with trailing slash. */
  readonly allowedDirectories: readonly string[]
  readonly memoryLimitBytes: number
  readonly maxSpillBytes: number
  readonly threads: number
}

/** DuckDB refuses deeper expressions in milliseconds; planning them would take exponential time. */
const MAX_EXPRESSION_DEPTH = 250

/**
 * Settings that rendered statements rely on: other values would change their meaning. Applied before the lock, on every
 * instance.
 */
export const languageSettings: readonly string[] = [
  "SET GLOBAL TimeZone='UTC'",
  // Renderings sort by arguments; max(x, 3) and map_agg then sort by a literal too, which has no effect.
  'SET GLOBAL order_by_non_integer_literal=true',
  // common_subexpressions computes for all rows what TRY and COALESCE compute only under an earlier condition.
  // filter_pullup moves a filter behind an outer filter, which may then fail for rows that the inner filter removes.
  "SET GLOBAL disabled_optimizers='common_subexpressions,filter_pullup'",
]

/**
 * The settings of an engine in the order in which they must run. Folders come before `enable_external_access`, which
 * cannot be changed back while the instance lives. The lock comes last and holds for every connection, so all settings
 * are global.
 */
export function sandboxSettings(limits: SandboxLimits): string[] {
  return [
    `SET GLOBAL temp_directory=${quote(limits.spillFolder)}`,
    `SET GLOBAL allowed_directories=[${limits.allowedDirectories.map(quote).join(', ')}]`,
    'SET GLOBAL enable_external_access=false',
    'SET GLOBAL autoinstall_known_extensions=false',
    'SET GLOBAL autoload_known_extensions=false',
    'SET GLOBAL allow_community_extensions=false',
    'SET GLOBAL allow_persistent_secrets=false',
    `SET GLOBAL memory_limit='${Math.floor(limits.memoryLimitBytes)}B'`,
    `SET GLOBAL max_temp_directory_size='${Math.floor(limits.maxSpillBytes)}B'`,
    `SET GLOBAL threads=${limits.threads}`,
    `SET GLOBAL max_expression_depth=${MAX_EXPRESSION_DEPTH}`,
    // Scans may return rows in any order; ORDER BY still holds. This gives faster first rows, a third of the memory,
    // and a COPY that can be interrupted.
    'SET GLOBAL preserve_insertion_order=false',
    ...languageSettings,
    'SET GLOBAL lock_configuration=true',
  ]
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/**
 * Hard limit on the data memory of an engine's process (RLIMIT_DATA, and the resident size above which the parent kills
 * it), bytes. It is above DuckDB's own limit, which does not cover planning and single large values.
 */
export function processMemoryLimit(memoryLimitBytes: number): number {
  return Math.floor(memoryLimitBytes * 1.5) + 512 * 1024 * 1024
}

/**
 * Resident memory above which an idle engine is replaced, bytes: DuckDB's cache, the program itself, and fragmentation.
 * Above it the next statement could be blamed for memory that earlier statements left.
 */
export function restingMemoryLimit(memoryLimitBytes: number): number {
  return memoryLimitBytes + 256 * 1024 * 1024
}

/** `COPY` of a statement's rows as lines `[…],\n` into a FIFO: no quoting, since JSON text has no line end. */
export function copyToFifo(sql: string, fifo: string): string {
  return (
    `COPY (SELECT "$row" || ',' FROM (${sql}\n) AS "$rows"("$row")) TO ${quote(fifo)} ` +
    String.raw`(FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER E'\x01')`
  )
}

/**
 * `COPY` of any SELECT's rows into Parquet files of a folder; its result is a row of figures for each file. File names
 * are new each time, so files that a killed engine left in the folder do not conflict.
 */
export function copyToParquet(sql: string, folder: string): string {
  return (
    `COPY (SELECT * FROM (${sql}\n) AS "$rows") TO ${quote(folder)} (FORMAT parquet, COMPRESSION zstd, RETURN_STATS true, ` +
    // Some filters would give wrong answers: see `bloomFilterMisleads`.
    `WRITE_BLOOM_FILTER false, FILE_SIZE_BYTES '${TABLE_FILE_BYTES}B', FILENAME_PATTERN '${WITHOUT_BLOOM_FILTERS}{uuidv7}', OVERWRITE_OR_IGNORE true)`
  )
}

/** Files of tables are cut at about this size, bytes. */
const TABLE_FILE_BYTES = 128 * 1024 * 1024

/** The metrics that `profile.ts` reads; all other metrics together would double the cost of profiling. */
const PROFILED = ['OPERATOR_TYPE', 'OPERATOR_NAME', 'OPERATOR_TIMING', 'OPERATOR_CARDINALITY', 'EXTRA_INFO', 'CPU_TIME']

export function enableProfiling(file: string): string {
  const metrics = PROFILED.map(quote).join(', ')
  return `CALL enable_profiling(format := 'json', save_location := ${quote(file)}, metrics := [${metrics}])`
}
