import pg from 'pg'
import type { Config } from '../config/load-config.ts'
import type { KeyRing } from '../events/data-keys/key-ring.ts'
import { EventLogError, type EventLog } from '../events/event-log.ts'
import { migrate, READ_MODEL_SCHEMA } from '../events/postgres/migrate.ts'
import type { QueryRows } from '../events/projection.ts'
import type { RecordStore } from '../events/record-store.ts'
import { dataKeysOf, eventLogOf, recordStoreOf } from '../processes/event-log/event-log-of.ts'
import { createLoneFollower, type LoneFollower } from '../processes/event-log/lone-follower.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { openDatabase } from './open-database.ts'

/** The parts of Quipu's data. Each is opened on first use and closed when the command ends. */
export interface CommandDeps {
  readonly config: Config
  readonly databaseUrl: string
  readonly database: { readonly connectionString: string }
  /** Migrates the tables to this program's version. */
  migrated(): Promise<void>
  log(): Promise<EventLog>
  /** The records of the log; with the keys of queries if the command also forgets some. */
  records(options?: {
    readonly withKeys: boolean
  }): Promise<{ readonly store: RecordStore; readonly partitions: number }>
  /** The keys that queries are encrypted with, if the log has any. */
  dataKeys(): Promise<KeyRing | undefined>
  /** A connection to the read models. */
  readModels(): Promise<QueryRows>
  /** Makes the read models follow the log where no coordinator does. */
  follower(log: EventLog): LoneFollower
}

/**
 * Runs a command's work on the database and the log of its settings. Closes at the end all that was opened, the last
 * part first.
 * @throws ExitError 69 when the log or the database fails
 */
export async function openForCommand<T>(config: Config, work: (deps: CommandDeps) => Promise<T>): Promise<T> {
  const closes: (() => Promise<void>)[] = []
  const { url: databaseUrl, close } = await openDatabase(config)
  closes.push(close)
  const database = { connectionString: databaseUrl }
  let opened: Promise<EventLog> | undefined
  async function openLog(): Promise<EventLog> {
    const log = await eventLogOf(config, databaseUrl, {})
    closes.push(() => log.close())
    await log.open()
    return log
  }
  try {
    return await work({
      config,
      databaseUrl,
      database,
      async migrated() {
        await migrate(database).catch((error: Error) => {
          throw new ExitError(exitCodes.dependency, `Cannot use Postgres: ${error.message}`)
        })
      },
      log: () => (opened ??= openLog()),
      async records(options) {
        const store = await recordStoreOf(config, databaseUrl, options)
        closes.push(() => store.close())
        const { partitions } = await store.open()
        return { store, partitions }
      },
      async dataKeys() {
        const held = await dataKeysOf(config, databaseUrl)
        if (held === undefined) return undefined
        closes.push(() => held.close())
        await held.keys.open()
        await held.keys.refresh()
        return held.keys
      },
      async readModels() {
        const client = new pg.Client({ ...database, options: `-c search_path=${READ_MODEL_SCHEMA},public` })
        client.on('error', () => {})
        closes.push(() => client.end().catch(() => {}))
        await client.connect()
        return async (text, values) => (await client.query<Record<string, unknown>>(text, [...values])).rows
      },
      follower(log) {
        const follower = createLoneFollower(log, databaseUrl)
        closes.push(() => follower.stop())
        return follower
      },
    })
  } catch (error) {
    if (error instanceof EventLogError) throw new ExitError(exitCodes.dependency, error.message)
    throw error
  } finally {
    for (const closeOne of closes.toReversed()) await closeOne()
  }
}
