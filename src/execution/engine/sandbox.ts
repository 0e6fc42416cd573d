import { WITHOUT_BLOOM_FILTERS } from '../../connectors/spi/parquet-scan.ts'

/** What an engine may use; turned into settings once, before the lock. */
export interface SandboxLimits {
  readonly spillFolder: string
  /** Absolute, with trailing slash. */
  readonly allowedDirectories: readonly string[]
  readonly memoryLimitBytes: number
  readonly maxSpillBytes: number
  readonly threads: number
}

/** Deeper expressions plan exponentially long: DuckDB refuses them in milliseconds. */
const MAX_EXPRESSION_DEPTH = 250

/** Settings that rendered statements count on: with others they would mean something else. Before the lock, on every instance. */
export const languageSettings: readonly string[] = [
  "SET GLOBAL TimeZone='UTC'",
  // Renderings sort by arguments: max(x, 3) and map_agg by a literal too, which orders nothing.
  'SET GLOBAL order_by_non_integer_literal=true',
  // The one calculates what TRY and COALESCE ask under a condition before them, for all rows; the other puts a filter
  // behind one around it that may fail for the rows it removes.
  "SET GLOBAL disabled_optimizers='common_subexpressions,filter_pullup'",
]

/**
 * The settings of an engine in the order they must run. Folders come before `enable_external_access`, which is final
 * while the instance lives; the lock comes last and holds for every connection, so all of it is global.
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
    // Scan order is free, ORDER BY holds: faster first rows, a third of the memory, a COPY that can be interrupted.
    'SET GLOBAL preserve_insertion_order=false',
    ...languageSettings,
    'SET GLOBAL lock_configuration=true',
  ]
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/**
 * Hard limit on the data memory of an engine's process (RLIMIT_DATA, and the resident size at which the parent kills):
 * above DuckDB's own limit, since planning and single large values are outside of that.
 */
export function processMemoryLimit(memoryLimitBytes: number): number {
  return Math.floor(memoryLimitBytes * 1.5) + 512 * 1024 * 1024
}

/**
 * Resident memory above which an engine with nothing to do is replaced: DuckDB's cache, the program itself, and what
 * fragmentation adds. Above it the next statement could be blamed for what others left.
 */
export function restingMemoryLimit(memoryLimitBytes: number): number {
  return memoryLimitBytes + 256 * 1024 * 1024
}

/** `COPY` of a statement's rows as lines `[…],\n` into a FIFO: no quoting, since JSON text holds no line end. */
export function copyToFifo(sql: string, fifo: string): string {
  return (
    `COPY (SELECT "$row" || ',' FROM (${sql}\n) AS "$rows"("$row")) TO ${quote(fifo)} ` +
    String.raw`(FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER E'\x01')`
  )
}

/**
 * `COPY` of any SELECT's rows into Parquet files of a folder; its result is a row of figures for each file. Names are made
 * up anew each time: what an engine that was killed has left there is in nobody's way.
 */
export function copyToParquet(sql: string, folder: string): string {
  return (
    `COPY (SELECT * FROM (${sql}\n) AS "$rows") TO ${quote(folder)} (FORMAT parquet, COMPRESSION zstd, RETURN_STATS true, ` +
    // Some would answer wrongly: see `bloomFilterMisleads`.
    `WRITE_BLOOM_FILTER false, FILE_SIZE_BYTES '${TABLE_FILE_BYTES}B', FILENAME_PATTERN '${WITHOUT_BLOOM_FILTERS}{uuidv7}', OVERWRITE_OR_IGNORE true)`
  )
}

/** Files of tables are cut at about this size. */
const TABLE_FILE_BYTES = 128 * 1024 * 1024

/** What is read of a profile (`profile.ts`); all the rest costs as much again as the profiler does. */
const PROFILED = ['OPERATOR_TYPE', 'OPERATOR_NAME', 'OPERATOR_TIMING', 'OPERATOR_CARDINALITY', 'EXTRA_INFO', 'CPU_TIME']

export function enableProfiling(file: string): string {
  const metrics = PROFILED.map(quote).join(', ')
  return `CALL enable_profiling(format := 'json', save_location := ${quote(file)}, metrics := [${metrics}])`
}
