import { EngineError } from '../../shared/engine-error.ts'
import { PARTITION_KEY } from '../spi/connector.ts'
import type {
  Connector,
  ConnectorColumn,
  ConnectorSplit,
  ConnectorTable,
  SchemaTableName,
  TableHandle,
} from '../spi/connector.ts'
import { Wanted, type ScanConditions } from '../spi/scan-conditions.ts'
import { seenConnector } from './seen-catalogs.ts'
import { hiddenInformationColumns, informationSchemaTables, type SystemColumns } from './information-schema-tables.ts'
import { loadedRows, rowArrays, rowsSource, type SystemRow } from './rows-source.ts'

const INFORMATION_SCHEMA = 'information_schema'
/** Marks handles and splits of `information_schema`, as opposed to the catalog's own. */
const MARK = '$informationSchema'

type InformationTable = keyof typeof informationSchemaTables

/** Adds `information_schema` to a catalog; its rows are listed when a task is about to read them. */
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
    ...(connector.remote && { remote: connector.remote }),
    ...(connector.forUser && { forUser: (user: string) => withInformationSchema(connector.forUser!(user)) }),
    async listSchemas() {
      return [...new Set([...(await connector.listSchemas()), INFORMATION_SCHEMA])]
    },
    async listTables(schema, named) {
      if (schema === INFORMATION_SCHEMA) return informationTables()
      const tables = await connector.listTables(schema, named)
      return schema === undefined ? [...tables, ...informationTables()] : tables
    },
    async getTable(schema, table, at) {
      if (schema !== INFORMATION_SCHEMA) return connector.getTable(schema, table, at)
      if (at !== undefined) throw new EngineError('NOT_SUPPORTED', 'This connector does not support versioned tables')
      return isInformationTable(table) ? informationTable(table) : undefined
    },
    ...(connector.describeTables && {
      async describeTables(schema, named, take, columns) {
        if (schema !== INFORMATION_SCHEMA) return connector.describeTables!(schema, named, take, columns)
        for (const table of Object.keys(informationSchemaTables)) {
          if (isInformationTable(table) && named(table)) take(informationTable(table))
        }
      },
    }),
    getStatistics: async (handle) => (ours(handle) ? {} : connector.getStatistics(handle)),
    ...(connector.getColumnStatistics && {
      getColumnStatistics: async (handle) => (ours(handle) ? {} : connector.getColumnStatistics!(handle)),
    }),
    async listSplits(handle, where, question, columns, partitions) {
      const table = ours(handle)
      if (!table) return connector.listSplits(handle, where, question, columns, partitions)
      return [{ catalog, data: { [MARK]: table, ...(where && { where }) } }]
    },
    async loadSplits(splits, wanted, asker) {
      const table = splits[0] && ours(splits[0].data)
      if (!table) return connector.loadSplits?.(splits, wanted, asker) ?? splits
      const listed = await rowsOf(
        seenConnector(withInformationSchema(connector), asker),
        table,
        wantedOf(splits[0]!.data),
        wanted,
      )
      const rows = rowArrays(informationSchemaTables[table], listed, wanted)
      return [{ catalog, data: { [MARK]: table, rows }, rows: rows.length }]
    },
    async tableSource(splits, columns, options) {
      const table = splits[0] && ours(splits[0].data)
      if (!table) return connector.tableSource(splits, columns, options)
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
    columns: connectorColumns(informationSchemaTables[table]).map((column) =>
      hiddenInformationColumns[table]?.includes(column.name) === true ? { ...column, hidden: true } : column,
    ),
  }
}

export function connectorColumns(columns: SystemColumns): ConnectorColumn[] {
  return Object.entries(columns).map(([name, type]) => ({ name, type, nullable: true }))
}

/** The columns that name a row's table. */
export interface NameColumns {
  readonly schema: string
  readonly table: string
}

const NAME_COLUMNS: NameColumns = { schema: 'table_schema', table: 'table_name' }

