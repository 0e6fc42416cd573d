import type { TaskStats } from '../../execution/api/task.ts'
import type { QueryId } from '../../shared/ids.ts'
import type { KnownQuery } from '../../coordinator/query/state.ts'

/** A query as this coordinator holds it: folded from valid events, with figures that no event carries yet. */
export interface LiveQueryView {
  readonly query: KnownQuery
  /** Of the newest event that is folded in. */
  readonly sequence: number
  /** Newest figures of running tasks, by task id. */
  readonly liveStats: ReadonlyMap<string, TaskStats>
  readonly queuedReason?: string | undefined
  /** When the client was last heard of, milliseconds since the epoch. */
  readonly lastHeartbeatAt?: number | undefined
}

/**
 * Queries that are open here, and ended ones until the read models have their last event: they are answered from memory,
 * so that nobody waits for a projection.
 */
export interface LiveQueries {
  get(queryId: QueryId): LiveQueryView | undefined
  list(): readonly LiveQueryView[]
}
