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
  /** W3C trace context; one an append. */
  readonly traceparent?: string
  readonly data: unknown
  /** This process built the data by its type: it need not be checked when it is read again here. Never stored. */
  readonly typed?: true
}

export type Encoding = 'none' | 'gzip'

/** A valid event as every reader sees it. */
export interface Recorded extends Event {
  readonly stream: string
  /** Place in the stream: 1, 2, 3 … without gaps. */
  readonly sequence: number
  readonly epoch: number
  /** The previous event's `hash` in the stream, '' for the first. */
  readonly prevhash: string
  readonly hash: string
  /** SHA-256 of the data as the log has it: of `stored`, or of that encrypted. */
  readonly digest: string
  readonly enc: Encoding
  /** Names the key that the data is encrypted with in the log; absent where it lies there as `stored`. */
  readonly key?: string
  /** The data as text: JSON, or its gzip in base64 when `enc` says so. */
  readonly stored: string
  /** Set when the data was replaced by a tombstone: `data` is null, the digest that of the forgotten bytes. */
  readonly forgotten?: true
  readonly position: Position
}

/** What a reader is given of an event whose data was forgotten. */
export function tombstoneOf(event: Recorded): Recorded {
  return { ...event, stored: '', data: null, forgotten: true }
}

/** A place in the log; ordered within one log partition only. Postgres has log partition 0 alone. */
export interface Position {
  readonly partition: number
  readonly offset: bigint
}

/** Position of an append's last event, and the events as they were stored. */
export interface Appended extends Position {
  readonly events: readonly Recorded[]
}

/** How far a reader has got: by log partition, the first offset not read and the fold of all below it. */
export interface Checkpoint {
  /** '' before anything was read: the beginning of whatever log is there. */
  readonly logId: string
  readonly at: readonly { readonly offset: bigint; readonly state: State }[]
}

/** A checkpoint, or bare offsets: then the state is found in the log itself (each record tells what its writer saw). */
export interface ReadFrom {
  readonly logId: string
  readonly at: readonly { readonly offset: bigint; readonly state?: State }[]
}

/** An append that became valid, as telemetry wants to know it. */
export interface AppendReport {
  readonly stream: string
  /** Of its last event. */
  readonly sequence: number
  readonly epoch: number
  readonly events: readonly Recorded[]
  /** Encoded. */
  readonly bytes: number
  readonly traceparent: string | undefined
  /** Milliseconds: waiting for its turn, until the log acknowledged it, until it was read back as valid. */
  readonly queueMs: number
  readonly sendMs: number
  readonly readBackMs: number
}

/** Appends that were committed together, once they are valid. */
export interface CommitReport {
  readonly partition: number
  /** Of the last record. */
  readonly offset: bigint
  readonly records: number
  readonly appends: readonly {
    readonly stream: string
    /** Of its last event. */
    readonly sequence: number
    readonly traceparent: string | undefined
  }[]
  /** Milliseconds: until the log acknowledged it, and from then until it was read back as valid. */
  readonly sendMs: number
  readonly readBackMs: number
}

export interface Subscription {
  /** What was delivered and returned from. */
  readonly checkpoint: Checkpoint
  /** Resolves after `stop`; rejects with LogChanged, or with what the callback threw. Nothing is skipped: it ends there. */
  readonly done: Promise<void>
  /** Resolves when the callback in progress has returned. */
  stop(): Promise<void>
}

export interface OpenedLog {
  /** '' while nobody has ever claimed the log. */
  readonly logId: string
  readonly partitions: number
  /** An encoded event above this is refused with TooLarge. */
  readonly maxEventBytes: number
}

/** Where a read of the past ends: by log partition, the first offset that is not told any more. A checkpoint is one. */
export interface ReadUntil {
  readonly at: readonly { readonly offset: bigint }[]
}

/** Makes facts true. */
/** Where a stream must end for an append to follow. */
export type Expected = number | 'end'

