import type pg from 'pg'
import type { EventLog } from './event-log.ts'
import { KeyRing } from './data-keys/key-ring.ts'
import { KeyTable } from './data-keys/key-table.ts'
import { FoldedEventLog, SYSTEM_STREAM, type EventLogOptions, type EventLogSeams } from './folded-event-log.ts'
import { ArchiveLock } from './postgres/archive-lock.ts'
import { startPageHousekeeping } from './postgres/partitions.ts'
import { PatientPool } from './postgres/patient-pool.ts'
import { ProjectedStreams, type ProjectedStreamsOptions } from './postgres/projected-streams.ts'
import { PostgresResultPages } from './postgres/postgres-result-pages.ts'
import { KafkaRecordStore } from './kafka/kafka-record-store.ts'
import { DEFAULT_TOPIC, type KafkaOptions } from './kafka/kafka-options.ts'

export interface KafkaEventLogOptions extends KafkaOptions {
  /** The database with the projection `query_events`; it must be migrated. */
  readonly database: pg.ClientConfig
  readonly streams?: ProjectedStreamsOptions
  /** Absent: data is written unencrypted, and encrypted data cannot be read. */
  readonly dataKeys?: DataKeyOptions
}

export interface DataKeyOptions {
  /** Path of the copy of the keys in the data folder. */
  readonly file: string
  /** Whether this process maintains that copy. @default true */
  readonly keepsFile?: boolean
  /** Whether a stream's data is encrypted. @default all streams but `system` */
  readonly encrypts?: (stream: string) => boolean
  /** As in `KeyRing`. */
  readonly encryptsAlone?: (stream: string, type: string) => boolean
  readonly openWaitMs?: number
}

/** Makes the event log: records in a Kafka topic, small result pages in another, streams by key in Postgres. */
export function createKafkaEventLog(
  options: KafkaEventLogOptions,
  log: EventLogOptions = {},
  seams: EventLogSeams = {},
): EventLog {
  return new FoldedEventLog(new KafkaStoreBesidePostgres(options, log), log, seams)
}

/** Makes the keys of a topic's queries, in Postgres and in a file. */
export function createKeyRing(
  pool: pg.Pool,
  topic: string,
  { file, keepsFile = true, encrypts, encryptsAlone, openWaitMs }: DataKeyOptions,
  onTrouble?: (error: Error) => void,
): KeyRing {
  return new KeyRing({
    table: new KeyTable(pool, topic),
    file,
    keepsFile,
    log: topic,
    encrypts: encrypts ?? ((stream) => stream !== SYSTEM_STREAM),
    encryptsAlone,
    onTrouble,
    ...(openWaitMs === undefined ? {} : { openWaitMs }),
  })
}

/** Kafka for the records, Postgres for streams, keys and locks. */
export class KafkaStoreBesidePostgres extends KafkaRecordStore {
  readonly #pool: pg.Pool
  readonly #log: EventLogOptions
  #housekeeping: { stop(): void } | undefined

  constructor(options: KafkaEventLogOptions, log: EventLogOptions = {}) {
    const pool = new PatientPool({
      ...options.database,
      application_name: 'quipu-event-log-beside',
      max: 4,
      connectionTimeoutMillis: 2000,
      query_timeout: 10_000,
      // A process that is stopped while it forgets a key must not block the others.
      idle_in_transaction_session_timeout: 5_000,
      allowExitOnIdle: true,
    })
    pool.on('error', () => {})
    const { dataKeys } = options
    const { archiveOf } = log
    const lock = new ArchiveLock(pool)
    super(
      { onTrouble: log.onTrouble, ...options },
      {
        pagesOfOld: new PostgresResultPages(pool),
        streams: new ProjectedStreams(pool, options.streams),
        keys: dataKeys && createKeyRing(pool, options.topic ?? DEFAULT_TOPIC, dataKeys, log.onTrouble),
        archives: archiveOf && { of: archiveOf, logs: log.archivedLogs ?? (async () => []) },
        alone: (logId, work) => lock.hold(logId, work),
      },
    )
    this.#pool = pool
    this.#log = log
  }

  override prepareFor(): void {
    super.prepareFor()
    this.#housekeeping ??= startPageHousekeeping(this.#pool, this.#log)
  }

  override async close(): Promise<void> {
    this.#housekeeping?.stop()
    await super.close()
    await this.#pool.end().catch(() => {})
  }
}
