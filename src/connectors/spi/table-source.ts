import type { ParquetRange } from './parquet-scan.ts'
import type { CsvDialect, DeclaredText, JsonLayout } from './text-file.ts'

/**
 * What a scan of a batch reads, as data: connectors say which files, rows and columns, and the engine's process alone makes
 * DuckDB's SQL of it. The rows of all parts together are the scan's, in whatever order.
 */
export type TableSource = readonly [TablePart, ...TablePart[]]

export type TablePart = ParquetPart | CsvPart | JsonPart | RowsPart | EmptyPart

export interface ParquetPart {
  readonly kind: 'parquet'
  /** At least one. */
  readonly ranges: readonly ParquetRange[]
  readonly columns: readonly FileColumn[]
}

/** Fields are named by their places, `c0`, `c1` …: `FileColumn.source` is such a name. */
export interface CsvPart {
  readonly kind: 'csv'
  /** Absolute. */
  readonly path: string
  /** The file's size as it lies there. */
  readonly bytes: number
  readonly dialect: CsvDialect
  /** How many fields each line has. */
  readonly fields: number
  /** DuckDB's types of fields that are no VARCHAR. */
  readonly types: readonly { readonly field: number; readonly type: string; readonly blanks: boolean }[]
  readonly columns: readonly FileColumn[]
}

export interface JsonPart {
  readonly kind: 'json'
  /** Absolute. */
  readonly path: string
  readonly layout: JsonLayout
  /** Each value is an object of the columns; else the only column is the value itself. */
  readonly isRecord: boolean
  /** DuckDB's type of each of the file's own columns that is read. */
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
  /** As the file names it; without it, every value is `constant`. */
  readonly source?: string
  /** A text that `cast` reads as the value of all rows; absent: NULL. Not asked where there is a source. */
  readonly constant?: string
  /** In the place of `constant`, of Parquet: a text for each of the part's ranges, in their order; null for NULL. */
  readonly constants?: readonly (string | null)[]
  /** DuckDB's type that the value is cast to; a column without source has one. */
  readonly cast?: string
  /** DuckDB's type of the file's column, where the value has to be held in another way (`column-type.ts`). */
  readonly fileType?: string
  /** DuckDB asks neither bloom filters nor bounds of the file about it: conditions on it are checked row by row. */
  readonly checkedByRow?: true
}

/** How a value of `RowsPart` becomes DuckDB's: the structure that its `from_json` takes. */
export type RowShape = string | readonly RowShape[] | { readonly [field: string]: RowShape }

export interface FootersQuestion {
  readonly kind: 'footers'
  readonly paths: readonly string[]
}

/** What connectors ask of files, answered by an engine; its text is the engine's own as well. */
export type FileQuestion =
  /** What the footer of each Parquet file says, in their order: a `ParquetFooter` each. */
  | FootersQuestion
  /**
   * A row for each leaf that the files' footers name: `name`, its path; `rows` of the row groups that have it; `single`, whether
   * none has two of the name; `nulls`, null where a row group does not tell; `bounded`, whether each tells its bounds; `low`,
   * `high` as numbers, `low_day`, `high_day` as days since 1970, null where they are none.
   */
  | { readonly kind: 'columnStatistics'; readonly paths: readonly string[] }
  /** A row for each column that the files have together: `column_name` and `column_type`, as DuckDB's DESCRIBE writes it. */
  | { readonly kind: 'columns'; readonly paths: readonly string[]; readonly unionByName: boolean }
  | TextQuestion

/** About one file; answered without DuckDB. Shapes are one row, as `csvShapeSchema` and `jsonFileSchema` have it. */
export type TextQuestion =
  | { readonly kind: 'csvShape'; readonly path: string; readonly declared: DeclaredText }
  | { readonly kind: 'jsonShape'; readonly path: string }
  /** No row; an error names the first line that is not as it has to be. */
  | {
      readonly kind: 'csvCheck'
      readonly path: string
      readonly dialect: CsvDialect
      /** Of each field of a line. */
      readonly needs: readonly TextNeed[]
    }
  | {
      readonly kind: 'jsonCheck'
      readonly path: string
      readonly layout: JsonLayout
      /** Each value is an object; else the only need is the value's own. */
      readonly isRecord: boolean
      readonly needs: readonly (TextNeed & { readonly name: string })[]
    }
  /** No row; an error names a column of a Parquet file, as the file calls it, with a timestamp finer than microseconds. */
  | { readonly kind: 'timesCheck'; readonly path: string; readonly columns: readonly string[] }

/** What the values of a column have to be. */
export interface TextNeed {
  /** DuckDB's type. */
  readonly type: string
  /** The administrator said so: what can be read as the type without a change is, in whatever form it is written. */
  readonly declared: boolean
  /** Quoted fields without a character are NULL. */
  readonly blanks: boolean
}
