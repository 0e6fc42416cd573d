/** DuckDB's SQL for scans and for questions about files. The engine's process makes it from data alone. */
import { columnType } from '../../connectors/spi/column-type.ts'
import { quoteName, quoteText } from '../../connectors/spi/duckdb-text.ts'
import { parseDuckDbType } from '../../connectors/spi/duckdb-type-text.ts'
import { FILE_INDEX, type ParquetRange } from '../../connectors/spi/parquet-scan.ts'
import { changedFilesText } from './changed-files-text.ts'
import { fileText, joinTouching, readerText, wholeNumberText } from './reader-text.ts'
import type {
  CsvPart,
  FileColumn,
  FileQuestion,
  FootersQuestion,
  JsonPart,
  ParquetPart,
  RowsPart,
  TablePart,
  TableSource,
  TextQuestion,
} from '../../connectors/spi/table-source.ts'
import type { CsvDialect } from '../../connectors/spi/text-file.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { RefusedStatement } from './statement-tokens.ts'
import { checkType } from './statement-wall.ts'

/**
 * A SELECT without parameters that gives the rows of the source, in its columns.
 * @throws RefusedStatement when the text of a type is not a type, or a number is not a whole number
 */
export function scanText(source: TableSource): string {
  const csvFiles = source.filter(({ kind }) => kind === 'csv').length
  return source.map((part) => partText(part, csvFiles)).join(' UNION ALL ')
}

/**
 * DuckDB's default buffer for each CSV file. It holds the buffers of all files of a scan from planning on, whatever
 * their sizes.
 */
const CSV_BUFFER_BYTES = 32_000_000
/** For all CSV files of a scan together, as long as each share holds DuckDB's longest line. */
const CSV_BUFFERS_BYTES = 128_000_000
const CSV_LINE_BYTES = 2_000_000
/** For a file that is empty or very small. */
const LEAST_BUFFER_BYTES = 1000

/** How much of a CSV file is read at a time, bytes. */
function csvBufferBytes({ path, bytes }: CsvPart, files: number): number {
  const share = Math.floor(Math.min(CSV_BUFFER_BYTES, Math.max(CSV_LINE_BYTES, CSV_BUFFERS_BYTES / files)))
  return isGzip(path) ? share : Math.min(share, Math.max(LEAST_BUFFER_BYTES, bytes))
}

/**
 * A query that opens each of these files without reading them: DuckDB reports files that it may not open.
 * @throws RefusedStatement
 */
export function openedText(paths: readonly string[]): string {
  return `SELECT count(size) FROM read_blob([${paths.map(fileText).join(', ')}])`
}

/**
 * A query that reads the footer of each of these Parquet files.
 * @throws RefusedStatement
 */
export function footersText(paths: readonly string[]): string {
  return `SELECT count(*) FROM parquet_file_metadata([${paths.map(fileText).join(', ')}])`
}

/** @throws RefusedStatement */
export function questionText(question: Exclude<FileQuestion, FootersQuestion | TextQuestion>): string {
  const list = `[${question.paths.map(fileText).join(', ')}]`
  switch (question.kind) {
    case 'columnStatistics':
      return statisticsText(list)
    case 'changedRows':
      return changedRowsText(readerText('parquet', list), question.mayRepeat)
    case 'repeatedChanges':
      return `SELECT 1 AS repeated FROM ${readerText('parquet', list)} WHERE "$file" IS NOT NULL AND "$case" IS NOT NULL
        GROUP BY "$file", "$row", "$case" HAVING count(*) > 1 LIMIT 1`
    case 'columns': {
      const options = question.unionByName ? ['union_by_name=true'] : []
      return `SELECT column_name, column_type FROM (DESCRIBE FROM ${readerText('parquet', list, options)})`
    }
    default:
      return unreachable(question)
  }
}

