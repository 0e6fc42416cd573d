import type { TableSource } from '../../connectors/spi/table-source.ts'

/**
 * A query for an engine: texts that the engine checks token by token (`statement-wall.ts`), and data from which it
 * makes the rest of the statement.
 */
export interface EngineQuery {
  /** One SELECT. It reads the scans as `"$s0"`, `"$s1"` …. */
  readonly sql: string
  readonly scans: readonly TableSource[]
  readonly row: EngineRow
}

/** The form in which the rows of the SELECT are returned. */
export type EngineRow =
  /** The JSON text of an array of values: expressions over the SELECT's columns `c0`, `c1` …, one for each. */
  | { readonly kind: 'json'; readonly values: readonly string[] }
  /** The columns of the SELECT, named and cast to types of DuckDB. */
  | { readonly kind: 'typed'; readonly columns: readonly { readonly name: string; readonly type: string }[] }
  /** The only column of the SELECT, a VARCHAR, unchanged: it is the JSON text already. */
  | { readonly kind: 'text' }
