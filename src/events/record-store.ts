import type { Checkpoint, Recorded, Unstorable } from './event-log.ts'
import type { RecordHeader, State } from './fold.ts'
import type { ResultPageStore } from './result-page-store.ts'

/** A position in a log partition, and the fold of all records below it. */
export interface LogPosition {
  readonly offset: bigint
  readonly state: State
}

/** A record as the store holds it, written by Quipu or not. */
export interface StoredRecord {
  readonly offset: bigint
  readonly header: RecordHeader | undefined
  readonly stream: string
  /** Set when the store keeps the sequence beside the envelope, for look-ups. */
  readonly sequence?: number
  /** The envelope of an event, or the data of a claim. */
  readonly text: string
}

export interface OutRecord {
  readonly number: number
  readonly stream: string
  /** 0 in a claim. */
  readonly sequence: number
  readonly time: string
  readonly text: string
  /** The event's own hash, '' in a claim. */
  readonly hash: string
}

export interface OutPage {
  readonly stream: string
  readonly token: number
  readonly epoch: number
  /** ISO time; the same at every attempt to send the page. */
  readonly created: string
  readonly bytes: Uint8Array
}

/** Records with consecutive numbers that must land together, at the position that their writer knows as the end. */
export interface RecordBatch {
  readonly partition: number
  readonly kind: 'epoch' | 'event'
  readonly epoch: number
  readonly writer: string
  readonly seen: LogPosition
  readonly records: readonly OutRecord[]
  readonly pages: readonly OutPage[]
  /**
   * Streams that the writer believes to be new but did not look up. A store with `checksNewStreams` refuses the batch
   * if one of them exists.
   */
  readonly newStreams: readonly string[]
}

/**
 * `landed`: the first record is at `at`, the others follow. `refused`: this attempt certainly wrote nothing.
 * `impossible`: as `refused`, and the reason is the records themselves. `unknown`: the records may have landed, or may
 * still land; `slow` when the store did not finish in its time: the next attempt has more time.
 */
export type PutOutcome =
  | { readonly kind: 'landed'; readonly at: bigint }
  | { readonly kind: 'refused' }
  | { readonly kind: 'impossible'; readonly error: Unstorable }
  | { readonly kind: 'unknown'; readonly error: Error; readonly slow?: true }

export interface StreamHead {
  /** 0 for a stream without events. */
  readonly sequence: number
  readonly hash: string
}

export interface StoreLimits {
  readonly partitions: number
  readonly maxEventBytes: number
  /** Encoded size of an append, which is never split. */
  readonly maxAppendBytes: number
}

/** The key of one query, or of one event. */
export interface StreamKey {
  readonly name: string
  /** 32 bytes. */
  readonly secret: Buffer
}

/** Where readers find the keys of encrypted data. */
export interface KeySource {
  /**
   * The secret of a key whose name `learn` has seen.
   * @returns undefined for a key that was forgotten
   * @throws LogChanged when the key is missing and was not forgotten
   */
  keyOf(name: string): Buffer | undefined
}

/** Keys for the data of streams, in a log that forgets data by deleting its key. */
export interface StreamCipher extends KeySource {
  /** Must be called before a claim. @throws LogUnavailable when there are no keys for that epoch yet */
  prepare(epoch: number): Promise<void>
  encrypts(stream: string): boolean
  /**
   * The key for the stream's next event; undefined when its data is not encrypted.
   * @param type of the event: some events of a stream without a key have a key for themselves
   * @throws LogUnavailable when all keys are used
   */
  keyFor(stream: string, type?: string): StreamKey | undefined
  /** Whether a key was forgotten. False also for a key that this process does not know. */
  isForgotten(name: string): boolean
  /** Makes the stream's later events use another key. */
  retire(stream: string): void
}

/** The beginning of a log whose first records have moved to its archive. */
export interface LogStart {
  readonly logId: string
  /** By log partition: the first offset that is still in the log. */
  readonly at: readonly LogPosition[]
}

/** Records that may leave the log because its archive has them, byte for byte. */
export interface Drop {
  readonly partition: number
  /** All records below it leave the log; earlier ones stay gone. */
  readonly to: LogPosition
  readonly logId: string
  /** Epoch of the writer that drops. A writer that claimed later drops archived records by itself. */
  readonly epoch: number
}

/** Deletes archived records from the log. */
export interface RecordDropper {
  /** Most records in one call. */
  readonly recordsAtOnce: number
  /**
   * Keeps the last events of streams that never end, before their records are deleted.
   * @throws LogUnavailable
   */
  keepHeads(heads: ReadonlyMap<string, StreamHead>): Promise<void>
  /** Deletes from the beginning on, so that the rest has no gap. @throws LogUnavailable | Fenced */
  drop(drop: Drop): Promise<void>
}

/**
 * The storage below the algorithm of `FoldedEventLog`: records in dense offsets, one attempt at a time.
 */
export interface RecordStore {
  /** Connects and checks the settings. */
  open(): Promise<StoreLimits>
  /** Makes one attempt; never throws. The caller never has two attempts in progress in one log partition. */
  put(batch: RecordBatch): Promise<PutOutcome>
  /**
   * Reads records from an offset on, in order and dense; none at the end.
   * @throws LogUnavailable
   * @throws LogWentBackwards when the offset lies beyond the end
   */
  fetch(partition: number, from: bigint, limit: number): Promise<StoredRecord[]>
  /** The first offset that is not written yet. @throws LogUnavailable */
  end(partition: number): Promise<bigint>
  /**
   * Whether `end` may lie below what was read for a while (change of leader); otherwise that means the log went
   * backwards.
   */
  readonly endMayLag: boolean
  /** Resolves when there may be records at or beyond one of the offsets, at the latest after about a second. */
  awaitMore(offsets: readonly bigint[], signal: AbortSignal): Promise<void>
  partitionOf(stream: string): number
  readonly checksNewStreams: boolean
  /**
   * Where a writer must begin to fold so that `head` can answer for all streams untouched since; undefined: any
   * position.
   */
  foldStart(): Promise<Checkpoint | undefined>
  /** The last valid event of a stream, as of at least a checkpoint. */
  head(stream: string, atLeast: Checkpoint): Promise<StreamHead>
  readStream(stream: string, after: number, tip: Checkpoint): AsyncIterable<Recorded>
  readonly pages: ResultPageStore
  /** Absent where records can be rewritten, and in a process that only looks at records. */
  readonly cipher?: StreamCipher | undefined
  /**
   * Replaces the data of events by tombstones, or deletes their keys.
   * @param epoch of the writer that calls this
   * @throws LogUnavailable | Fenced
   */
  forget(stream: string, sequences: readonly number[], epoch: number): Promise<void>
  /**
   * Where the log begins; undefined while nothing has left it. Absent in a store that drops nothing.
   * @throws LogUnavailable
   */
  start?(): Promise<LogStart | undefined>
  /** The newest epoch of the log that this one continues; undefined when it continues none. @throws LogUnavailable */
  epochBefore?(): Promise<number | undefined>
  /** Absent in a store that drops nothing. */
  readonly dropper?: RecordDropper | undefined
  /**
   * Called after a successful claim and as the log grows, so that the store can prepare partitions and the like ahead.
   */
  prepareFor(end: bigint): void
  close(): Promise<void>
}
