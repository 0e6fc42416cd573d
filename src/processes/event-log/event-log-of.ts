import { join } from 'node:path'
import pg from 'pg'
import type { Config } from '../../config/load-config.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { KafkaRequest } from '../../events/kafka/ports.ts'
import type { EventLogOptions } from '../../events/folded-event-log.ts'
import type { DataKeyOptions } from '../../events/kafka-beside-postgres.ts'
import type { KeyRing } from '../../events/data-keys/key-ring.ts'
import type { RecordStore } from '../../events/record-store.ts'
import { isPersonalEvent } from '../../coordinator/system/events.ts'
import { isQueryId } from '../../shared/ids.ts'
import { archivedLogs, archivesOf } from './archives-of.ts'
import { kafkaSecurityOf } from './kafka-security.ts'

/**
 * The event log that the configuration names, not opened: Kafka if there are brokers, else the table in Postgres.
 * @param databaseUrl of the Postgres in use, which may be the embedded one
 */
export async function eventLogOf(
  config: Config,
  databaseUrl: string,
  options: EventLogOptions & {
    readonly onKafkaRequest?: (request: KafkaRequest) => void
    /** Key that encrypts pages in Kafka; absent if only events are read. */
    readonly pagesKey?: Buffer
    /** Given by a coordinator: it keeps the keys of queries in its data folder. */
    readonly dataKeys?: Pick<DataKeyOptions, 'openWaitMs'>
  },
): Promise<EventLog> {
  // Each log is loaded only if it is used: kafkajs alone costs a tenth of a second at every start.
  if (config.kafkaBrokers.length > 0) {
    const { createKafkaEventLog } = await import('../../events/kafka-beside-postgres.ts')
    const database = { connectionString: databaseUrl }
    const { onKafkaRequest, pagesKey, dataKeys } = options
    return createKafkaEventLog(
      {
        brokers: config.kafkaBrokers,
        ...kafkaSecurityOf(config),
        topic: config.kafkaTopic,
        database,
        dataKeys: { ...dataKeyOptions(config, dataKeys !== undefined), ...dataKeys },
        ...(pagesKey ? { pages: { key: pagesKey } } : {}),
        ...(onKafkaRequest ? { onRequest: onKafkaRequest } : {}),
      },
      { ...options, ...archivesFor(config) },
    )
  }
  const { createPostgresEventLog } = await import('../../events/postgres/postgres-event-log.ts')
  return createPostgresEventLog({ connectionString: databaseUrl }, { ...options, ...archivesFor(config) })
}

function archivesFor(config: Config): Pick<EventLogOptions, 'archiveOf' | 'archivedLogs'> {
  return { archiveOf: archivesOf(config), archivedLogs: () => archivedLogs(config) }
}

function dataKeyOptions({ dataDir }: Config, keepsFile: boolean): DataKeyOptions {
  return { file: join(dataDir, 'data-keys.jsonl'), keepsFile, encrypts: isQueryId, encryptsAlone: isPersonalEvent }
}

/** The keys of queries, if the log has any, and a function that closes their database. */
export async function dataKeysOf(
  config: Config,
  databaseUrl: string,
): Promise<{ readonly keys: KeyRing; close(): Promise<void> } | undefined> {
  if (config.kafkaBrokers.length === 0) return undefined
  const { createKeyRing } = await import('../../events/kafka-beside-postgres.ts')
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  pool.on('error', () => {})
  const keys = createKeyRing(pool, config.kafkaTopic, dataKeyOptions(config, false))
  return {
    keys,
    async close() {
      keys.close()
      await pool.end()
    },
  }
}

export interface KeysOfTopics {
  readonly ring: KeyRing
  /** Copies the keys into another database, which is migrated. */
  copyInto(database: string): Promise<void>
  close(): Promise<void>
}

/** The keys of all topics in the database of the settings and in the data folder. */
export async function keysOfTopics(config: Config): Promise<KeysOfTopics> {
  const [{ KeyRing }, { KeyTable }] = await Promise.all([
    import('../../events/data-keys/key-ring.ts'),
    import('../../events/data-keys/key-table.ts'),
  ])
  const pools: pg.Pool[] = []
  const tableIn = (database: string): InstanceType<typeof KeyTable> => {
    const pool = new pg.Pool({ connectionString: database, max: 1 })
    pool.on('error', () => {})
    pools.push(pool)
    return new KeyTable(pool, undefined)
  }
  const nowhere = { stamp: async () => '', read: async () => [], add: async () => {}, forget: async () => {} }
  const ring = new KeyRing({
    table: config.databaseUrl === undefined ? nowhere : tableIn(config.databaseUrl),
    file: dataKeyOptions(config, false).file,
    keepsFile: false,
    log: undefined,
    encrypts: isQueryId,
    openWaitMs: 30_000,
  })
  await ring.open()
  return {
    ring,
    copyInto: (database) => tableIn(database).add(ring.blocks),
    async close() {
      ring.close()
      for (const pool of pools) await pool.end()
    },
  }
}

/**
 * The records of that event log as an audit reads them. `withKeys`: also with the means to decrypt and forget them. Not
 * opened.
 */
export async function recordStoreOf(
  config: Config,
  databaseUrl: string,
  { withKeys = false }: { readonly withKeys?: boolean } = {},
): Promise<RecordStore> {
  const database = { connectionString: databaseUrl }
  if (config.kafkaBrokers.length > 0) {
    const { KafkaStoreBesidePostgres } = await import('../../events/kafka-beside-postgres.ts')
    const { kafkaBrokers: brokers, kafkaTopic: topic } = config
    const dataKeys = withKeys && { dataKeys: dataKeyOptions(config, false) }
    return new KafkaStoreBesidePostgres(
      { brokers, topic, database, ...kafkaSecurityOf(config), ...dataKeys },
      archivesFor(config),
    )
  }
  const { PostgresRecordStore } = await import('../../events/postgres/postgres-record-store.ts')
  return new PostgresRecordStore(database, archivesFor(config))
}
