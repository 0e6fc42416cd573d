import type { State } from './fold.ts'
import type { KeptPages, PageOffset, ResultPage } from './result-page-store.ts'
import { QuipuError } from '../shared/quipu-error.ts'

export type { KeptPages, PageOffset, ResultPage } from './result-page-store.ts'

/**
 * A fact as its author hands it over. The log gives it sequence, epoch and hashes.
 * Payload schemas belong to the aggregates; to the log `data` is any JSON value.
 */
export interface Event {
  /** Past tense, e.g. `QueryCreated`. */
  readonly type: string
  /** Version of the payload's schema, from 1. */
  readonly v: number
  /** ISO 8601, UTC, milliseconds. Stored as it is, or as the last time of the log partition where that is later. */
  readonly time: string
  /** W3C trace context; the same for all events of an append. */
  readonly traceparent?: string
  readonly data: unknown
  /**
   * Set when this process built the data by its type: a reader in this process need not validate it again. Never
   * stored.
   */
  readonly typed?: true
}

export type Encoding = 'none' | 'gzip'

/** A valid event as every reader sees it. */
export interface Recorded extends Event {
  readonly stream: string
  /** Position in the stream: 1, 2, 3 … without gaps. */
  readonly sequence: number
  readonly epoch: number
  /** The previous event's `hash` in the stream, '' for the first. */
  readonly prevhash: string
  readonly hash: string
  /** SHA-256 of the data as the log stores it: `stored`, or its encrypted form. */
  readonly digest: string
  readonly enc: Encoding
  /** Name of the key that encrypts the data in the log; absent when the log holds `stored` unencrypted. */
  readonly key?: string
  /** The data as text: JSON, or its gzip in base64 when `enc` says so. */
  readonly stored: string
  /** Set when the data was replaced by a tombstone: `data` is null, the digest that of the forgotten bytes. */
  readonly forgotten?: true
  readonly position: Position
}

/** The event as readers see it once its data is forgotten. */
export function tombstoneOf(event: Recorded): Recorded {
  return { ...event, stored: '', data: null, forgotten: true }
}

/** A position in the log; ordered within one log partition only. Postgres has log partition 0 alone. */
export interface Position {
  readonly partition: number
  readonly offset: bigint
}

/** Position of an append's last event, and the events as they were stored. */
export interface Appended extends Position {
  readonly events: readonly Recorded[]
}

/** How far a reader has got: by log partition, the first offset not read and the fold of all records below it. */
export interface Checkpoint {
  /** '' before anything was read: the beginning of any log. */
  readonly logId: string
  readonly at: readonly { readonly offset: bigint; readonly state: State }[]
}

/**
 * A checkpoint, or bare offsets: then the reader finds the state in the log itself (each record says what its writer
 * had seen).
 */
export interface ReadFrom {
  readonly logId: string
  readonly at: readonly { readonly offset: bigint; readonly state?: State }[]
}

/** Figures of an append that became valid, for telemetry. */
export interface AppendReport {
  readonly stream: string
  /** Sequence of the append's last event. */
  readonly sequence: number
  readonly epoch: number
  readonly events: readonly Recorded[]
  /** Size of the encoded events. */
  readonly bytes: number
  readonly traceparent: string | undefined
  /** Milliseconds: in the queue; until the log acknowledged the append; until it was read back as valid. */
  readonly queueMs: number
  readonly sendMs: number
  readonly readBackMs: number
}

/** Appends that were committed together, once they are valid. */
export interface CommitReport {
  readonly partition: number
  /** Offset of the last record. */
  readonly offset: bigint
  readonly records: number
  readonly appends: readonly {
    readonly stream: string
    /** Sequence of the append's last event. */
    readonly sequence: number
    readonly traceparent: string | undefined
  }[]
  /** Milliseconds: until the log acknowledged the commit; from then until it was read back as valid. */
  readonly sendMs: number
  readonly readBackMs: number
}

export interface Subscription {
  /** The end of the batches that were delivered and whose callback has returned. */
  readonly checkpoint: Checkpoint
  /**
   * Resolves after `stop`; rejects with LogChanged or the callback's error. The subscription then ends and skips
   * nothing.
   */
  readonly done: Promise<void>
  /** Resolves when the callback in progress has returned. */
  stop(): Promise<void>
}

export interface OpenedLog {
  /** '' while no process has ever claimed the log. */
  readonly logId: string
  readonly partitions: number
  /** An encoded event above this is refused with TooLarge. */
  readonly maxEventBytes: number
}

/**
 * Where a read of the past ends: by log partition, the first offset that is not delivered. A checkpoint can serve as
 * this.
 */
export interface ReadUntil {
  readonly at: readonly { readonly offset: bigint }[]
}

/** The last sequence that a stream must have for an append to follow. */
export type Expected = number | 'end'

