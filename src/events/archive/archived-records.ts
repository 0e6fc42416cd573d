import type { StoredEnvelope } from '../envelope.ts'
import type { Position } from '../event-log.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import type { LogPosition, StoredRecord, StreamHead } from '../record-store.ts'

/** A valid event as its archive has it: encrypted where it was. */
export interface ArchivedEvent {
  readonly envelope: StoredEnvelope
  readonly position: Position
}

/** Records that have left a log, as its store reads them. */
export interface ArchivedRecords {
  /**
   * Records from an offset on, in order, dense: at least that one.
   * @throws LogUnavailable when it is not there, or cannot be read
   */
  fetch(partition: number, from: bigint, limit: number): Promise<readonly StoredRecord[]>
  /**
   * A stream's valid events after a sequence, in order, as far as they are archived.
   * @param below of these positions alone
   * @throws LogUnavailable | LogChanged
   */
  readStream(stream: string, after: number, below: readonly bigint[]): AsyncIterable<ArchivedEvent>
  /** Last archived event of a stream. @throws LogUnavailable */
  head(stream: string): Promise<StreamHead | undefined>
  /**
   * The first end of a period at or behind an offset of a log partition: all below is archived.
   * @returns undefined where there is none, or no anchor signed it
   * @throws LogUnavailable | ArchiveDamaged
   */
  endFrom(partition: number, offset: bigint): Promise<LogPosition | undefined>
  /**
   * Replaces the data of events by tombstones.
   * @returns those that are there, by sequence
   * @param below as of `readStream`
   * @throws LogUnavailable when records that have left the log are not in the archive: nothing can be said of them
   */
  forget(stream: string, sequences: readonly number[], below: readonly bigint[]): Promise<ReadonlySet<number>>
}

/** Archive and log do not fit together, or a file of the archive is not what was written: nothing is dropped. */
export class ArchiveDamaged extends QuipuError {
  readonly retry = 'never'
}
