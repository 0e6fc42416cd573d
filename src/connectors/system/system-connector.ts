import type { Catalogs } from '../spi/catalogs.ts'
import {
  READ_ONLY,
  type Asker,
  type Connector,
  type ConnectorTable,
  type SchemaTableName,
  type SourceTable,
  type TableHandle,
} from '../spi/connector.ts'
import { freshnessOf } from '../spi/freshness.ts'
import type { Wanted } from '../spi/scan-conditions.ts'
import type { SystemColumns } from './information-schema-tables.ts'
import { historySchema, type HistorySource, type HistoryTables } from './history-schema.ts'
import { connectorColumns, namedTables, ofTables, wantedOf, withInformationSchema } from './information-schema.ts'
import { jdbcRows, overCatalogs } from './jdbc-rows.ts'
import { jdbcTables } from './jdbc-tables.ts'
import { metadataTables } from './metadata-tables.ts'
import { loadedRows, rowArrays, rowsSource, type SystemRow } from './rows-source.ts'
import { seenCatalogs } from './seen-catalogs.ts'
import { runtimeTables } from './runtime-tables.ts'

const SYSTEM_CATALOG = 'system'

/** The sources of the rows of `system.runtime`: the coordinator's memory and its read models. */
export type RuntimeSources = {
  /** @param columns the wanted columns; expensive columns are left out if they are not among them */
  readonly [T in keyof typeof runtimeTables]: (
    asker: Asker,
    columns: readonly string[],
  ) => Promise<readonly SystemRow[]>
}

/** The sources that only the coordinator has. */
export interface SystemSources {
  readonly runtime: RuntimeSources
  readonly history: HistorySource
}

const schemas = { runtime: runtimeTables, metadata: metadataTables, jdbc: jdbcTables } as const

/**
 * Adds the catalog `system` to the configured catalogs, and `information_schema` to each. Their tables are like any
 * other, so the front end, plans and engines have no special case. A split names its table; its rows are listed in the
 * coordinator when a task is about to read them, and travel to the engine in the split.
 * @param sources called when rows are needed; absent in workers, which only turn splits into expressions
 * @param history the tables of the schema `history`; absent in workers
 * @param others catalogs that may come and go; a configured catalog with the same name hides one of them
 */
export function withSystemCatalog(
  catalogs: Catalogs,
  sources?: () => SystemSources,
  history: HistoryTables = new Map(),
  others?: () => Catalogs | undefined,
): Catalogs {
  const connectors = new Map<string, Connector>()
  const configured = new Set([...catalogs.names(), SYSTEM_CATALOG])
  // Each statement asks for the names.
  const configuredNames = [...configured].sort()
  const all: Catalogs = {
    names() {
      const more = others?.()
      return more ? [...new Set([...configured, ...more.names()])].sort() : configuredNames
    },
    get(catalog) {
      if (configured.has(catalog)) return connectors.get(catalog)
      const other = others?.()?.get(catalog)
      return other && withInformationSchema(other)
    },
  }
  for (const name of catalogs.names()) connectors.set(name, withInformationSchema(catalogs.get(name)!))
  connectors.set(SYSTEM_CATALOG, withInformationSchema(createSystemConnector(all, sources, history)))
  return all
}

function createSystemConnector(
  catalogs: Catalogs,
  sources: (() => SystemSources) | undefined,
  historyTables: HistoryTables,
): Connector {
  const history = historySchema(SYSTEM_CATALOG, historyTables, () => coordinatorOnly(sources).history)
  const columnsOf = (schema: string, table: string): SystemColumns | undefined => {
    if (!isSchema(schema)) return undefined
    const tables: Readonly<Record<string, SystemColumns>> = schemas[schema]
    return Object.hasOwn(tables, table) ? tables[table] : undefined
  }
  const tablesOf = (schema: keyof typeof schemas): SchemaTableName[] =>
    Object.keys(schemas[schema]).map((table) => ({ schema, table, kind: 'TABLE' }))

  return {
    catalog: SYSTEM_CATALOG,
    connectorName: 'system',
    abilities: READ_ONLY,
    listSchemas: async () => [history.name, ...Object.keys(schemas)],
    async listTables(schema) {
      if (schema === history.name) return history.tables()
      if (schema !== undefined) return isSchema(schema) ? tablesOf(schema) : []
      return [...history.tables(), ...Object.keys(schemas).flatMap((one) => (isSchema(one) ? tablesOf(one) : []))]
    },
    async getTable(schema, table) {
      if (schema === history.name) return history.table(table)
      const columns = columnsOf(schema, table)
      const handle: TableHandle = { schema, table }
      return columns && { schema, table, kind: 'TABLE', handle, columns: connectorColumns(columns) }
    },
    getStatistics: async () => ({}),
    async listSplits(handle, where, question) {
      const { schema, table } = handle as { schema: string; table: string }
      if (schema === history.name) return [history.split(table, question)]
      return [{ catalog: SYSTEM_CATALOG, data: { schema, table, ...(where && { where }) } }]
    },
    loadSplits: (splits, wanted, asker) =>
      Promise.all(
        splits.map(async ({ catalog, data }) => {
          const { schema, table } = data as { schema: string; table: string }
          if (schema === history.name) return history.load(data, wanted, asker)
          const listed = await rowsOf(
            { schema, table, columns: wanted, wanted: wantedOf(data), asker },
            catalogs,
            sources,
          )
          const rows = rowArrays(columnsOf(schema, table)!, listed, wanted)
          return { catalog, data: { schema, table, rows }, rows: rows.length }
        }),
      ),
    async tableSource(splits, wanted) {
      const { schema, table } = splits[0]!.data as { schema: string; table: string }
      if (schema === history.name) return history.source(splits, wanted)
      return rowsSource(columnsOf(schema, table)!, loadedRows(splits), wanted)
    },
    verifySplits: async () => {},
    allowedDirectories: () => [],
  }
}