/** Appends events to streams. */
export interface EventAppender {
  /**
   * Appends all events or none. Resolves when the events are durable and valid for every reader for ever. Goes on
   * trying while the log is away, so callers set their own deadline; the events may become valid after it. Appends to
   * one stream resolve in the order of the calls: a state that is folded from them depends on it.
   * @param expected sequence of the stream's last event, 0 for a new stream; `end` for a stream that only the log's
   *   writer appends to, when the events do not depend on earlier ones
   * @param pages what `keepPages` returned for this append; they are there whenever the events are valid
   * @throws SequenceConflict | TooLarge | LogFull nothing was sent; LogFull for new streams only
   * @throws Unstorable no event is in the log, and no repetition changes that
   * @throws Fenced | LogWentBackwards the events were not valid as far as the log was read: the caller must not answer
   *   its client
   */
  append(stream: string, expected: Expected, events: readonly Event[], pages?: readonly ResultPage[]): Promise<Appended>
}

/** Reads the past of one stream. */
export interface StreamReader {
  /** Reads a stream's events after a sequence, below a bound or up to the tip at the call. @throws LogUnavailable */
  readStream(stream: string, after?: number, until?: ReadUntil): AsyncIterable<Recorded>
}

/** Reads the past of all streams. */
export interface EventReader {
  /**
   * Reads valid events only, each once, in order within a log partition. Returns fewer than the limit when events are
   * large. At the end, or at the bound: no events, and `next` is the position that the read reached.
   * @throws LogUnavailable | LogChanged
   */
  read(from: ReadFrom, limit: number, until?: ReadUntil): Promise<{ events: Recorded[]; next: Checkpoint }>
}

/**
 * All past events, by stream and in order, up to a bound. Anything that holds a part of them (the log, memory, an
 * archive) can implement this.
 */
export interface EventHistory extends StreamReader, EventReader {}

/** Finds where the log ends. */
export interface LogEnd {
  /** The end, asked from the log and not from memory. @throws LogUnavailable */
  tip(): Promise<Checkpoint>
}

/** Finds where the log itself begins: earlier records are in its archive, and are read from there. */
export interface LogBeginning {
  /**
   * The first position in the log. A stream that can end, and has not ended, has no event before it.
   * @throws LogUnavailable
   */
  start(): Promise<Checkpoint>
}

/** Delivers new events. */
export interface LogFeed {
  /**
   * Delivers batches in order and waits for each; store `next` together with the effect of the batch.
   * @param mostEvents limit of events in a batch, which stays in memory until `on` resolves; 2,000 by default
   */
  subscribe(
    from: ReadFrom,
    on: (batch: readonly Recorded[], next: Checkpoint) => Promise<void>,
    mostEvents?: number,
  ): Subscription
}

/** Stores small result pages, beside the events that name them. */
export interface ResultPages {
  /**
   * Makes small result pages ready for the append of the event that names them. Goes on trying while the log is away.
   * @returns positions for the event to carry, and the pages to pass to `append`
   */
  keepPages(stream: string, pages: readonly ResultPage[]): Promise<KeptPages>
  /**
   * Reads a page; undefined once it was dropped. The caller asks only for a page that a valid event names, with the
   * position in that event, and checks its hash.
   */
  readPage(stream: string, token: number, position?: PageOffset): Promise<Uint8Array | undefined>
}

/** Removes data from recorded events. */
export interface DataForgetter {
  /**
   * All events of a stream, for a later `forget`. Events that are appended from now on are not among them.
   * @throws Unforgettable when an event is not encrypted in a log whose records cannot be rewritten
   */
  forgettable(stream: string): Promise<readonly Recorded[]>
  /**
   * Replaces the data of events by tombstones that keep its digest, and drops the stream's pages. Events that are
   * already forgotten stay so. Where records cannot be rewritten, deletes their keys. Call `forgettable` first, and
   * record in the log which events are forgotten: an audit reports a tombstone without such an event as an alteration.
   */
  forget(stream: string, sequences: readonly number[]): Promise<void>
}

/** The right to write, which one process has at a time. */
export interface WriterClaim {
  /**
   * Becomes the writer by a compare-and-set in the log itself. The event EpochStarted on stream `system` is valid when
   * it resolves.
   * @param as with `above` when this log continues another: the newest epoch of that log; the epochs of this log begin
   *   above it
   * @returns the epoch
   * @throws Fenced when another process claimed first
   */
  claim(as: { readonly address: string; readonly version: string; readonly above?: number }): Promise<number>
  /** Resolves with the reason when this process may no longer write. */
  readonly fenced: Promise<Fenced | LogWentBackwards>
}

/** The whole log, as a process opens it. Code that needs a part of it depends on that interface alone. */
export interface EventLog
  extends EventAppender, EventHistory, LogBeginning, LogEnd, LogFeed, ResultPages, DataForgetter, WriterClaim {
  /** Connects, and checks that the log is fit to hold events. @throws MisconfiguredLog if it is not */
  open(): Promise<OpenedLog>
  close(): Promise<void>
}

