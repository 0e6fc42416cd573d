import type { TableSource } from '../../connectors/spi/table-source.ts'

/**
 * What an engine runs: texts that it reads token by token before it takes them (`statement-wall.ts`), and data of which it
 * makes the rest of the statement itself.
 */
export interface EngineQuery {
  /** One SELECT. Reads `"$s0"`, `"$s1"` …, the scans. */
  readonly sql: string
  readonly scans: readonly TableSource[]
  readonly row: EngineRow
}

/** What becomes of a row of the SELECT. */
export type EngineRow =
  /** The JSON text of an array of values: expressions over the SELECT's columns `c0`, `c1` …, one for each. */
  | { readonly kind: 'json'; readonly values: readonly string[] }
  /** Its columns, named and cast to types of DuckDB. */
  | { readonly kind: 'typed'; readonly columns: readonly { readonly name: string; readonly type: string }[] }
  /** Its one VARCHAR column as it is: that is the JSON text already. */
  | { readonly kind: 'text' }