function isSchema(schema: string): schema is keyof typeof schemas {
  return Object.hasOwn(schemas, schema)
}

function coordinatorOnly(sources: (() => SystemSources) | undefined): SystemSources {
  if (!sources) throw new Error('Rows of system tables are listed in the coordinator')
  return sources()
}

interface AskedTable {
  readonly schema: string
  readonly table: string
  readonly columns: readonly string[]
  readonly wanted: Wanted
  readonly asker: Asker
}

async function rowsOf(
  { schema, table, columns, wanted, asker }: AskedTable,
  catalogs: Catalogs,
  sources: (() => SystemSources) | undefined,
): Promise<readonly SystemRow[]> {
  const seen = seenCatalogs(catalogs, asker)
  switch (schema) {
    case 'runtime':
      return coordinatorOnly(sources).runtime[table as keyof typeof runtimeTables](asker, columns)
    case 'metadata':
      return metadataRows(table as keyof typeof metadataTables, { seen, all: catalogs }, wanted, asker)
    default:
      return jdbcRows(table as keyof typeof jdbcTables, seen, wanted, asker.onLeftOut)
  }
}

/** The sizes of a catalog's tables; NULL if hidden from the user. Tables of another server have no rows. */
async function sizeRows(connector: Connector, wanted: Wanted, sight: Asker['sight']): Promise<SystemRow[]> {
  if (connector.remote) return []
  const rows: SystemRow[] = []
  for (const { schema, table: name, kind } of await namedTables(connector, wanted, COMMENTED)) {
    if (kind === 'VIEW' || schema === 'information_schema') continue
    const isShown = !sight || sight.showsSize({ catalog: connector.catalog, schema, table: name })
    const table = isShown ? await connector.getTable(schema, name).catch(() => undefined) : undefined
    const sizes = table && (await connector.getStatistics(table.handle).catch(() => undefined))
    rows.push({
      catalog_name: connector.catalog,
      schema_name: schema,
      table_name: name,
      row_count: sizes?.rows ?? null,
      bytes: sizes?.bytes ?? null,
    })
  }
  return rows
}

const COMMENTED = { catalog: 'catalog_name', schema: 'schema_name', table: 'table_name' } as const

/** @param all the catalogs with the objects that the user may not know about: whether a view is fresh depends on them */
async function metadataRows(
  table: keyof typeof metadataTables,
  { seen: catalogs, all }: { readonly seen: Catalogs; readonly all: Catalogs },
  wanted: Wanted,
  { onLeftOut, sight }: Pick<Asker, 'onLeftOut' | 'sight'>,
): Promise<SystemRow[]> {
  switch (table) {
    case 'catalogs':
      return catalogs.names().map((name) => ({
        catalog_name: name,
        connector_id: name,
        connector_name: catalogs.get(name)?.connectorName ?? null,
      }))
    case 'table_comments':
      return overCatalogs(catalogs, wanted, {
        column: COMMENTED.catalog,
        onLeftOut,
        rowsOf: async (connector) => {
          const tables = await namedTables(connector, wanted, COMMENTED)
          return Promise.all(
            tables.map(async ({ schema, table: name }) => ({
              catalog_name: connector.catalog,
              schema_name: schema,
              table_name: name,
              // Comments of tables of another server are not known.
              comment: connector.remote
                ? null
                : ((await connector.getTable(schema, name).catch(() => undefined))?.comment ?? null),
            })),
          )
        },
      })
    case 'table_sizes':
      return overCatalogs(catalogs, wanted, {
        column: COMMENTED.catalog,
        onLeftOut,
        rowsOf: (connector) => sizeRows(connector, wanted, sight),
      })
    case 'materialized_views':
      return overCatalogs(catalogs, wanted, {
        column: NAMED.catalog,
        onLeftOut,
        rowsOf: (connector) => (connector.abilities.materializedViews ? materializedViews(connector, wanted, all) : Promise.resolve([])), // prettier-ignore
      })
    // No connector declares properties.
    case 'analyze_properties':
    case 'column_properties':
    case 'materialized_view_properties':
    case 'schema_properties':
    case 'table_properties':
      return []
    default:
      throw new Error(`Unknown table: ${JSON.stringify(table satisfies never)}`)
  }
}

const NAMED = { catalog: 'catalog_name', schema: 'schema_name', table: 'name' } as const

async function materializedViews(connector: Connector, wanted: Wanted, catalogs: Catalogs): Promise<SystemRow[]> {
  const found: ConnectorTable[] = []
  await ofTables(connector, wanted, NAMED, (table) => {
    if (table.materialized) found.push(table)
    return []
  })
  return Promise.all(
    found.map(async ({ schema, table, view, materialized, comment }) => {
      // A view over a table that cannot be read is not fresh; it must not hide the other views.
      const source = (from: SourceTable) =>
        catalogs
          .get(from.catalog)
          ?.getTable(from.schema, from.table)
          .catch(() => undefined)
      const freshness = await freshnessOf(materialized!, source)
      const { stored } = materialized!
      return {
        catalog_name: connector.catalog,
        schema_name: schema,
        name: table,
        storage_catalog: connector.catalog,
        storage_schema: schema,
        storage_table: `${table}$materialized_view_storage`,
        freshness,
        last_fresh_time: stored && freshness !== 'FRESH' ? new Date(stored.refreshedAt).toISOString() : null,
        comment: comment ?? '',
        definition: view!.sql.trimEnd(),
      }
    }),
  )
}
