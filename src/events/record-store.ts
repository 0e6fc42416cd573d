import type { Checkpoint, Recorded, Unstorable } from './event-log.ts'
import type { RecordHeader, State } from './fold.ts'
import type { ResultPageStore } from './result-page-store.ts'

/** A place in a log partition and what all records below it add up to. */
export interface LogPosition {
  readonly offset: bigint
  readonly state: State
}

/** A record as the store holds it, ours or not. */
export interface StoredRecord {
  readonly offset: bigint
  readonly header: RecordHeader | undefined
  readonly stream: string
  /** Where the store keeps it beside the envelope, to find it by. */
  readonly sequence?: number
  /** The envelope of an event, the data of a claim. */
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
  /** ISO time; the same whenever the page is sent again. */
  readonly created: string
  readonly bytes: Uint8Array
}

/** Records with consecutive numbers that must land together, at the place their writer knows as the end. */
export interface RecordBatch {
  readonly partition: number
  readonly kind: 'epoch' | 'event'
  readonly epoch: number
  readonly writer: string
  readonly seen: LogPosition
  readonly records: readonly OutRecord[]
  readonly pages: readonly OutPage[]
  /** Streams the writer believes to be new but did not look up; a store with `checksNewStreams` refuses the batch if one is not. */
  readonly newStreams: readonly string[]
}

/**
 * `landed`: the first record is at `at`, the others follow. `refused`: for certain nothing was written by this attempt.
 * `impossible`: as `refused`, and because of the records themselves. `unknown`: it may have landed, or may still land;
 * `slow` when the store did not end it in the time it had: the next attempt has more.
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

/** A query's own key. */
export interface StreamKey {
  readonly name: string
  /** 32 bytes. */
  readonly secret: Buffer
}

/** Where readers find the keys of encrypted data. */
export interface KeySource {
  /**
   * Of a name that `learn` has seen.
   * @returns undefined for a key that was forgotten
   * @throws LogChanged when it is nowhere, and was not forgotten
   */
  keyOf(name: string): Buffer | undefined
}

/** Keys for the data of streams, in a log that forgets by losing them. */
export interface StreamCipher extends KeySource {
  /** To be called before a claim. @throws LogUnavailable when there are no keys for that epoch yet */
  prepare(epoch: number): Promise<void>
  encrypts(stream: string): boolean
  /** For the stream's next event; undefined where its data is not encrypted. @throws LogUnavailable when all are used */
  keyFor(stream: string): StreamKey | undefined
  /** False, too, for one this process does not know. */
  isForgotten(name: string): boolean
  /** What comes from now on is encrypted with another key. */
  retire(stream: string): void
}

/** Where a log begins whose first records have left it for its archive. */
export interface LogStart {
  readonly logId: string
  /** By log partition: the first offset that is still there. */
  readonly at: readonly LogPosition[]
}

/** Records that may leave the log: they lie in its archive, byte for byte. */
export interface Drop {
  readonly partition: number
  /** All below it goes; what went before goes on to be gone. */
  readonly to: LogPosition
  readonly logId: string
  /** Of the writer: another one that claimed since drops by itself. */
  readonly epoch: number
}

/** Lets records go that were archived. */
export interface RecordDropper {
  /** In one call, at most. */
  readonly recordsAtOnce: number
  /**
   * Remembers the last events of streams that never end, before their records go.
   * @throws LogUnavailable
   */
  keepHeads(heads: ReadonlyMap<string, StreamHead>): Promise<void>
  /** From the beginning on, so that what stays is whole. @throws LogUnavailable | Fenced */
  drop(drop: Drop): Promise<void>
}

/** What a technology adds to the algorithm of `FoldedEventLog`: records in dense offsets, one attempt at a time. */
export interface RecordStore {
  /** Connects and checks the settings. */
  open(): Promise<StoreLimits>
  /** One attempt; never throws. The caller never has two in progress in one log partition. */
  put(batch: RecordBatch): Promise<PutOutcome>
  /**
   * Records from an offset on, in order, dense; none at the end.
   * @throws LogUnavailable
   * @throws LogWentBackwards when the offset lies beyond the end
   */
  fetch(partition: number, from: bigint, limit: number): Promise<StoredRecord[]>
  /** First offset not written yet. @throws LogUnavailable */
  end(partition: number): Promise<bigint>
  /** Whether `end` may lie below what was read for a while (change of leader); else that means the log went backwards. */
  readonly endMayLag: boolean
  /** Resolves when there may be records at or beyond one of the offsets, at the latest after about a second. */
  awaitMore(offsets: readonly bigint[], signal: AbortSignal): Promise<void>
  partitionOf(stream: string): number
  readonly checksNewStreams: boolean
  /** Where a writer must begin to fold so that `head` can answer for all streams untouched since; undefined: anywhere. */
  foldStart(): Promise<Checkpoint | undefined>
  /** Last valid event of a stream below a checkpoint at least. */
  head(stream: string, atLeast: Checkpoint): Promise<StreamHead>
  readStream(stream: string, after: number, tip: Checkpoint): AsyncIterable<Recorded>
  readonly pages: ResultPageStore
  /** Absent where records can be rewritten, and in a process that looks at records alone. */
  readonly cipher?: StreamCipher | undefined
  /** @param epoch of the writer, which asks for it @throws LogUnavailable | Fenced */
  forget(stream: string, sequences: readonly number[], epoch: number): Promise<void>
  /** Undefined while the log is whole. Absent in a store that drops nothing. @throws LogUnavailable */
  start?(): Promise<LogStart | undefined>
  /** The newest epoch of the log that this one goes on from; undefined: it goes on from none. @throws LogUnavailable */
  epochBefore?(): Promise<number | undefined>
  /** Absent in a store that drops nothing. */
  readonly dropper?: RecordDropper | undefined
  /** Called after a successful claim and as the log grows, for what is made ahead. */
  prepareFor(end: bigint): void
  close(): Promise<void>
}
