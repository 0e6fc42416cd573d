import { readFileSync } from 'node:fs'
import { duckdbTypeOf } from '../../src/processes/connector-factories.ts'
import { tpchConnector } from '../../src/connectors/tpch/tpch-connector.ts'
import { tpchTables } from '../../src/connectors/tpch/tables.ts'
import { READ_ONLY, type ConnectorTable } from '../../src/connectors/spi/connector.ts'
import { createStatementPlanner } from '../../src/planner/statement-planner.ts'
import type { PlannedStatement } from '../../src/planner/planned-statement.ts'
import type { MetadataPort, ResultColumn } from '../../src/sql/front-end.ts'
import type { SessionContext } from '../../src/sql/session.ts'
import { scanText } from '../../src/execution/engine/scan-text.ts'
import { openEngineConnection } from './duckdb-in-process.ts'
import { wireRows, type RenderedScan } from './rendered-rows.ts'
import { recordedSession } from './sql/fixed-metadata.ts'
import { planText } from './plan-text.ts'

const root = new URL('../../', import.meta.url).pathname

/** The session in which the corpus was recorded. */
export const corpusSession = recordedSession({ startTimeMillis: Date.UTC(2024, 5, 1, 12, 34, 56, 789) })

export interface LibraryRunner {
  readonly metadata: MetadataPort
  analyze(sql: string, session?: SessionContext): Promise<PlannedStatement>
  /** Columns and rows of a statement; without a result there are no columns. @throws EngineError */
  run(sql: string, session?: SessionContext): Promise<{ columns: readonly ResultColumn[]; rows: readonly unknown[][] }>
  close(): void
}

/** The front end over TPC-H `tiny` and the system tables of catalogs. A DuckDB in this process runs its SQL. */
export async function openLibraryRunner(): Promise<LibraryRunner> {
  const { connection, close } = await openEngineConnection()
  const tpch = tpchConnector.create(
    'tpch',
    { connector: 'tpch' },
    {
      dataDir: '/nonexistent',
      shippedDir: `${root}etc`,
      tablesDir: `${root}tables`,
      duckdbType: duckdbTypeOf,
      catalogDir: `${root}etc/catalog`,
      inspect: () => Promise.reject(new Error('no files are asked for')),
    },
  )
  for (const [table, { columns }] of Object.entries(tpchTables)) {
    const { handle } = (await tpch.getTable('tiny', table))!
    const names = columns.map(([name]) => name)
    const source = await tpch.tableSource(await tpch.listSplits(handle), names)
    await connection.run(`CREATE TABLE tpch_tiny_${table} AS ${scanText(source)}`)
  }
  const metadata = testMetadata()
  const planner = createStatementPlanner()
  // Nation and region are the same at every scale.
  const sourceOf = ({ schema, table }: RenderedScan): string =>
    tpchTables[table] !== undefined ? `tpch_tiny_${table}` : `(${catalogRows(schema, table)})`
  return {
    metadata,
    analyze: (sql, session = corpusSession) => planText(planner, sql, session, metadata),
    async run(sql, session = corpusSession) {
      const analyzed = await planText(planner, sql, session, metadata)
      if (analyzed.kind === 'query')
        return { columns: analyzed.columns, rows: await wireRows(connection, analyzed.query, sourceOf) }
      const valid = analyzed.kind === 'explain' && analyzed.planType === 'VALIDATE'
      return { columns: 'columns' in analyzed ? analyzed.columns : [], rows: valid ? [[true]] : [] }
    },
    close,
  }
}

const informationSchema = readFileSync(`${root}test/fixtures/system-tables.tsv`, 'utf8')
  .split('\n')
  .slice(1)
  .map((line) => line.split('\t'))
  .filter(([catalog]) => catalog === '(every catalog)' || catalog === 'system')

const schemas = ['information_schema', 'sf1', 'tiny']

