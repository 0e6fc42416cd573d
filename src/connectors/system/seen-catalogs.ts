import type { Catalogs } from '../spi/catalogs.ts'
import type { Asker, Connector, ConnectorTable } from '../spi/connector.ts'

/** The user that lists are for, and the objects that they may know about. */
export type Seer = Pick<Asker, 'user' | 'sight'>

/** The catalogs as a user sees them: without the objects that they may not know about. */
export function seenCatalogs(catalogs: Catalogs, seer: Seer): Catalogs {
  const { sight } = seer
  return {
    names: () =>
      catalogs
        .names()
        .filter((name) => !sight || sight.showsCatalog(name) || catalogs.get(name)?.forUser !== undefined),
    get(name) {
      const connector = catalogs.get(name)
      return connector && seenConnector(connector, seer)
    },
  }
}

/** The connector with the schemas, tables and columns that a user may know about. */
export function seenConnector(connector: Connector, { user, sight }: Seer): Connector {
  if (connector.forUser) return connector.forUser(user)
  if (!sight) return connector
  const { catalog } = connector
  const seen = (table: ConnectorTable): ConnectorTable => ({
    ...table,
    columns: table.columns.filter((column) =>
      sight.showsColumn({ catalog, schema: table.schema, table: table.table }, column.name),
    ),
  })
  return {
    ...connector,
    async listSchemas() {
      if (!sight.showsCatalog(catalog)) return []
      return (await connector.listSchemas()).filter((schema) => sight.showsSchema(catalog, schema))
    },
    async listTables(schema, named) {
      const tables = await connector.listTables(schema, named)
      return tables.filter((each) => sight.showsTable({ catalog, schema: each.schema, table: each.table }))
    },
    async getTable(schema, table, at) {
      const name = { catalog, schema, table }
      if (!sight.showsTable(name)) return undefined
      const found = await connector.getTable(schema, table, at)
      return found && seen(found)
    },
    ...(connector.describeTables && {
      describeTables: (schema, named, take, columns) =>
        connector.describeTables!(
          schema,
          (table) => named(table) && sight.showsTable({ catalog, schema, table }),
          (table) => take(seen(table)),
          columns,
        ),
    }),
  }
}
