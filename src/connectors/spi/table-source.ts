import type { ParquetRange } from './parquet-scan.ts'
import type { CsvDialect, DeclaredText, JsonLayout } from './text-file.ts'

/**
 * The data that a scan of a batch reads: connectors name files, rows and columns; only the engine's process makes
 * DuckDB's SQL from it. The rows of all parts together are the scan's rows, in any order.
 */
export type TableSource = readonly [TablePart, ...TablePart[]]

export type TablePart = ParquetPart | CsvPart | JsonPart | RowsPart | EmptyPart

export interface ParquetPart {
  readonly kind: 'parquet'
  /** At least one. */
  readonly ranges: readonly ParquetRange[]
  readonly columns: readonly FileColumn[]
  /** Adds the columns `$file` and `$row`: the range's `index`, and the row's number in the file. */
  readonly rowIds?: boolean
}

/** Fields are named by their positions, `c0`, `c1` …: `FileColumn.source` is such a name. */
export interface CsvPart {
  readonly kind: 'csv'
  /** Absolute. */
  readonly path: string
  /** The file's size on disk. */
  readonly bytes: number
  readonly dialect: CsvDialect
  /** How many fields each line has. */
  readonly fields: number
  /** DuckDB's types of fields that are not VARCHAR. */
  readonly types: readonly { readonly field: number; readonly type: string; readonly blanks: boolean }[]
  readonly columns: readonly FileColumn[]
}

export interface JsonPart {
  readonly kind: 'json'
  /** Absolute. */
  readonly path: string
  readonly layout: JsonLayout
  /** Whether each value is an object with the columns; else the only column is the value itself. */
  readonly isRecord: boolean
  /** DuckDB's types of the file's own columns that are read. */
  readonly types: readonly { readonly source: string; readonly type: string }[]
  readonly columns: readonly FileColumn[]
}

/** Rows that travel with the statement itself. */
export interface RowsPart {
  readonly kind: 'rows'
  /** By column name; missing values are null. */
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  readonly columns: readonly { readonly name: string; readonly shape: RowShape }[]
}

/** No rows, with these columns. */
export interface EmptyPart {
  readonly kind: 'empty'
  readonly columns: readonly { readonly name: string; readonly type: string }[]
}

/** A column of the scan, made from a column of the file. A scan without columns still has rows. */
export interface FileColumn {
  readonly name: string
  /** The name in the file; without it, every value is `constant`. */
  readonly source?: string
  /** A text that `cast` turns into the value of all rows; absent: NULL. Ignored when there is a source. */
  readonly constant?: string
  /** Instead of `constant`, for Parquet: a text for each of the part's ranges, in their order; null for NULL. */
  readonly constants?: readonly (string | null)[]
  /** DuckDB's type that the value is cast to; required for a column without source. */
  readonly cast?: string
  /** DuckDB's type of the file's column, if the value has to be held in another form (`column-type.ts`). */
  readonly fileType?: string
  /** DuckDB must not use bloom filters or bounds of the file for it: conditions on it are checked row by row. */
  readonly checkedByRow?: true
}

/** The structure with which DuckDB's `from_json` reads a value of `RowsPart`. */
export type RowShape = string | readonly RowShape[] | { readonly [field: string]: RowShape }

export interface FootersQuestion {
  readonly kind: 'footers'
  readonly paths: readonly string[]
}

/** A question of a connector about files, answered by an engine, which makes its own SQL for it. */
export type FileQuestion =
  /** The footers of Parquet files, in their order: a `ParquetFooter` each. */
  | FootersQuestion
  /**
   * A row for each leaf in the files' footers, with these columns:
   * - `name`: its path, in lower case
   * - `rows`: of the row groups that have it; `bytes`: compressed
   * - `single`: whether no row group has the name twice
   * - `nulls`: null where a row group does not say it
   * - `different`: distinct values, null unless there is one row group; `least_different`: the largest number of any
   *   row group
   * - `low`, `high` as numbers, `low_day`, `high_day` as days since 1970: null where a bound is missing
   */
  | { readonly kind: 'columnStatistics'; readonly paths: readonly string[] }
  /**
   * About files of changed rows (`changeColumns`): a row for each `change`, the index of a file in `paths`, and each
   * value of `$file` in it as `file`, null for NULL, with the numbers of rows that it removes there (`removed`), that are
   * rows of the table (`live`), and that do either (`acting`).
   * - `mayRepeat`: a row may be removed several times; it counts once, in the first file
   */
  | { readonly kind: 'changedRows'; readonly paths: readonly string[]; readonly mayRepeat: boolean }
  /** One row if files of changed rows repeat a row that must not repeat (`changeColumns`), else none. */
  | { readonly kind: 'repeatedChanges'; readonly paths: readonly string[] }
  /** A row for each column of all files: `column_name` and `column_type`, as DuckDB's DESCRIBE writes them. */
  | { readonly kind: 'columns'; readonly paths: readonly string[]; readonly unionByName: boolean }
  | TextQuestion

/**
 * A question about one file; answered without DuckDB. A shape is one row, as in `csvShapeSchema` and `jsonFileSchema`.
 */
export type TextQuestion =
  | { readonly kind: 'csvShape'; readonly path: string; readonly declared: DeclaredText }
  | { readonly kind: 'jsonShape'; readonly path: string }
  /** No row; an error names the first line that does not fit. */
  | {
      readonly kind: 'csvCheck'
      readonly path: string
      readonly dialect: CsvDialect
      /** For each field of a line. */
      readonly needs: readonly TextNeed[]
    }
  | {
      readonly kind: 'jsonCheck'
      readonly path: string
      readonly layout: JsonLayout
      /** Whether each value is an object; else the only need is for the value itself. */
      readonly isRecord: boolean
      readonly needs: readonly (TextNeed & { readonly name: string })[]
    }
  /** No row; an error names a column of a Parquet file, by its name there, with a timestamp finer than microseconds. */
  | { readonly kind: 'timesCheck'; readonly path: string; readonly columns: readonly string[] }

/** The requirement for the values of a column. */
export interface TextNeed {
  /** DuckDB's type. */
  readonly type: string
  /**
   * Whether the administrator has fixed the type: then any text is accepted that can be read as the type without loss.
   */
  readonly declared: boolean
  /** Whether quoted fields without a character are NULL. */
  readonly blanks: boolean
}
