import { isBelow, type Checkpoint, type Position } from '../../../events/event-log.ts'
import type { QueryExecution } from './query-handle.ts'

/** Keeps where the events of ended queries lie in the log, while the read models do not have them. */
export interface LogPositions {
  add(stream: string, span: { readonly first: Position; readonly last: Position }): void
  projected(isBelow: (position: Position) => boolean): void
}

/** Decides which source answers for an ended query: this process's memory, the read models, or the log itself. */
export interface QueryRetention {
  /** Whether the read models have everything up to this position. */
  isProjected(position: Position): boolean
  /** Whether reads no longer need the query's aggregate. */
  mayForget(query: Pick<QueryExecution, 'aggregate'>): boolean
  /**
   * @returns whether its statement can be answered without the aggregate, although the read models do not have it yet
   */
  leave(query: Pick<QueryExecution, 'queryId' | 'aggregate'>): boolean
}

export interface RetentionDeps {
  /** The position that the read models have reached. */
  readonly committed: () => Checkpoint
  readonly positions: LogPositions
  /** Whether the log finds a stream by itself. */
  readonly logHasIndex: boolean
}

export function createQueryRetention({ committed, positions, logHasIndex }: RetentionDeps): QueryRetention {
  const isProjected = (position: Position): boolean => isBelow(position, committed())
  return {
    isProjected,
    mayForget({ aggregate: { position } }) {
      positions.projected(isProjected)
      return position !== undefined && isProjected(position)
    },
    leave({ queryId, aggregate: { firstPosition: first, position: last } }) {
      if (logHasIndex) return true
      if (!first || !last || first.partition !== last.partition) return false
      positions.add(queryId, { first, last })
      return true
    },
  }
}

/**
 * The time since which result pages are needed.
 * @returns creation of the oldest query in memory, or `now`; milliseconds since the epoch
 */
export function pagesNeededSince(queries: readonly Pick<QueryExecution, 'aggregate'>[], now: number): number {
  return queries.reduce(
    (oldest, { aggregate: { state } }) =>
      state.kind === 'NONE' ? oldest : Math.min(oldest, Date.parse(state.createdAt)),
    now,
  )
}
