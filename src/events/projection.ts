import type { Recorded } from './event-log.ts'

/**
 * Folds valid events into rows. The runner owns the loop, the transaction and the checkpoint; a projection says what a
 * batch does to which rows. Rows depend on the events alone, never on how they were cut into batches.
 */
export interface Projection {
  /** Names the checkpoint. */
  readonly name: string
  /** Raised when the same events would give other rows: they are then folded anew. */
  readonly version: number
  /** Without effect: what the fold learned counts from `keep` on. Never throws because of an event. */
  fold(batch: readonly Recorded[], context: FoldContext): Promise<Folded>
  /** What keeps an event, without effect on any other row: all that is written of one that cannot be applied. */
  eventAlone(event: Recorded): readonly TableWrite[]
  /** Forgets all that was kept: the tables may have changed under it. */
  reset(): void
}

export interface FoldContext {
  /** Reads rows as of the checkpoint before the batch. */
  readonly query: QueryRows
  /** Streams with an open dead letter: their events are parked. */
  readonly parked: ReadonlySet<string>
  /** Positions (`stream/sequence`) of events that the database refused, with its error: dead letters. */
  readonly refused: ReadonlyMap<string, unknown>
}

export type QueryRows = (text: string, values: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>

export interface Folded {
  /** In order; one a table. */
  readonly writes: readonly TableWrite[]
  readonly dead: readonly DeadLetter[]
  /** The rows are committed. */
  keep(): void
}

export interface TableWrite {
  /** A named statement is planned once a connection. */
  readonly name?: string
  readonly text: string
  readonly values: readonly unknown[]
}

export type DeadLetter =
  | { readonly kind: 'failed'; readonly event: Recorded; readonly error: unknown }
  /** Later events of a stream that has one. */
  | { readonly kind: 'parked'; readonly event: Recorded }

/** How far behind the log the read models are. */
export interface ProjectionLag {
  /** Valid events not yet applied. */
  readonly events: number
  /** Age of the oldest of them, 0 when there is none. */
  readonly oldestMillis: number
}

/** What a projection does about the log; times in ISO UTC. */
export type ProjectionCondition =
  | { readonly kind: 'following' }
  /** The same events have been tried in vain since then; it goes on trying. */
  | { readonly kind: 'retrying'; readonly since: string; readonly reason: string }
  /** The log is not what its checkpoint says: nothing more is applied until somebody acts. */
  | { readonly kind: 'stopped'; readonly since: string; readonly reason: string }

export function eventKey(event: { readonly stream: string; readonly sequence: number }): string {
  return `${event.stream}/${event.sequence}`
}
