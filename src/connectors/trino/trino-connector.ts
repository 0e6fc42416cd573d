import { EngineError } from '../../shared/engine-error.ts'
import { READ_ONLY, type Connector, type ConnectorColumn, type ConnectorTable } from '../spi/connector.ts'
import type { ServerMetadata } from '../spi/server-metadata.ts'

export interface TrinoCatalog {
  readonly catalog: string
  /** The group of clusters that has the catalog, for messages. */
  readonly group: string
  readonly metadata: ServerMetadata
  /** The content as the clusters show it to a user; absent where the rules of this server decide. */
  readonly forUser?: ((user: string) => ServerMetadata) | undefined
}

/** How long lists over several catalogs wait for one at a cluster, milliseconds. */
const LISTED_WITHIN_MS = 5_000

/**
 * A catalog of a group of clusters with Trino's protocol. It has names, columns and types, and no rows: a statement that
 * reads its tables runs at a cluster as a whole. A view there is a table here, because the cluster resolves it.
 */
export function createTrinoConnector({ catalog, group, metadata, forUser }: TrinoCatalog): Connector {
  const noRows = (): EngineError =>
    new EngineError(
      'NOT_SUPPORTED',
      `Catalog '${catalog}' is at the clusters of group ${group}: a statement that runs on this server cannot read its tables`,
    )
  const tableOf = (schema: string, table: string, columns: readonly ConnectorColumn[]): ConnectorTable => ({
    schema,
    table,
    kind: 'TABLE',
    handle: { schema, table },
    columns,
  })
  return {
    catalog,
    connectorName: 'trino',
    abilities: READ_ONLY,
    remote: { listedWithinMs: LISTED_WITHIN_MS },
    ...(forUser && { forUser: (user: string) => createTrinoConnector({ catalog, group, metadata: forUser(user) }) }),
    listSchemas: () => metadata.schemas(catalog),
    async listTables(schema, named = () => true) {
      const listed = await metadata.tables(catalog, schema)
      // Each catalog gets the tables of this schema from this server.
      return listed.filter((one) => named(one.table) && one.schema !== 'information_schema')
    },
    async getTable(schema, table) {
      const columns = await metadata.columns(catalog, schema, table)
      return columns && tableOf(schema, table, columns)
    },
    async describeTables(schema, named, take) {
      for (const [table, columns] of await metadata.allColumns(catalog, schema))
        if (named(table)) take(tableOf(schema, table, columns))
    },
    getStatistics: async () => ({}),
    async listSplits() {
      throw noRows()
    },
    async tableSource() {
      throw noRows()
    },
    verifySplits: async () => {},
    allowedDirectories: () => [],
  }
}

/**
 * A catalog that this process does not know. A coordinator may send it rows of the `information_schema` of a catalog at
 * a cluster; there is nothing else that it can read.
 */
export function createUnknownCatalog(catalog: string): Connector {
  const unknown = async (): Promise<never> => {
    throw new EngineError('CATALOG_NOT_AVAILABLE', `Catalog '${catalog}' is not configured on the worker`)
  }
  return {
    ...createTrinoConnector({
      catalog,
      group: '',
      metadata: { schemas: unknown, tables: unknown, columns: unknown, allColumns: unknown },
    }),
    listSplits: unknown,
    tableSource: unknown,
  }
}
