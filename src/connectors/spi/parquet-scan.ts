/** A range of rows of one Parquet file. It begins and ends at a border between row groups. */
export interface ParquetRange {
  /** Absolute path. */
  readonly path: string
  readonly firstRow: number
  readonly rows: number
  /** Rows of the whole file. */
  readonly fileRows: number
  /** The value of `$file` for its rows, in a part with row ids. */
  readonly index?: number
  /** Only rows whose column `$live` is true. */
  readonly liveOnly?: true
  /** Rows of these files remove rows of this file: those with `$file` equal to `index`, whose number is `$row`. */
  readonly removedBy?: readonly { readonly path: string; readonly index: number }[]
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
 * Joins a file's row groups, in order, into ranges of about `targetBytes` compressed. One range for each row group
 * would make thousands of splits of a large table, and a batch reads several anyway.
 */
export function joinRowGroups(groups: readonly RowGroup[], targetBytes: number): readonly RowGroupRange[] {
  const cut = groups.every(({ columnBytes }) => !Object.keys(columnBytes).some((name) => isRowNumber(name)))
  const ranges: RowGroupRange[] = []
  let next = 0
  let open: { firstRow: number; rows: number; bytes: number; columnBytes: Map<string, number> } | undefined
  const close = (): void => {
    if (open) ranges.push({ ...open, columnBytes: Object.fromEntries(open.columnBytes) })
    open = undefined
  }
  for (const group of groups) {
    open ??= { firstRow: next, rows: 0, bytes: 0, columnBytes: new Map() }
    next += group.rows
    open.rows += group.rows
    for (const [column, bytes] of Object.entries(group.columnBytes)) {
      open.columnBytes.set(column, (open.columnBytes.get(column) ?? 0) + bytes)
      open.bytes += bytes
    }
    if (cut && open.bytes >= targetBytes) close()
  }
  close()
  return ranges
}

/**
 * DuckDB numbers the rows of a file in a column of this name: a file that has such a column can only be read as a
 * whole.
 */
function isRowNumber(name: string): boolean {
  return name.toLowerCase() === FILE_ROW_NUMBER
}

/** DuckDB numbers the rows of each file in a column of this name, from 0 on. */
export const FILE_ROW_NUMBER = 'file_row_number'

/** DuckDB numbers the files of a list in a column of this name, from 0 on. */
export const FILE_INDEX = 'file_index'

/**
 * The beginning of the names of files without bloom filters; files that older versions of Quipu wrote may have some.
 */
export const WITHOUT_BLOOM_FILTERS = 'nb-'

/**
 * Whether a bloom filter gives wrong answers: DuckDB looks up the printed text of a BLOB, and only 0.0 although -0.0 is
 * equal.
 */
export function bloomFilterMisleads(duckdbType: string): boolean {
  return duckdbType === 'BLOB' || duckdbType === 'FLOAT' || duckdbType === 'DOUBLE'
}