/** @param read columns that the statement reads; absent: all */
async function rowsOf(
  connector: Connector,
  table: InformationTable,
  wanted: Wanted,
  read: readonly string[] | undefined,
): Promise<SystemRow[]> {
  const { catalog } = connector
  if (!wanted.has(table === 'schemata' ? 'catalog_name' : 'table_catalog', catalog)) return []
  switch (table) {
    case 'schemata':
      return (await connector.listSchemas())
        .filter((schema) => wanted.has('schema_name', schema))
        .map((schema) => ({ catalog_name: catalog, schema_name: schema }))
    case 'tables': {
      const tables = await namedTables(connector, wanted, NAME_COLUMNS)
      // Comments of tables of another server are not known.
      const skipped = connector.remote !== undefined || read?.includes('table_comment') === false
      const comments = skipped ? undefined : await commentsOf(connector, tables)
      return tables.map(({ schema, table: name, kind }, i) => ({
        table_catalog: catalog,
        table_schema: schema,
        table_name: name,
        table_type: kind === 'VIEW' ? 'VIEW' : 'BASE TABLE',
        ...(comments && { table_comment: comments[i] ?? null }),
      }))
    }
    case 'columns':
      return ofTables(
        connector,
        wanted,
        NAME_COLUMNS,
        ({ schema, table: name, columns }) =>
          visible(columns).flatMap((column, index) =>
            wanted.has('column_name', column.name)
              ? [
                  {
                    table_catalog: catalog,
                    table_schema: schema,
                    table_name: name,
                    column_name: column.name,
                    ordinal_position: index + 1,
                    is_nullable: column.nullable ? 'YES' : 'NO',
                    data_type: displayType(column.type),
                    // Trino shows a comment under both names.
                    comment: commentOf(column),
                    extra_info: column.partitionKey === true ? PARTITION_KEY : null,
                    column_comment: commentOf(column),
                  },
                ]
              : [],
          ),
        wanted.values('column_name'),
      )
    case 'views':
      return ofTables(connector, wanted, NAME_COLUMNS, ({ schema, table: name, view, materialized }) =>
        view && !materialized
          ? [{ table_catalog: catalog, table_schema: schema, table_name: name, view_definition: view.sql }]
          : [],
      )
    // Catalogs have no roles and no grants.
    case 'applicable_roles':
    case 'enabled_roles':
    case 'roles':
    case 'table_privileges':
      return []
    default:
      throw new Error(`Unknown table: ${JSON.stringify(table satisfies never)}`)
  }
}

function commentOf({ comment }: ConnectorColumn): string | null {
  return comment === undefined || comment === '' ? null : comment
}

/** The comments of tables, in their order; undefined for a table that cannot be read. */
async function commentsOf(
  connector: Connector,
  tables: readonly (SchemaTableName | ConnectorTable)[],
): Promise<readonly (string | undefined)[]> {
  const comments: (string | undefined)[] = []
  for (let from = 0; from < tables.length; from += DESCRIBED_AT_ONCE) {
    const found = await Promise.all(
      tables
        .slice(from, from + DESCRIBED_AT_ONCE)
        .map((one) => ('columns' in one ? one : described(connector, one, async () => undefined))),
    )
    comments.push(...found.map((table) => table?.comment))
  }
  return comments
}

/** The largest number of tables that are looked up one by one when the statement names them wholly. */
const MOST_LOOKED_UP = 100
/** The number of tables that are described at a time: their unwanted parts are freed before the next tables. */
const DESCRIBED_AT_ONCE = 16

/** The tables whose rows may be wanted, with their description if they were looked up. */
export async function namedTables(
  connector: Connector,
  wanted: Wanted,
  nameColumns: NameColumns,
): Promise<readonly (SchemaTableName | ConnectorTable)[]> {
  // A request to another server for each table would be slow. Its lists are cached.
  const found = connector.remote ? undefined : await lookedUp(connector, wanted, nameColumns)
  if (found !== undefined) return found
  const named = (name: string): boolean => wanted.has(nameColumns.table, name)
  // Another server lists all its schemas in one answer.
  if (connector.remote && !wanted.values(nameColumns.schema)) {
    const listed = await connector.listTables(undefined, named)
    return listed.filter((one) => named(one.table) && wanted.has(nameColumns.schema, one.schema))
  }
  const listed = await wantedSchemas(connector, wanted, nameColumns)
  const perSchema = await Promise.all(listed.map((one) => connector.listTables(one, named)))
  return perSchema.flat().filter((one) => named(one.table))
}

