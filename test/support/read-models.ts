import pg from 'pg'
import { migrate } from '../../src/events/postgres/migrate.ts'
import { createPostgresEventLog } from '../../src/events/postgres/postgres-event-log.ts'
import type { EventLogOptions } from '../../src/events/folded-event-log.ts'
import type { EventLog } from '../../src/events/event-log.ts'
import type { Projection, QueryRows } from '../../src/events/projection.ts'
import {
  createProjectionRunner,
  type ProjectionRunner,
  type ProjectionRunnerOptions,
} from '../../src/events/projection-runner.ts'
import { createParquetEngine } from '../../src/readmodels/archive/parquet-engine.ts'
import { createStoredQueries, type StoredQueries } from '../../src/readmodels/queries/stored-queries.ts'
import { createReadModelsProjection } from '../../src/readmodels/projection.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { createMigratedDatabase } from './event-log/migrated-database.ts'
import type { TestDatabase, TestPostgres } from './postgres.ts'

export interface ReadModelBed {
  readonly database: TestDatabase
  readonly config: pg.ClientConfig
  /** The claimed log, ready for appends. */
  readonly log: EventLog
  /** A pool with the read models first in the search path. */
  readonly pool: pg.Pool
  query<R extends pg.QueryResultRow = Record<string, unknown>>(text: string, values?: unknown[]): Promise<R[]>
  startRunner(options?: Partial<ProjectionRunnerOptions>, projection?: Projection): Promise<ProjectionRunner>
  close(): Promise<void>
  /** As `close`, but the database stays. */
  leave(): Promise<void>
}

/**
 * A migrated database with a claimed Postgres log. Closing it ends everything that was started from it.
 * @param where a separate server that the test may kill, or a database that has been used before; by default the shared
 *   server
 */
export async function openReadModelBed(
  where?: TestPostgres | TestDatabase,
  hooks: EventLogOptions = {},
): Promise<ReadModelBed> {
  const server = where && 'createDatabase' in where ? where : undefined
  const database = where && 'drop' in where ? where : await (server?.createDatabase() ?? createMigratedDatabase())
  const config: pg.ClientConfig = { connectionString: database.url }
  if (server) await migrate(config)
  // Times in a log never go back. A constant clock lets tests choose the times of their events.
  const log = createPostgresEventLog(config, { now: () => Date.parse('2026-01-01T00:00:00Z'), ...hooks })
  await log.open()
  await log.claim({ address: 'http://127.0.0.1:8080', version: 'test' })
  const pool = new pg.Pool({ ...config, options: '-c search_path=m,public', max: 4 })
  pool.on('error', () => undefined)
  const runners: ProjectionRunner[] = []
  async function leave(): Promise<void> {
    for (const runner of runners) await runner.stop()
    await pool.end()
    await log.close()
  }
  return {
    database,
    config,
    log,
    pool,
    async query<R extends pg.QueryResultRow>(text: string, values: unknown[] = []) {
      return (await pool.query<R>(text, values)).rows
    },
    async startRunner(options = {}, projection = createReadModelsProjection()) {
      const runner = createProjectionRunner({
        log,
        projection,
        database: config,
        clock: systemClock,
        lingerMs: 5,
        ...options,
      })
      runners.push(runner)
      await runner.start()
      return runner
    },
    leave,
    async close() {
      await leave()
      await database.drop()
    },
  }
}

/** The stored queries of a bed without an archive, so that no file is ever read. */
export function storedIn(read: QueryRows): StoredQueries {
  return createStoredQueries(read, { engine: createParquetEngine('/nowhere'), folder: '/nowhere', limitMs: 10_000 })
}

/** A hash over the rows of each table, in any order. */
export async function tableHashes(bed: ReadModelBed, schema = 'm'): Promise<Record<string, string>> {
  const tables = [
    'queries',
    'stages',
    'tasks',
    'operators',
    'nodes',
    'clusters',
    'table_access',
    'audit_log',
    'query_events',
  ]
  const hashes: Record<string, string> = {}
  for (const table of tables) {
    const [row] = await bed.query<{ count: string; hash: string }>(
      `select count(*), md5(coalesce(string_agg(t::text, '|' order by t::text collate "C"), '')) as hash from ${schema}.${table} t`,
    )
    hashes[table] = `${row!.count} rows ${row!.hash}`
  }
  return hashes
}

/** Runs queries on the read models, and keeps the plan of the last one. @param bed is opened before the first query */
export function explainedQueries(bed: () => Pick<ReadModelBed, 'query'>): {
  readonly query: QueryRows
  readonly plan: () => string
} {
  let plan = ''
  return {
    async query(text, values) {
      const lines = await bed().query<{ 'QUERY PLAN': string }>(`explain ${text}`, [...values])
      plan = lines.map((line) => line['QUERY PLAN']).join('\n')
      return bed().query(text, [...values])
    },
    plan: () => plan,
  }
}
