import pg from 'pg'
import type { EventLog } from './event-log.ts'
import { FoldedEventLog, type EventLogOptions, type EventLogSeams } from './folded-event-log.ts'
import { startPageHousekeeping } from './postgres/partitions.ts'
import { ProjectedStreams, type ProjectedStreamsOptions } from './postgres/projected-streams.ts'
import { PostgresResultPages } from './postgres/postgres-result-pages.ts'
import { KafkaRecordStore, type KafkaOptions } from './kafka/kafka-record-store.ts'

export interface KafkaEventLogOptions extends KafkaOptions {
  /** Where the projection `query_events` is; migrated before. */
  readonly database: pg.ClientConfig
  readonly streams?: ProjectedStreamsOptions
}

/** The event log in a Kafka topic, small result pages in another, streams by key in Postgres beside it. */
export function createKafkaEventLog(
  options: KafkaEventLogOptions,
  log: EventLogOptions = {},
  seams: EventLogSeams = {},
): EventLog {
  return new FoldedEventLog(new KafkaStoreBesidePostgres(options, log), log, seams)
}

/** Kafka for the records, Postgres for what it does not have. */
export class KafkaStoreBesidePostgres extends KafkaRecordStore {
  readonly #pool: pg.Pool
  readonly #log: EventLogOptions
  #housekeeping: { stop(): void } | undefined

  constructor(options: KafkaEventLogOptions, log: EventLogOptions = {}) {
    const pool = new pg.Pool({
      ...options.database,
      application_name: 'quipu-event-log-beside',
      max: 4,
      connectionTimeoutMillis: 2000,
      query_timeout: 10_000,
      allowExitOnIdle: true,
    })
    pool.on('error', () => {})
    super(
      { onTrouble: log.onTrouble, ...options },
      {
        pagesOfOld: new PostgresResultPages(pool),
        streams: new ProjectedStreams(pool, options.streams),
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