/** The tables that the statement names wholly; undefined if they are too many, or not named wholly. */
async function lookedUp(
  connector: Connector,
  wanted: Wanted,
  { schema, table }: NameColumns,
): Promise<readonly (SchemaTableName | ConnectorTable)[] | undefined> {
  const [schemas, tables] = [lowerCase(wanted.values(schema)), lowerCase(wanted.values(table))]
  if (!schemas || !tables || schemas.length * tables.length > MOST_LOOKED_UP) return undefined
  const pairs = schemas.flatMap((one) => tables.map((name) => [one, name] as const))
  const found = await Promise.all(pairs.map(([one, name]) => lookUp(connector, one, name)))
  return found.filter((one) => one !== undefined)
}

async function wantedSchemas(
  connector: Connector,
  wanted: Wanted,
  { schema }: NameColumns,
): Promise<readonly string[]> {
  return lowerCase(wanted.values(schema)) ?? (await connector.listSchemas()).filter((one) => wanted.has(schema, one))
}

/** Looks a table up; a table that cannot be read is returned by its name alone, if it is listed. */
function lookUp(
  connector: Connector,
  schema: string,
  table: string,
): Promise<SchemaTableName | ConnectorTable | undefined> {
  return described(connector, { schema, table }, async () =>
    (await connector.listTables(schema, (name) => name === table)).find((listed) => listed.table === table),
  )
}

/**
 * The description of a table, or the result of `otherwise` if the table cannot be read.
 * @throws the error of another server, which may be away: a client must not believe that the table has no columns
 */
async function described<T>(
  connector: Connector,
  { schema, table }: Pick<SchemaTableName, 'schema' | 'table'>,
  otherwise: () => Promise<T>,
): Promise<ConnectorTable | T | undefined> {
  try {
    return await connector.getTable(schema, table)
  } catch (error) {
    if (connector.remote) throw error
    return otherwise()
  }
}

/**
 * Rows of each wanted table. A table that cannot be read has no rows, as it has no columns that a client could use. If
 * another server cannot be asked, its error is thrown.
 * @param columns only tables with at least one of these columns have rows; absent: all tables
 */
export async function ofTables(
  connector: Connector,
  wanted: Wanted,
  nameColumns: NameColumns,
  rowsOfTable: (table: ConnectorTable) => readonly SystemRow[],
  columns?: readonly string[],
): Promise<SystemRow[]> {
  const rows: SystemRow[] = []
  const take = (table: ConnectorTable): void => void rows.push(...rowsOfTable(table))
  const found = connector.describeTables ? await lookedUp(connector, wanted, nameColumns) : undefined
  if (connector.describeTables && found === undefined) {
    for (const schema of await wantedSchemas(connector, wanted, nameColumns)) {
      await connector.describeTables(schema, (name) => wanted.has(nameColumns.table, name), take, columns)
    }
    return rows
  }
  const names = found ?? (await namedTables(connector, wanted, nameColumns))
  for (let from = 0; from < names.length; from += DESCRIBED_AT_ONCE) {
    const tables = await Promise.all(
      names
        .slice(from, from + DESCRIBED_AT_ONCE)
        .map((name) => ('columns' in name ? name : described(connector, name, async () => undefined))),
    )
    for (const table of tables) if (table) take(table)
  }
  return rows
}

/** The names that are lower case: no object has any other name, though a connector may find it by one. */
function lowerCase(names: readonly string[] | undefined): readonly string[] | undefined {
  return names?.filter((name) => name === name.toLowerCase())
}

/** The conditions that a split was planned with; none in splits of an older coordinator. */
export function wantedOf(data: ConnectorSplit['data']): Wanted {
  return new Wanted(data['where'] as ScanConditions | undefined)
}

export function visible(columns: readonly ConnectorColumn[]): ConnectorColumn[] {
  return columns.filter((column) => column.hidden !== true)
}

/** The type as `typeof` and DESCRIBE write it: decimals without a blank. */
export function displayType(type: string): string {
  return type.replaceAll(/\bdecimal\((\d+), (\d+)\)/g, 'decimal($1,$2)')
}
