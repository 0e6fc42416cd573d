import type { ParquetRange } from './parquet-scan.ts'

/**
 * What a scan of a batch reads, as data: connectors say which files, rows and columns, and the engine's process alone makes
 * DuckDB's SQL of it. The rows of all parts together are the scan's, in whatever order.
 */
export type TableSource = readonly [TablePart, ...TablePart[]]

export type TablePart = ParquetPart | TextFilePart | RowsPart | EmptyPart

export interface ParquetPart {
  readonly kind: 'parquet'
  /** At least one. */
  readonly ranges: readonly ParquetRange[]
  readonly columns: readonly FileColumn[]
}

export interface TextFilePart {
  readonly kind: 'csv' | 'json'
  /** Absolute. */
  readonly path: string
  /** The file's size as it lies there. */
  readonly bytes: number
  /** DuckDB's type of each of the file's own columns. */
  readonly types: readonly { readonly source: string; readonly type: string }[]
  readonly columns: readonly FileColumn[]
}

/** Rows that travel with the statement itself. */
export interface RowsPart {
  readonly kind: 'rows'
  /** By column name; what is left out is null. */
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  readonly columns: readonly { readonly name: string; readonly shape: RowShape }[]
}

/** No row of these columns. */
export interface EmptyPart {
  readonly kind: 'empty'
  readonly columns: readonly { readonly name: string; readonly type: string }[]
}

/** A column of the scan, made of one of the file's. Without any column a row of the scan is still a row. */
export interface FileColumn {
  readonly name: string
  /** As the file names it; without it, every value is null. */
  readonly source?: string
  /** DuckDB's type that the value is cast to; a column without source has one. */
  readonly cast?: string
  /** DuckDB's type of the file's column, where the value has to be held in another way (`column-type.ts`). */
  readonly fileType?: string
  /** DuckDB asks neither bloom filters nor bounds of the file about it: conditions on it are checked row by row. */
  readonly checkedByRow?: true
}

/** How a value of `RowsPart` becomes DuckDB's: the structure that its `from_json` takes. */
export type RowShape = string | readonly RowShape[] | { readonly [field: string]: RowShape }

/** What connectors ask of files, answered by an engine; its text is the engine's own as well. */
export type FileQuestion =
  /**
   * A row for each row group of each file, ordered by file and row group: `file_name`; `elements`, the file's schema as a tree
   * written depth first, `{name, children, type, precision}`, the root first; `rows`; `columns`, a list of `{leaf, bytes}` with compressed
   * bytes of the schema's leaves, counted from 0. A file without row groups has one row, without rows and columns.
   */
  | { readonly kind: 'rowGroups'; readonly paths: readonly string[] }
  /**
   * A row for each leaf that the files' footers name: `name`, its path; `rows` of the row groups that have it; `single`, whether
   * none has two of the name; `nulls`, null where a row group does not tell; `bounded`, whether each tells its bounds; `low`,
   * `high` as numbers, `low_day`, `high_day` as days since 1970, null where they are none.
   */
  | { readonly kind: 'columnStatistics'; readonly paths: readonly string[] }
  /** A row for each column that the files have together: `column_name` and `column_type`, as DuckDB's DESCRIBE writes it. */
  | {
      readonly kind: 'columns'
      readonly format: 'parquet' | 'csv' | 'json'
      readonly paths: readonly string[]
      /** Bytes of the largest file, as it lies there. */
      readonly largest: number
      readonly unionByName: boolean
    }
