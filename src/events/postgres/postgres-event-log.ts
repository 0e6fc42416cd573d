import type pg from 'pg'
import { FoldedEventLog, type EventLogOptions, type EventLogSeams } from '../folded-event-log.ts'
import type { EventLog } from '../event-log.ts'
import { PostgresRecordStore } from './postgres-record-store.ts'

/**
 * Makes the event log in an append-only table: the embedded default. The tables must exist (`migrate`).
 * @param connection as `pg` takes it; the log keeps one connection to write, up to four to read, one to listen
 */
export function createPostgresEventLog(
  connection: pg.ClientConfig,
  options: EventLogOptions = {},
  seams: EventLogSeams = {},
): EventLog {
  return new FoldedEventLog(new PostgresRecordStore(connection, options), options, seams)
}
