import pg from 'pg'
import type { EventLog } from './event-log.ts'
import { FoldedEventLog, type EventLogOptions, type EventLogSeams } from './folded-event-log.ts'
import { makePagePartitions } from './postgres/partitions.ts'
import { ProjectedStreams, type ProjectedStreamsOptions } from './postgres/projected-streams.ts'
import { PostgresResultPages } from './postgres/result-page-store.ts'
import { KafkaRecordStore, type KafkaOptions } from './kafka/kafka-record-store.ts'
import type { ResultPageStore } from './kafka/ports.ts'

export interface KafkaEventLogOptions extends KafkaOptions {
  /** Where result pages and the projection `query_events` are; migrated before. */
  readonly database: pg.ClientConfig
  readonly streams?: ProjectedStreamsOptions
}

const PAGE_PARTITIONS_EVERY_MS = 300_000

/** The event log in a Kafka topic, with small result pages and streams by key in Postgres beside it. */
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
  #housekeeping: NodeJS.Timeout | undefined

  /** @param wrapPages lets a test stop between a page and its event */
  constructor(
    options: KafkaEventLogOptions,
    log: EventLogOptions = {},
    wrapPages: (pages: ResultPageStore) => ResultPageStore = (pages) => pages,
  ) {
    const pool = new pg.Pool({
      ...options.database,
      application_name: 'quipu-event-log-beside',
      max: 4,
      connectionTimeoutMillis: 2000,
      query_timeout: 10_000,
      allowExitOnIdle: true,
    })
    pool.on('error', () => {})
    super(options, {
      pages: wrapPages(new PostgresResultPages(pool)),
      streams: new ProjectedStreams(pool, options.streams),
    })
    this.#pool = pool
    this.#log = log
  }

  override prepareFor(): void {
    if (this.#housekeeping) return
    const make = (): void => {
      const now = (this.#log.now ?? Date.now)()
      makePagePartitions(this.#pool, now).catch((error: Error) => this.#log.onTrouble?.(error))
    }
    this.#housekeeping = setInterval(make, PAGE_PARTITIONS_EVERY_MS).unref()
    make()
  }

  override async close(): Promise<void> {
    clearInterval(this.#housekeeping)
    await super.close()
    await this.#pool.end().catch(() => {})
  }
}
