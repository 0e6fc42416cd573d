import type { ConnectorColumn, SchemaTableName } from './connector.ts'

/**
 * The metadata of the catalogs of another server. Names are lower case.
 *
 * All functions throw EngineError: the error of the server, or NO_NODES_AVAILABLE if it does not answer.
 */
export interface ServerMetadata {
  schemas(catalog: string): Promise<readonly string[]>
  /** Tables and views of one schema, or of all; empty for an unknown schema. */
  tables(catalog: string, schema?: string): Promise<readonly SchemaTableName[]>
  /** The columns of a table or view, in their order; undefined if there is none. */
  columns(catalog: string, schema: string, table: string): Promise<readonly ConnectorColumn[] | undefined>
  /** The columns of all tables and views of a schema, by table. */
  allColumns(catalog: string, schema: string): Promise<ReadonlyMap<string, readonly ConnectorColumn[]>>
}
