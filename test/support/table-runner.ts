import { EngineError } from '../../src/shared/engine-error.ts'
import { DuckDBInstance } from '@duckdb/node-api'
import type { TableRead } from '../../src/planner/planned-statement.ts'
import { READ_ONLY, type ConnectorTable } from '../../src/connectors/spi/connector.ts'
import { languageSettings } from '../../src/execution/engine/sandbox.ts'
import { createStatementPlanner } from '../../src/planner/statement-planner.ts'
import type { MetadataPort, SessionContext } from '../../src/sql/front-end.ts'
import registerAll from '../../src/duckdb/scripts/register.ts'
import { withScans, wireRows, type RenderedScan } from './rendered-rows.ts'
import { recordedSession } from './sql/fixed-metadata.ts'
import { planText } from './plan-text.ts'

const session = recordedSession({
  user: 'somebody',
  catalog: 'memory',
  schema: 'default',
  startTimeMillis: Date.UTC(2024, 5, 1),
})

/** Statements over tables of a DuckDB in this process, with the settings, functions and walls of an engine. */
export interface TableRunner {
  /** A table with the rows of a query, stored by DuckDB, so that the planner knows no values of it. */
  createTable(name: string, query: string, options?: { readonly notNull?: readonly string[] }): Promise<void>
  /**
   * An older version of a table: another table of this runner.
   * @param today the names that its columns have today; those that are missing were dropped, with their last name
   */
  createVersion(
    name: string,
    version: number,
    stored: string,
    today: Readonly<Record<string, Pick<ConnectorTable['columns'][number], 'nameToday' | 'lastName'>>>,
  ): void
  /** A materialized view that was refreshed. @param stored the table with its rows */
  createMaterializedView(name: string, query: string, owner: string, stored: string): Promise<void>
  createView(
    name: string,
    query: string,
    view?: Pick<NonNullable<ConnectorTable['view']>, 'owner' | 'runAsInvoker'>,
  ): Promise<void>
  /** The rows in the form that a client gets. @throws EngineError */
  rows(sql: string, as?: Partial<SessionContext>): Promise<readonly (readonly unknown[])[]>
  /** The rows, or the name and message of the error. */
  outcome(sql: string, as?: Partial<SessionContext>): Promise<unknown>
  /** The rows that an INSERT or a change of rows would write, or the name and message of the error. */
  written(sql: string, as?: Partial<SessionContext>): Promise<unknown>
  /** DuckDB's text of the statement. */
  rendered(sql: string, as?: Partial<SessionContext>): Promise<string>
  /** The tables that the statement reads, and its plan. */
  reported(
    sql: string,
    as?: Partial<SessionContext>,
  ): Promise<{ readonly reads: readonly TableRead[]; readonly plan: string }>
  close(): void
}

export async function openTableRunner(settings: readonly string[] = languageSettings): Promise<TableRunner> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '2', memory_limit: '1GB' })
  const connection = await instance.connect()
  await registerAll(connection)
  for (const setting of settings) await connection.run(setting)
  const tables = new Map<string, ConnectorTable>()
  const versions = new Map<string, ConnectorTable>()
  const planner = createStatementPlanner()
  const metadata: MetadataPort = {
    catalogs: () => ['memory'],
    schemas: () => Promise.resolve(['default']),
    tables: () => Promise.resolve([...tables.values()].map(({ schema, table, kind }) => ({ schema, table, kind }))),
    async table(_, __, name, at) {
      if (at?.kind !== 'version') return tables.get(name)
      const version = versions.get(`${name} ${at.version}`)
      if (version) return version
      throw new EngineError('INVALID_ARGUMENTS', `Iceberg snapshot ID does not exists: ${at.version}`)
    },
    statistics: () => Promise.resolve({}),
    abilities: () => ({ ...READ_ONLY, insert: true, rowChanges: true, snapshots: true, materializedViews: true }),
  }
  const analyze = async (sql: string, as: Partial<SessionContext> = {}) => {
    const analyzed = await planText(planner, sql, { ...session, ...as }, metadata)
    if (analyzed.kind !== 'query') throw new Error(`${sql} is ${analyzed.kind}`)
    return analyzed
  }
  const storedAs = ({ table, handle }: RenderedScan): string => `stored_${String(handle['table'] ?? table)}`
  const rows = async (sql: string, as?: Partial<SessionContext>): Promise<unknown[][]> =>
    wireRows(connection, (await analyze(sql, as)).query, storedAs)
  const runner: TableRunner = {
    async createTable(name, sql, { notNull = [] } = {}) {
      const { query, columns } = await analyze(sql)
      await connection.run(`CREATE OR REPLACE TABLE stored_${name} AS ${withScans(query, storedAs)}`)
      tables.set(name, {
        schema: 'default',
        table: name,
        kind: 'TABLE',
        handle: { schema: 'default', table: name },
        columns: columns.map((column) => ({
          name: column.name,
          type: column.type,
          nullable: !notNull.includes(column.name),
        })),
      })
      // Columns of the query are named by position.
      const stored = await connection.runAndReadAll(`SELECT column_name FROM duckdb_columns() WHERE table_name = 'stored_${name}' ORDER BY column_index`) // prettier-ignore
      for (const [i, [held]] of stored.getRows().entries()) {
        await connection.run(`ALTER TABLE stored_${name} RENAME COLUMN "${String(held)}" TO "${columns[i]!.name}"`)
      }
    },
    createVersion(name, version, stored, today) {
      const table = tables.get(stored)!
      const columns = table.columns.map((column) => ({ ...column, ...today[column.name] }))
      versions.set(`${name} ${version}`, { ...table, version, columns })
    },
    async createMaterializedView(name, sql, owner, stored) {
      await runner.createView(name, sql, { owner })
      const view = tables.get(name)!
      const materialized = { stored: { refreshedAt: 0, sources: [] } }
      tables.set(name, { ...view, kind: 'TABLE', handle: { table: stored }, version: 1, materialized })
    },
    async createView(name, sql, view = {}) {
      const { columns } = await analyze(sql)
      tables.set(name, {
        schema: 'default',
        table: name,
        kind: 'VIEW',
        handle: {},
        columns: columns.map((column) => ({ name: column.name, type: column.type, nullable: true })),
        view: { sql, catalog: 'memory', schema: 'default', ...view },
      })
    },
    rows,
    outcome: (sql, as) => orError(() => rows(sql, as)),
    written: (sql, as) =>
      orError(async () => {
        const analyzed = await planText(planner, sql, { ...session, ...as }, metadata)
        if (analyzed.kind !== 'write' || !analyzed.source) throw new Error(`${sql} is ${analyzed.kind}`)
        return wireRows(connection, analyzed.source.query, storedAs)
      }),
    async reported(sql, as) {
      const { query } = await analyze(sql, as)
      return { reads: query.reads, plan: JSON.stringify(query.outline) }
    },
    rendered: async (sql, as) => (await analyze(sql, as)).query.sql,
    close() {
      connection.closeSync()
      instance.closeSync()
    },
  }
  return runner
}

async function orError(rows: () => Promise<unknown>): Promise<unknown> {
  try {
    return await rows()
  } catch (error) {
    const { errorName, message, cause } = error as { errorName?: string; message: string; cause?: unknown }
    return `${errorName ?? 'no name'}: ${cause === undefined ? message : String(cause)}`
  }
}
