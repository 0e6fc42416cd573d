import type { TaskStats } from '../../execution/api/task.ts'
import type { QueryId, TaskId } from '../../shared/ids.ts'
import type { QueryExecution } from '../../coordinator/query/registry/query-handle.ts'
import type { QueryRegistry } from '../../coordinator/query/registry/query-registry.ts'
import { isTerminal, type KnownQuery } from '../../coordinator/query/stream/state.ts'
import type { Position } from '../../events/event-log.ts'

/** A query as this coordinator holds it: folded from valid events, with figures that are in no event yet. */
export interface LiveQueryView {
  readonly query: KnownQuery
  /** The sequence of the newest event that is folded in. */
  readonly sequence: number
  /** Newest figures of running tasks, by task id. */
  readonly liveStats: ReadonlyMap<TaskId, TaskStats>
  readonly queuedReason?: string | undefined
  /** The time of the client's last request, milliseconds since the epoch. */
  readonly lastHeartbeatAt?: number | undefined
}

/**
 * Queries that are open here, and ended ones until the read models have their last event. They are answered from
 * memory, so that no reader waits for a projection.
 */
export interface LiveQueries {
  get(queryId: QueryId): LiveQueryView | undefined
  list(): readonly LiveQueryView[]
}

/** For a process that runs no queries. */
export const noLiveQueries: LiveQueries = { get: () => undefined, list: () => [] }

/** @param isProjected whether the read models have the event at a position */
export function createLiveQueries(
  registry: Pick<QueryRegistry, 'get' | 'list'>,
  isProjected: (position: Position) => boolean,
): LiveQueries {
  return {
    get: (queryId) => viewOf(registry.get(queryId)),
    // Queries that ended a while ago are left out: they are in the tables, and a busy registry holds very many.
    list: () =>
      registry
        .list()
        .filter(({ aggregate: { state, position } }) => !isTerminal(state.kind) || !position || !isProjected(position))
        .map(viewOf)
        .filter((view) => view !== undefined),
  }
}

function viewOf(execution: QueryExecution | undefined): LiveQueryView | undefined {
  if (!execution) return undefined
  const { state: query, sequence } = execution.aggregate
  if (query.kind === 'NONE') return undefined
  return { query, sequence, liveStats: execution.liveStats, queuedReason: execution.queuedReason }
}
