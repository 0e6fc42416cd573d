import type { StoredEnvelope } from '../envelope.ts'
import type { Position } from '../event-log.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import type { LogPosition, StoredRecord, StreamHead } from '../record-store.ts'

/** A valid event as its archive stores it; encrypted data stays encrypted. */
export interface ArchivedEvent {
  readonly envelope: StoredEnvelope
  readonly position: Position
}

/** Reads records that have left a log, for the log's store. */
export interface ArchivedRecords {
  /**
   * Reads records from an offset on, in order and dense; at least the one at the offset.
   * @throws LogUnavailable when that record is not there, or cannot be read
   */
  fetch(partition: number, from: bigint, limit: number): Promise<readonly StoredRecord[]>
  /**
   * Reads a stream's valid events after a sequence, in order, as far as they are archived.
   * @param below by log partition: only events below these offsets
   * @throws LogUnavailable | LogChanged
   */
  readStream(stream: string, after: number, below: readonly bigint[]): AsyncIterable<ArchivedEvent>
  /** The last archived event of a stream. @throws LogUnavailable */
  head(stream: string): Promise<StreamHead | undefined>
  /**
   * The first end of a period at or after an offset of a log partition; all records below it are archived.
   * @returns undefined when there is none, or no anchor signed it
   * @throws LogUnavailable | ArchiveDamaged
   */
  endFrom(partition: number, offset: bigint): Promise<LogPosition | undefined>
  /**
   * Replaces the data of events by tombstones. Rewrites each file once.
   * @param below as in `readStream`
   * @returns the events that the archive has
   * @throws LogUnavailable when the archive lacks records that have left the log: it cannot say what they contain
   */
  forget(events: SequencesByStream, below: readonly bigint[]): Promise<SequencesByStream>
}

/** The sequences of events, by their stream. */
export type SequencesByStream = ReadonlyMap<string, ReadonlySet<number>>

/** The archive does not fit the log, or a file of it was altered: nothing is dropped. */
export class ArchiveDamaged extends QuipuError {
  readonly retry = 'never'
}
