import type { Recorded } from '../event-log.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import type { StoredRecord, StreamHead } from '../record-store.ts'

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
  readStream(stream: string, after: number, below: readonly bigint[]): AsyncIterable<Recorded>
  /** Last archived event of a stream that never ends. @throws LogUnavailable */
  head(stream: string): Promise<StreamHead | undefined>
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
