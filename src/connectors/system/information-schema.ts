import type {
  Connector,
  ConnectorColumn,
  ConnectorSplit,
  ConnectorTable,
  SchemaTableName,
  TableHandle,
} from '../spi/connector.ts'
import { informationSchemaTables, type SystemColumns } from './information-schema-tables.ts'
import { loadedRows, rowArrays, rowsSource, type SystemRow } from './rows-source.ts'

const INFORMATION_SCHEMA = 'information_schema'
/** Marks handles and splits that are none of the catalog's own. */
const MARK = '$informationSchema'

type InformationTable = keyof typeof informationSchemaTables

/** A catalog with `information_schema` beside its own schemas; its rows are listed when a task is about to read them. */
export function withInformationSchema(connector: Connector): Connector {
  const { catalog } = connector
  const ours = (handleOrData: Readonly<Record<string, unknown>>): InformationTable | undefined => {
    const table = handleOrData[MARK]
    return typeof table === 'string' && isInformationTable(table) ? table : undefined
  }
  return {
    catalog,
    connectorName: connector.connectorName,
    abilities: connector.abilities,
    ...(connector.writer && { writer: connector.writer }),
    async listSchemas() {
      return [...new Set([...(await connector.listSchemas()), INFORMATION_SCHEMA])]
    },
    async listTables(schema) {
      if (schema === INFORMATION_SCHEMA) return informationTables()
      const tables = await connector.listTables(schema)
      return schema === undefined ? [...tables, ...informationTables()] : tables
    },
    async getTable(schema, table) {
      if (schema !== INFORMATION_SCHEMA) return connector.getTable(schema, table)
      return isInformationTable(table) ? informationTable(table) : undefined
    },
    getStatistics: async (handle) => (ours(handle) ? {} : connector.getStatistics(handle)),
    async listSplits(handle) {
      const table = ours(handle)
      if (!table) return connector.listSplits(handle)
      return [{ catalog, data: { [MARK]: table } }]
    },
    async loadSplits(splits, wanted) {
      const table = splits[0] && ours(splits[0].data)
      if (!table) return connector.loadSplits?.(splits, wanted) ?? splits
      const listed = await rowsOf(withInformationSchema(connector), table)
      const rows = rowArrays(informationSchemaTables[table], listed, wanted)
      return [{ catalog, data: { [MARK]: table, rows }, rows: rows.length }]
    },
    async tableSource(splits, columns) {
      const table = splits[0] && ours(splits[0].data)
      if (!table) return connector.tableSource(splits, columns)
      return rowsSource(informationSchemaTables[table], loadedRows(splits), columns)
    },
    verifySplits: (splits: readonly ConnectorSplit[]) =>
      connector.verifySplits(splits.filter((split) => !ours(split.data))),
    allowedDirectories: () => connector.allowedDirectories(),
  }
}

function isInformationTable(table: string): table is InformationTable {
  return Object.hasOwn(informationSchemaTables, table)
}

function informationTables(): SchemaTableName[] {
  return Object.keys(informationSchemaTables).map((table) => ({ schema: INFORMATION_SCHEMA, table, kind: 'TABLE' }))
}

function informationTable(table: InformationTable): ConnectorTable {
  const handle: TableHandle = { [MARK]: table }
  return {
    schema: INFORMATION_SCHEMA,
    table,
    kind: 'TABLE',
    handle,
    columns: connectorColumns(informationSchemaTables[table]),
  }
}

export function connectorColumns(columns: SystemColumns): ConnectorColumn[] {
  return Object.entries(columns).map(([name, type]) => ({ name, type, nullable: true }))
}

async function rowsOf(connector: Connector, table: InformationTable): Promise<SystemRow[]> {
  const { catalog } = connector
  switch (table) {
    case 'schemata':
      return (await connector.listSchemas()).map((schema) => ({ catalog_name: catalog, schema_name: schema }))
    case 'tables':
      return (await connector.listTables()).map(({ schema, table: name, kind }) => ({
        table_catalog: catalog,
        table_schema: schema,
        table_name: name,
        table_type: kind === 'VIEW' ? 'VIEW' : 'BASE TABLE',
      }))
    case 'columns':
      return (await describedTables(connector)).flatMap(({ schema, table: name, columns }) =>
        visible(columns).map((column, index) => ({
          table_catalog: catalog,
          table_schema: schema,
          table_name: name,
          column_name: column.name,
          ordinal_position: index + 1,
          is_nullable: column.nullable ? 'YES' : 'NO',
          data_type: displayType(column.type),
        })),
      )
    case 'views': {
      const views = (await connector.listTables()).filter(({ kind }) => kind === 'VIEW')
      const described = await Promise.all(views.map(({ schema, table: name }) => connector.getTable(schema, name)))
      return described.flatMap((view) =>
        view?.view
          ? [
              {
                table_catalog: catalog,
                table_schema: view.schema,
                table_name: view.table,
                view_definition: view.view.sql,
              },
            ]
          : [],
      )
    }
    // No catalog knows roles or grants.
    case 'applicable_roles':
    case 'enabled_roles':
    case 'roles':
    case 'table_privileges':
      return []
    default:
      throw new Error(`Unknown table: ${JSON.stringify(table satisfies never)}`)
  }
}

/** Every table with its columns; one that cannot be read is left out, as it has no columns anybody could use. */
export async function describedTables(connector: Connector): Promise<ConnectorTable[]> {
  const names = await connector.listTables()
  const tables = await Promise.all(
    names.map(({ schema, table }) => connector.getTable(schema, table).catch(() => undefined)),
  )
  return tables.filter((table) => table !== undefined)
}

export function visible(columns: readonly ConnectorColumn[]): ConnectorColumn[] {
  return columns.filter((column) => column.hidden !== true)
}

/** As `typeof` and DESCRIBE write it: decimals without a blank. */
export function displayType(type: string): string {
  return type.replaceAll(/\bdecimal\((\d+), (\d+)\)/g, 'decimal($1,$2)')
}