export interface EventAppender {
  /**
   * All or nothing. Resolves when the events are durable and valid for every reader for ever; goes on trying while the log
   * is away, so callers set their own deadline: the events may become valid after it.
   * @param expected sequence of the stream's last event, 0 for a new stream; `end` of a stream whose author is whoever
   *   writes the log, and has nothing to decide by what lies before
   * @param pages what `keepPages` gave to go with the append; there whenever the events are valid
   * @throws SequenceConflict | TooLarge | LogFull nothing was sent; LogFull of new streams only
   * @throws Unstorable nothing of it is there, and no repetition brings it there
   * @throws Fenced | LogWentBackwards not valid as far as was read: answer nobody
   */
  append(stream: string, expected: Expected, events: readonly Event[], pages?: readonly ResultPage[]): Promise<Appended>
}

/** The past of one stream. */
export interface StreamReader {
  /** A stream's events after a sequence, below a bound or up to the tip at the call. @throws LogUnavailable */
  readStream(stream: string, after?: number, until?: ReadUntil): AsyncIterable<Recorded>
}

/** The past of all streams. */
export interface EventReader {
  /**
   * Valid events only, once, in order within a log partition; fewer than the limit where they are large. At the end, or
   * at the bound: no events, `next` as far as was read.
   * @throws LogUnavailable | LogChanged
   */
  read(from: ReadFrom, limit: number, until?: ReadUntil): Promise<{ events: Recorded[]; next: Checkpoint }>
}

/**
 * All that was, by stream and in order, up to a bound: whatever holds a part of it (the log, memory, an archive) can stand
 * behind this.
 */
export interface EventHistory extends StreamReader, EventReader {}

/** Where the log ends. */
export interface LogEnd {
  /** Asked of the log and not of memory. @throws LogUnavailable */
  tip(): Promise<Checkpoint>
}

/** Where the log itself begins: what was before lies in its archive, and is read from there. */
export interface LogBeginning {
  /** A stream that ends some day, and has not, has no event before. @throws LogUnavailable */
  start(): Promise<Checkpoint>
}

/** What comes from now on. */
export interface LogFeed {
  /**
   * Delivers batches in order and waits for each; store `next` together with the effect of the batch.
   * @param mostEvents of a batch, which is held while `on` has not resolved; 2,000 by default
   */
  subscribe(
    from: ReadFrom,
    on: (batch: readonly Recorded[], next: Checkpoint) => Promise<void>,
    mostEvents?: number,
  ): Subscription
}

/** Small result pages, beside the events that name them. */
export interface ResultPages {
  /**
   * Makes small result pages ready for the append of the event that names them. Goes on trying while the log is away.
   * @returns places for the event to carry, and what to hand to `append`
   */
  keepPages(stream: string, pages: readonly ResultPage[]): Promise<KeptPages>
  /** undefined once dropped. Ask only for a page a valid event names, with the place it names, and check its hash. */
  readPage(stream: string, token: number, place?: PageOffset): Promise<Uint8Array | undefined>
}

/** Takes data out of what was recorded. */
export interface DataForgetter {
  /**
   * All events of a stream, so that `forget` may take them and leave what is appended from now on.
   * @throws Unforgettable when one lies in the clear where records cannot be rewritten
   */
  forgettable(stream: string): Promise<readonly Recorded[]>
  /**
   * Replaces the data of events by tombstones that keep its digest, and drops the stream's pages; what is forgotten already
   * stays so. Where records cannot be rewritten their keys go. Ask `forgettable` before, and say in the log what goes: an
   * audit takes a tombstone that no event tells of for an alteration.
   */
  forget(stream: string, sequences: readonly number[]): Promise<void>
}

/** The right to write: one process has it. */
export interface WriterClaim {
  /**
   * Becomes the writer: a compare-and-set in the log itself. The event EpochStarted on stream `system` is valid when it resolves.
   * @param as with the newest epoch of a log that this one goes on from: its own begin above
   * @returns the epoch
   * @throws Fenced when another claimed first
   */
  claim(as: { readonly address: string; readonly version: string; readonly above?: number }): Promise<number>
  /** Why this process may write no more; pending until then. */
  readonly fenced: Promise<Fenced | LogWentBackwards>
}

/** The log whole, as a process opens it; whoever is given a part of it asks for that port alone. */
export interface EventLog
  extends EventAppender, EventHistory, LogBeginning, LogEnd, LogFeed, ResultPages, DataForgetter, WriterClaim {
  /** Connects, checks that the log is fit to hold the truth (MisconfiguredLog if not). */
  open(): Promise<OpenedLog>
  close(): Promise<void>
}