function changedRowsText(reader: string, mayRepeat: boolean): string {
  const removes = '"$file" IS NOT NULL AND "$live" IS NOT NULL'
  const counts = `SELECT ${FILE_INDEX} AS change, "$file" AS file, count(*) FILTER (${removes}) AS removed,
      count(*) FILTER ("$live") AS live, count("$live") AS acting FROM ${reader} GROUP BY ALL`
  if (!mayRepeat) return counts
  const first = `SELECT min(${FILE_INDEX}) AS change, "$file" AS file FROM ${reader} WHERE ${removes} GROUP BY "$file", "$row"`
  return `SELECT c.change, c.file, coalesce(r.removed, 0) AS removed, c.live, c.acting FROM (${counts}) AS c
    LEFT JOIN (SELECT change, file, count(*) AS removed FROM (${first}) GROUP BY ALL) AS r
    ON r.change = c.change AND r.file = c.file`
}

function isGzip(path: string): boolean {
  return /\.gz$/i.test(path)
}

/** @param list files, as `fileText` names them */
function statisticsText(list: string): string {
  // A dictionary may hold more values than the column, as that of an ENUM does; the footer then does not call its
  // bounds exact.
  const different = 'max(stats_distinct_count) FILTER (min_is_exact AND max_is_exact)'
  const number = (bound: string): string => `TRY_CAST(${bound} AS DOUBLE)`
  const date = (bound: string): string => `TRY_CAST(${bound} AS DATE)`
  const [low, high] = ['stats_min_value', 'stats_max_value']
  return `SELECT lower(path_in_schema) AS name, sum(row_group_num_rows) AS rows,
      count(*) = count(DISTINCT (file_name, row_group_id)) AS single,
      CASE WHEN count(*) = count(stats_null_count) THEN sum(stats_null_count) END AS nulls,
      CASE WHEN count(*) = 1 THEN ${different} END AS different, ${different} AS least_different,
      sum(total_compressed_size) AS bytes,
      ${boundText('min', number(low))} AS low, ${boundText('max', number(high))} AS high,
      ${boundText('min', date(low))} - DATE '1970-01-01' AS low_day,
      ${boundText('max', date(high))} - DATE '1970-01-01' AS high_day
    FROM parquet_metadata(${list}) GROUP BY lower(path_in_schema)`
}

/** The least or largest value of all row groups; NULL where a row group with values has no bound, or no finite one. */
function boundText(of: 'min' | 'max', value: string): string {
  const known = `bool_and(coalesce(stats_null_count = num_values, false) OR coalesce(isfinite(${value}), false))`
  return `CASE WHEN ${known} THEN ${of}(${value}) END`
}

function partText(part: TablePart, csvFiles: number): string {
  switch (part.kind) {
    case 'parquet':
      return parquetText(part).join(' UNION ALL ')
    case 'csv':
      return csvText(part, csvFiles)
    case 'json':
      return jsonText(part)
    case 'rows':
      return rowsText(part)
    case 'empty':
      return `SELECT ${part.columns.map(({ name, type }) => `${castText('NULL', type)} AS ${quoteName(name)}`).join(', ') || ONE} WHERE false`
    default:
      return unreachable(part)
  }
}

/**
 * With more partitions than this, one reader reads all files and joins the partitions' values: each reader keeps a file
 * open.
 */
const MOST_READERS = 32

/** SELECTs that give exactly the rows of the part. */
function parquetText({ ranges, columns, rowIds = false }: ParquetPart): readonly string[] {
  const isChanged = ({ liveOnly, removedBy }: ParquetRange): boolean => rowIds || (liveOnly ?? removedBy !== undefined)
  const changed = ranges.filter(isChanged)
  if (changed.length === 0) return unchangedText(ranges, columns)
  const unchanged = ranges.filter((range) => !isChanged(range))
  return [
    ...(unchanged.length > 0 ? unchangedText(unchanged, columns) : []),
    ...changedFilesText(changed, { columns: columnList(columns), rowIds }),
  ]
}

