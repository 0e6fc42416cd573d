import pg from 'pg'
import type { EventLog } from '../../../src/events/event-log.ts'
import { FoldedEventLog } from '../../../src/events/folded-event-log.ts'
import { formatSeen } from '../../../src/events/fold.ts'
import { migrate } from '../../../src/events/postgres/migrate.ts'
import { PostgresRecordStore } from '../../../src/events/postgres/postgres-record-store.ts'
import type { RecordStore, StoredRecord } from '../../../src/events/record-store.ts'
import { startFaultProxy, type FaultProxy } from '../fault-proxy.ts'
import { sharedPostgres, startPostgres, type TestPostgres } from '../postgres.ts'
import {
  openedQuietly,
  type Broken,
  type FixtureOptions,
  type LogAdapter,
  type LogFixture,
  type OpenOptions,
} from './log-fixture.ts'
import { spawnLogProcess, type LogProcess } from './log-process.ts'
import { createMigratedDatabase } from './migrated-database.ts'

export const postgresAdapter: LogAdapter = { technology: 'postgres', fixture: createPostgresFixture }

async function createPostgresFixture(options: FixtureOptions = {}, broken: Broken = {}): Promise<LogFixture> {
  const server: TestPostgres = options.ownServer ? await startPostgres() : await sharedPostgres()
  const database = options.ownServer ? await server.createDatabase() : await createMigratedDatabase()
  if (options.ownServer) await migrate({ connectionString: database.url })
  const logs: EventLog[] = []
  const stores: RecordStore[] = []
  const proxies: FaultProxy[] = []
  const processes: LogProcess[] = []
  const connectionOf = (via: FaultProxy | undefined): pg.ClientConfig => {
    const url = new URL(database.url)
    if (via) url.port = String(via.port)
    return { connectionString: url.href }
  }
  const sql = async (text: string, values: unknown[] = []): Promise<pg.QueryResult> => {
    const client = new pg.Client(database.url)
    await client.connect()
    try {
      return await client.query(text, values)
    } finally {
      await client.end()
    }
  }
  return {
    technology: 'postgres',
    partitions: 1,
    details: { url: database.url },
    async open(open: OpenOptions = {}) {
      const config = connectionOf(open.via)
      const store = broken.postgresStore?.(config, open) ?? new PostgresRecordStore(config, open)
      const log = openedQuietly(new FoldedEventLog(store, open, broken.seams), broken)
      await log.open()
      logs.push(log)
      return log
    },
    async store(open: OpenOptions = {}) {
      const store = new PostgresRecordStore(connectionOf(open.via), open)
      await store.open()
      stores.push(store)
      return store
    },
    async proxy() {
      const proxy = await startFaultProxy({ host: server.host, port: server.port })
      proxies.push(proxy)
      return proxy
    },
    async spawn() {
      const process = await spawnLogProcess({
        technology: 'postgres',
        connection: connectionOf(undefined),
        split: broken.splitInProcess,
      })
      processes.push(process)
      return process
    },
    async putForeign(text) {
      await sql(
        `insert into quipu_log.events (position, kind, epoch, writer, number, stream, sequence, time, seen, data)
         select coalesce(max(position) + 1, 0), 'event', 1, 'nobody', 1, 'foreign', 1, now(), '', $1
         from quipu_log.events`,
        [text],
      )
    },
    server: options.ownServer
      ? { kill: () => server.kill('SIGKILL'), start: () => server.start(), freeze: () => server.freeze() }
      : undefined,
    async restore(records: readonly StoredRecord[]) {
      await sql('truncate quipu_log.events')
      for (const { offset, header, stream, text } of records)
        await sql(
          `insert into quipu_log.events (position, kind, epoch, writer, number, stream, sequence, time, seen, data)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
          [
            String(offset),
            header!.kind,
            header!.epoch,
            header!.writer,
            header!.number,
            stream,
            (JSON.parse(text) as { sequence?: number }).sequence ?? 0,
            (JSON.parse(text) as { time: string }).time,
            formatSeen(header!.seen),
            text,
          ],
        )
    },
    deleteDatabase: () => Promise.reject(new Error('With Postgres the database is the log')),
    async close() {
      await Promise.all(processes.map((each) => each.kill()))
      for (const proxy of proxies) proxy.release()
      await Promise.all([...logs, ...stores].map((each) => each.close()))
      await Promise.all(proxies.map((each) => each.close()))
      if (options.ownServer) await server.stop()
      else await database.drop()
    },
  }
}