/** The beginning of a log, whichever it is. */
export function beginning(partitions = 1): Checkpoint {
  const state: State = { epoch: 0, writer: '', number: 0, count: 0, hash: '' }
  return { logId: '', at: Array.from({ length: partitions }, () => ({ offset: 0n, state })) }
}

/** Whether everything below `target` lies below `reached`, in every log partition. */
export function hasReached(reached: Checkpoint, target: Checkpoint): boolean {
  return target.at.every((place, partition) => (reached.at[partition]?.offset ?? 0n) >= place.offset)
}

/**
 * Whether a reader has every event below `target`. Counted where the offset does not say so: a log may end with records
 * that do not count, for which nobody is called.
 */
export function hasEventsOf(reached: Checkpoint, target: Checkpoint): boolean {
  return target.at.every((place, partition) => {
    const own = reached.at[partition]
    return (own?.offset ?? 0n) >= place.offset || (own?.state.count ?? 0) >= place.state.count
  })
}

/** Whether the event at a position lies below a checkpoint. */
export function isBelow(position: Position, until: ReadUntil): boolean {
  return position.offset < (until.at[position.partition]?.offset ?? 0n)
}

/** JSON has no bigint: offsets travel as decimal strings. */
export function checkpointToJson(checkpoint: Checkpoint): string {
  return JSON.stringify({
    logId: checkpoint.logId,
    at: checkpoint.at.map((place) => ({ offset: String(place.offset), state: place.state })),
  })
}

/** @param text what `checkpointToJson` wrote */
export function checkpointFromJson(text: string): Checkpoint {
  const parsed = JSON.parse(text) as { logId: string; at: { offset: string; state: State }[] }
  return {
    logId: parsed.logId,
    at: parsed.at.map((place) => ({ offset: BigInt(place.offset), state: place.state })),
  }
}

/** What the log says of itself, and of what it is given. */
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

/** Another writer holds the log, or this process never claimed it. Exit code 75 for a coordinator that had it. */
export class Fenced extends EventLogError {
  readonly kind = 'fenced'
  readonly retry = 'later'
}

/** The stream is not where the author thought; nothing was sent. */
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

/** The log will never take these events: nothing of them is there, and the stream stands where it stood. */
export abstract class NotTaken extends EventLogError {
  readonly retry = 'never'
}

/** The encoded event is larger than the log takes; nothing was sent. */
export class TooLarge extends NotTaken {
  readonly kind = 'too_large'
  readonly bytes: number
  readonly maxBytes: number

  constructor(bytes: number, maxBytes: number) {
    super(`Event of ${bytes} bytes; the log takes at most ${maxBytes}`)
    this.bytes = bytes
    this.maxBytes = maxBytes
  }
}

/** They are nothing that the log can hold, or it says so itself. */
export class Unstorable extends NotTaken {
  readonly kind = 'unstorable'
}

/** The log is shorter than what was read of it (recreated, or restored from a backup): stop for good, alarm. */
export class LogWentBackwards extends EventLogError {
  readonly kind = 'backwards'
  readonly retry = 'never'
}

/** Another log than the checkpoint's, or one whose past was altered: stop, never skip. */
export class LogChanged extends EventLogError {
  readonly kind = 'changed'
  readonly retry = 'never'
}

/** The log's settings could lose or alter the truth; the message is one line that says what to change. */
export class MisconfiguredLog extends EventLogError {
  readonly kind = 'misconfigured'
  readonly retry = 'never'
}

/** The log keeps its records as they are for ever, and these are not encrypted. */
export class Unforgettable extends EventLogError {
  readonly kind = 'unforgettable'
  readonly retry = 'never'
}

/** The log does not answer. Appends and subscriptions go on trying by themselves; reads say so with this. */
export class LogUnavailable extends EventLogError {
  readonly kind = 'unavailable'
  readonly retry = 'later'
}

/** Too much waits for a log that does not take it: a new stream is not begun, and nothing of it was sent. */
export class LogFull extends LogUnavailable {}