/** The catalogs `tpch` (schemas tiny and sf1), `memory` (one table, as in the recording of the errors) and `system`. */
function testMetadata(): MetadataPort {
  const table = (catalog: string, schema: string, name: string): ConnectorTable | undefined => {
    const make = (columns: readonly (readonly [string, string])[], nullable: boolean): ConnectorTable => ({
      schema,
      table: name,
      kind: 'TABLE',
      handle: { schema, table: name },
      columns: columns.map(([column, type]) => ({ name: column, type, nullable })),
    })
    if (catalog === 'tpch' && (schema === 'tiny' || schema === 'sf1')) {
      const found = tpchTables[name]
      return found && make(found.columns, false)
    }
    if (catalog === 'memory' && schema === 'default' && name === 's3_a') {
      return make([['a', 'bigint'], ['b', 'varchar(5)'], ['c', 'decimal(5,2)']], true) // prettier-ignore
    }
    const rows = informationSchema.filter(
      ([at, itsSchema, itsTable]) =>
        itsSchema === schema && itsTable === name && (at === '(every catalog)' || at === catalog),
    )
    return rows.length === 0
      ? undefined
      : make(
          rows.map((row) => [row[3]!, row[4]!] as const),
          true,
        )
  }
  const tables = (catalog: string, schema: string): string[] => {
    if (catalog === 'tpch' && (schema === 'tiny' || schema === 'sf1')) return Object.keys(tpchTables)
    if (catalog === 'memory' && schema === 'default') return ['s3_a']
    return [...new Set(informationSchema.filter(([, itsSchema]) => itsSchema === schema).map((row) => row[2]!))]
  }
  const schemasOf = (catalog: string): readonly string[] =>
    catalog === 'tpch'
      ? schemas
      : catalog === 'memory'
        ? ['default', 'information_schema']
        : ['information_schema', 'jdbc', 'metadata', 'runtime']
  return {
    catalogs: () => ['memory', 'system', 'tpch'],
    schemas: (catalog) => Promise.resolve(schemasOf(catalog)),
    tables: (catalog, schema) =>
      Promise.resolve(
        (schema === undefined ? schemasOf(catalog) : [schema]).flatMap((each) =>
          tables(catalog, each).map((name) => ({ schema: each, table: name, kind: 'TABLE' as const })),
        ),
      ),
    table: (catalog, schema, name) => Promise.resolve(table(catalog, schema, name)),
    statistics: () => Promise.resolve({}),
    abilities: () => READ_ONLY,
  }
}

/** The rows of information_schema for the TPC-H schemas. Other system tables are empty. */
function catalogRows(schema: string, table: string): string {
  const values = (rows: readonly (readonly (string | number | null)[])[], columns: readonly string[]): string => {
    const text = rows.map(
      (row) =>
        `(${row.map((value) => (value === null ? 'NULL' : typeof value === 'number' ? `${value}::BIGINT` : `'${value}'`)).join(', ')})`,
    )
    return `SELECT * FROM (VALUES ${text.join(', ')}) t(${columns.map((column) => `"${column}"`).join(', ')})`
  }
  if (schema === 'information_schema') {
    const allTables = ['tiny', 'sf1'].flatMap((each) => Object.keys(tpchTables).map((name) => [each, name] as const))
    const own = [...new Set(informationSchema.filter((row) => row[1] === schema).map((row) => row[2]!))]
    switch (table) {
      case 'tables':
        return values(
          [...allTables, ...own.map((name) => [schema, name] as const)].map(([s, t]) => ['tpch', s, t, 'BASE TABLE']),
          ['table_catalog', 'table_schema', 'table_name', 'table_type'],
        )
      case 'columns':
        return values(
          allTables.flatMap(([s, t]) =>
            tpchTables[t]!.columns.map(([name, type], i) => ['tpch', s, t, name, i + 1, null, 'NO', type]),
          ),
          [
            'table_catalog',
            'table_schema',
            'table_name',
            'column_name',
            'ordinal_position',
            'column_default',
            'is_nullable',
            'data_type',
          ],
        )
      case 'schemata':
        return values(
          schemas.map((each) => ['tpch', each]),
          ['catalog_name', 'schema_name'],
        )
    }
  }
  const columns = informationSchema.filter((row) => row[1] === schema && row[2] === table)
  return `SELECT ${columns.map((row) => `NULL::${row[4] === 'bigint' ? 'BIGINT' : 'VARCHAR'} AS "${row[3]}"`).join(', ')} WHERE false`
}