function unchangedText(ranges: readonly ParquetRange[], columns: readonly FileColumn[]): readonly string[] {
  const varying = columns.flatMap(({ constants }) => (constants ? [constants] : []))
  const partitions = new Map<string, { readonly first: number; readonly ranges: ParquetRange[] }>()
  for (const [index, range] of ranges.entries()) {
    const key = JSON.stringify(varying.map((constants) => constants[index]))
    const known = partitions.get(key)
    if (known) known.ranges.push(range)
    else partitions.set(key, { first: index, ranges: [range] })
  }
  const joined: JoinedFile[] = []
  const selects = [...partitions.values()].flatMap(({ first, ranges: own }) => {
    const { whole, parts } = parquetFiles(own)
    const together = partitions.size > MOST_READERS
    if (together) joined.push(...whole.map((file) => ({ file, range: first })))
    const list = columnList(columns.map((column) => atRange(column, first)))
    return [...(together ? [] : listSource(whole)), ...parts].map((source) => `SELECT ${list} FROM ${source}`)
  })
  return joined.length > 0 ? [joinedText(joined, columns), ...selects] : selects
}

/** A column as it is in one of the part's ranges, with that range's constant. */
function atRange({ constants, ...column }: FileColumn, range: number): FileColumn {
  const constant = constants?.[range]
  return constant === undefined || constant === null ? column : { ...column, constant }
}

/** A whole file, and the index of the range that has its constants. */
interface JoinedFile {
  readonly file: string
  readonly range: number
}

/** One reader of many files; the file's index in the list selects the file's constants. */
function joinedText(files: readonly JoinedFile[], columns: readonly FileColumn[]): string {
  const varying = columns.filter(({ constants }) => constants !== undefined)
  const names = columns.map(({ source = '' }) => source.toLowerCase())
  let prefix = 'partition'
  while (names.some((name) => name.startsWith(prefix))) prefix += '_'
  const rows = files.map(({ range }, index) => ({
    [prefix]: index,
    ...Object.fromEntries(varying.map(({ constants }, i) => [`${prefix}${i}`, constants![range]!])),
  }))
  const shapes = varying.map((_, i) => ({ name: `${prefix}${i}`, shape: 'VARCHAR' }))
  const values = rowsText({ kind: 'rows', rows, columns: [{ name: prefix, shape: 'BIGINT' }, ...shapes] })
  // Columns of the files that the scan does not read may have any name.
  const list = columns.map((column) => {
    const value = column.constants && `v.${quoteName(`${prefix}${varying.indexOf(column)}`)}`
    return `${valueText(column, value)} AS ${quoteName(column.name)}`
  })
  const [source] = listSource(files.map(({ file }) => file))
  return `SELECT ${list.join(', ')} FROM ${source} AS f JOIN (${values}) AS v ON v.${quoteName(prefix)} = f.${quoteName(FILE_INDEX)}`
}

/** DuckDB guesses nothing: text that does not follow the dialect is an error. */
function csvText(part: CsvPart, csvFiles: number): string {
  const { dialect, fields, types, path, columns } = part
  const typeOf = new Map(types.map(({ field, type, blanks }) => [field, { type, blanks }]))
  const read = Array.from({ length: fields }, (_, field) => {
    const { type = VARCHAR, blanks = false } = typeOf.get(field) ?? {}
    return `c${field}: ${quoteText(blanks ? VARCHAR : type)}`
  })
  const options = [
    'auto_detect=false',
    ...LINE_END_OPTIONS[dialect.lineEnd],
    `header=${String(dialect.header)}`,
    `skip=${wholeNumberText(dialect.skip)}`,
    `delim=${quoteText(dialect.delimiter)}`,
    `quote=${quoteText(dialect.quote)}`,
    `escape=${quoteText(dialect.escape)}`,
    `nullstr=[${[...new Set(['', dialect.nullString])].map(quoteText).join(', ')}]`,
    'allow_quoted_nulls=false',
    `buffer_size=${csvBufferBytes(part, csvFiles)}`,
    `columns={${read.join(', ')}}`,
  ]
  const blank: ReadonlyMap<string, string> = new Map(
    types.flatMap(({ field, type, blanks }) => (blanks ? [[`c${field}`, type] as const] : [])),
  )
  const list = columns.map((column) => {
    const type = column.source === undefined ? undefined : blank.get(column.source)
    const value = type === undefined ? undefined : castText(`nullif(${quoteName(column.source!)}, '')`, type)
    return `${valueText(column, value)} AS ${quoteName(column.name)}`
  })
  return `SELECT ${list.join(', ') || ONE} FROM ${readerText('csv', fileText(path), options)}`
}