/** The beginning of any log. */
export function beginning(partitions = 1): Checkpoint {
  const state: State = { epoch: 0, writer: '', number: 0, count: 0, hash: '' }
  return { logId: '', at: Array.from({ length: partitions }, () => ({ offset: 0n, state })) }
}

/** Whether everything below `target` lies below `reached`, in every log partition. */
export function hasReached(reached: Checkpoint, target: Checkpoint): boolean {
  return target.at.every((position, partition) => (reached.at[partition]?.offset ?? 0n) >= position.offset)
}

/**
 * Whether a reader has every event below `target`. Compares counts where the offset is not enough: a log may end with
 * records that do not count, and no reader receives those.
 */
export function hasEventsOf(reached: Checkpoint, target: Checkpoint): boolean {
  return target.at.every((position, partition) => {
    const own = reached.at[partition]
    return (own?.offset ?? 0n) >= position.offset || (own?.state.count ?? 0) >= position.state.count
  })
}

/** Whether the event at a position lies below a checkpoint. */
export function isBelow(position: Position, until: ReadUntil): boolean {
  return position.offset < (until.at[position.partition]?.offset ?? 0n)
}

/** Writes a checkpoint as JSON. JSON has no bigint, so offsets are decimal strings. */
export function checkpointToJson(checkpoint: Checkpoint): string {
  return JSON.stringify({
    logId: checkpoint.logId,
    at: checkpoint.at.map((position) => ({ offset: String(position.offset), state: position.state })),
  })
}

/** Reads a checkpoint. @param text what `checkpointToJson` wrote */
export function checkpointFromJson(text: string): Checkpoint {
  const parsed = JSON.parse(text) as { logId: string; at: { offset: string; state: State }[] }
  return {
    logId: parsed.logId,
    at: parsed.at.map((position) => ({ offset: BigInt(position.offset), state: position.state })),
  }
}

/** An error of the log, or of the events that it is asked to store. */
export abstract class EventLogError extends QuipuError {
  abstract readonly kind:
    | 'fenced'
    | 'conflict'
    | 'too_large'
    | 'unstorable'
    | 'backwards'
    | 'changed'
    | 'misconfigured'
    | 'unforgettable'
    | 'unavailable'
}

/**
 * Another writer holds the log, or this process never claimed it. A coordinator that held the log exits with code 75.
 */
export class Fenced extends EventLogError {
  readonly kind = 'fenced'
  readonly retry = 'later'
}

/** The stream's last sequence is not the one that the author expected; nothing was sent. */
export class SequenceConflict extends EventLogError {
  readonly kind = 'conflict'
  readonly retry = 'anew'
  readonly stream: string
  readonly expected: number
  /** Sequence of the stream's last event, valid or queued. */
  readonly actual: number

  constructor(stream: string, expected: number, actual: number) {
    super(`Stream ${stream} is at sequence ${actual}, not ${expected}`)
    this.stream = stream
    this.expected = expected
    this.actual = actual
  }
}

/** The log will never store these events: none of them is in the log, and the stream is unchanged. */
export abstract class NotTaken extends EventLogError {
  readonly retry = 'never'
}

/** The encoded event is larger than the log allows; nothing was sent. */
export class TooLarge extends NotTaken {
  readonly kind = 'too_large'
  readonly bytes: number
  readonly maxBytes: number

  constructor(bytes: number, maxBytes: number) {
    super(`The event has ${bytes} bytes; the log accepts at most ${maxBytes}`)
    this.bytes = bytes
    this.maxBytes = maxBytes
  }
}

/** The log cannot hold these events, or its storage says so. */
export class Unstorable extends NotTaken {
  readonly kind = 'unstorable'
}

/** The log is shorter than what was read from it (recreated, or restored from a backup): stop for good, and alarm. */
export class LogWentBackwards extends EventLogError {
  readonly kind = 'backwards'
  readonly retry = 'never'
}

/** The log is not the checkpoint's, or its past was altered: stop, never skip. */
export class LogChanged extends EventLogError {
  readonly kind = 'changed'
  readonly retry = 'never'
}

/** The log's settings could lose or alter events; the message is one line that says what to change. */
export class MisconfiguredLog extends EventLogError {
  readonly kind = 'misconfigured'
  readonly retry = 'never'
}

/** The log never rewrites its records, and these are not encrypted. */
export class Unforgettable extends EventLogError {
  readonly kind = 'unforgettable'
  readonly retry = 'never'
}

/** The log does not answer. Appends and subscriptions keep trying by themselves; reads throw this. */
export class LogUnavailable extends EventLogError {
  readonly kind = 'unavailable'
  readonly retry = 'later'
}

/** Too many events wait for a log that does not answer: no new stream is begun, and nothing of this append was sent. */
export class LogFull extends LogUnavailable {}
