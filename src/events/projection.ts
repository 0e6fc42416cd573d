import type { Recorded } from './event-log.ts'

/**
 * Folds valid events into rows. The runner has the loop, the transaction and the checkpoint; a projection decides which
 * rows a batch changes. Rows depend only on the events, never on how they were cut into batches.
 */
export interface Projection {
  /** Name of the checkpoint. */
  readonly name: string
  /** Must be raised when the same events give other rows; the events are then folded anew. */
  readonly version: number
  /**
   * Folds a batch without side effects: its results become part of the state only by `keep`. Never throws because of an
   * event.
   */
  fold(batch: readonly Recorded[], context: FoldContext): Promise<Folded>
  /**
   * The writes that store an event and change no other row. They are all that is written of an event that cannot be
   * applied.
   */
  eventAlone(event: Recorded): readonly TableWrite[]
  /** Drops all cached state: the tables may have changed. */
  reset(): void
}

export interface FoldContext {
  /** Reads rows as they were at the checkpoint before the batch. */
  readonly query: QueryRows
  /** Streams with an open dead letter: their events are parked. */
  readonly parked: ReadonlySet<string>
  /** Events (`stream/sequence`) that the database refused, each with its error: dead letters. */
  readonly refused: ReadonlyMap<string, unknown>
}

export type QueryRows = (text: string, values: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>

export interface Folded {
  /** In order; one per table. */
  readonly writes: readonly TableWrite[]
  readonly dead: readonly DeadLetter[]
  /** Must be called once the rows are committed. */
  keep(): void
}

export interface TableWrite {
  /** Name of the statement; Postgres plans a named statement once per connection. */
  readonly name?: string
  readonly text: string
  readonly values: readonly unknown[]
}

export type DeadLetter =
  | { readonly kind: 'failed'; readonly event: Recorded; readonly error: unknown }
  /** Later events of a stream that has a dead letter. */
  | { readonly kind: 'parked'; readonly event: Recorded }

/** How far behind the log the read models are. */
export interface ProjectionLag {
  /** Valid events not yet applied. */
  readonly events: number
  /** Age of the oldest such event, 0 when there is none. */
  readonly oldestMillis: number
}

/** Whether a projection follows the log; times in ISO UTC. */
export type ProjectionCondition =
  | { readonly kind: 'following' }
  /** The same events have failed since then; the runner keeps trying. */
  | { readonly kind: 'retrying'; readonly since: string; readonly reason: string }
  /** The log does not match the checkpoint: nothing more is applied until an operator acts. */
  | { readonly kind: 'stopped'; readonly since: string; readonly reason: string }

export function eventKey(event: { readonly stream: string; readonly sequence: number }): string {
  return `${event.stream}/${event.sequence}`
}