const VARCHAR = 'VARCHAR'

/** DuckDB reads mixed line ends only when it is not strict. */
const LINE_END_OPTIONS: Readonly<Record<CsvDialect['lineEnd'], readonly string[]>> = {
  lf: ['strict_mode=true', String.raw`new_line='\n'`],
  // DuckDB finds no row when this option is set: it detects CRLF itself.
  crlf: ['strict_mode=true'],
  cr: ['strict_mode=true', String.raw`new_line='\r'`],
  mixed: ['strict_mode=false'],
}

function jsonText({ path, layout, isRecord, types, columns }: JsonPart): string {
  const read = types.map(({ source, type }) => `${quoteText(source)}: ${quoteText(type)}`)
  const options = [
    `format=${quoteText(layout)}`,
    `records=${String(isRecord)}`,
    `columns={${read.join(', ') || "json: 'JSON'"}}`,
  ]
  return `SELECT ${columnList(columns)} FROM ${readerText('json', fileText(path), options)}`
}

/** The select list when no column is wanted: only rows are counted. */
const ONE = '1 AS one'

function columnList(columns: readonly FileColumn[]): string {
  return columns.map((column) => `${valueText(column)} AS ${quoteName(column.name)}`).join(', ') || ONE
}

/** @param field the expression for the file's value, when it is not just its column */
function valueText({ source, constant, cast, fileType, checkedByRow }: FileColumn, field?: string): string {
  const fixed = constant === undefined ? 'NULL' : quoteText(constant)
  const read = field !== undefined ? field : source === undefined ? fixed : quoteName(source)
  if (source === undefined && cast === undefined) throw new RefusedStatement('a column of no type', 0)
  const value = cast === undefined ? read : castText(read, cast)
  const { convert } = (fileType !== undefined && columnType(parseDuckDbType(fileType))) || {}
  const held = convert ? convert(value) : value
  return checkedByRow ? withoutStatistics(held) : held
}

/** The same value as an expression that DuckDB does not push conditions through and knows no bounds of. */
function withoutStatistics(value: string): string {
  return `CASE WHEN ${value} IS NULL THEN list_reverse([${value}])[1] ELSE ${value} END`
}

function castText(value: string, type: string): string {
  checkType(type)
  return `CAST(${value} AS ${type})`
}

/**
 * Rows in the text of the statement itself, typed and named, so that every statement reads its scans in the same way.
 */
function rowsText({ rows, columns }: RowsPart): string {
  // Even without columns each row has to exist.
  const shape = columns.length === 0 ? { _: 'INTEGER' } : Object.fromEntries(columns.map((c) => [c.name, c.shape]))
  const source = `unnest(from_json(${quoteText(JSON.stringify(rows))}, ${quoteText(JSON.stringify([shape]))}))`
  const list = columns.map(({ name }) => `r.${quoteName(name)} AS ${quoteName(name)}`).join(', ') || ONE
  return `SELECT ${list} FROM (SELECT ${source} AS r)`
}

/**
 * Whole files, as `fileText` names them, and DuckDB sources (`read_parquet(…) WHERE …`, to follow FROM) for parts of
 * files. Ranges that touch are joined first, since reading by row number costs more than reading the whole file.
 */
function parquetFiles(ranges: readonly ParquetRange[]): {
  readonly whole: readonly string[]
  readonly parts: readonly string[]
} {
  // prettier-ignore
  const whole: string[] = []
  const parts: string[] = []
  for (const { path, firstRow, rows, fileRows } of joinTouching(ranges)) {
    if (firstRow === 0 && rows === fileRows) whole.push(fileText(path))
    else {
      const [first, end] = [wholeNumberText(firstRow), wholeNumberText(firstRow + rows)]
      const source = readerText('parquet', fileText(path), ['file_row_number=true'])
      parts.push(`${source} WHERE file_row_number>=${first} AND file_row_number<${end}`)
    }
  }
  return { whole, parts }
}

/** A DuckDB source for all these files; an empty list when there are none. */
function listSource(files: readonly string[]): readonly string[] {
  return files.length > 0 ? [readerText('parquet', `[${files.join(', ')}]`)] : []
}
