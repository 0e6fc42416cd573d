import { quoteText } from './duckdb-text.ts'

/** Some rows of one Parquet file, cut at row group borders. */
export interface ParquetRange {
  /** Absolute path. */
  readonly path: string
  readonly firstRow: number
  readonly rows: number
  /** Rows of the whole file. */
  readonly fileRows: number
}

export interface RowGroup {
  readonly rows: number
  /** Compressed bytes by column name. */
  readonly columnBytes: Readonly<Record<string, number>>
}

export interface RowGroupRange extends RowGroup {
  readonly firstRow: number
  readonly bytes: number
}

/**
 * Joins a file's row groups, in order, into ranges of about `targetBytes` compressed: one range a row group would make
 * thousands of splits of a large table, and a batch reads several anyway.
 */
export function joinRowGroups(groups: readonly RowGroup[], targetBytes: number): readonly RowGroupRange[] {
  const ranges: RowGroupRange[] = []
  let next = 0
  let open: { firstRow: number; rows: number; bytes: number; columnBytes: Record<string, number> } | undefined
  for (const group of groups) {
    open ??= { firstRow: next, rows: 0, bytes: 0, columnBytes: {} }
    next += group.rows
    open.rows += group.rows
    for (const [column, bytes] of Object.entries(group.columnBytes)) {
      open.columnBytes[column] = (open.columnBytes[column] ?? 0) + bytes
      open.bytes += bytes
    }
    if (open.bytes >= targetBytes) {
      ranges.push(open)
      open = undefined
    }
  }
  if (open) ranges.push(open)
  return ranges
}

/**
 * DuckDB sources (`read_parquet(…) WHERE …`, to follow FROM) that give exactly the rows of the ranges. Whole files go
 * into one list; ranges that touch are joined first, since reading by row number costs more than reading the file.
 */
export function parquetSources(ranges: readonly ParquetRange[]): string[] {
  const whole: string[] = []
  const parts: string[] = []
  for (const range of joinTouching(ranges)) {
    if (range.firstRow === 0 && range.rows === range.fileRows) whole.push(quoteText(range.path))
    else {
      const end = range.firstRow + range.rows
      parts.push(
        `read_parquet(${quoteText(range.path)}, file_row_number=true) WHERE file_row_number>=${range.firstRow} AND file_row_number<${end}`,
      )
    }
  }
  return whole.length > 0 ? [`read_parquet([${whole.join(', ')}])`, ...parts] : parts
}

function joinTouching(ranges: readonly ParquetRange[]): ParquetRange[] {
  const sorted = [...ranges].sort((a, b) => (a.path === b.path ? a.firstRow - b.firstRow : a.path < b.path ? -1 : 1))
  const joined: ParquetRange[] = []
  for (const range of sorted) {
    const last = joined.at(-1)
    if (last && last.path === range.path && last.firstRow + last.rows === range.firstRow) {
      joined[joined.length - 1] = { ...last, rows: last.rows + range.rows }
    } else joined.push(range)
  }
  return joined
}
