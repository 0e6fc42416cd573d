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

/** DuckDB numbers the rows of a file in a column of this name: a file that has one of its own can only be read whole. */
function isRowNumber(name: string): boolean {
  return name.toLowerCase() === 'file_row_number'
}

/** DuckDB numbers the files of a list in a column of this name, from 0 on. */
export const FILE_INDEX = 'file_index'

/** Files whose names begin so were written without bloom filters; those that Quipu wrote before may have some. */
export const WITHOUT_BLOOM_FILTERS = 'nb-'

/** DuckDB asks a bloom filter for the printed text of a BLOB, and for 0.0 alone where -0.0 is equal to it. */
export function bloomFilterMisleads(duckdbType: string): boolean {
  return duckdbType === 'BLOB' || duckdbType === 'FLOAT' || duckdbType === 'DOUBLE'
}
