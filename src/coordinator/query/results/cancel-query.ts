import type { StreamReader } from '../../../events/event-log.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { QueryId } from '../../../shared/ids.ts'
import type { Ending } from '../stream/ending.ts'
import type { QueryExecution } from '../registry/query-handle.ts'
import type { QueryRegistry } from '../registry/query-registry.ts'
import { readQuery } from '../stream/read-query.ts'
import { isTerminal, type KnownQuery, type QueryState } from '../stream/state.ts'
import { lookUpMs, timely, type StillWriting } from './still-writing.ts'

export interface CancelDeps {
  readonly clock: Clock
  readonly log: StreamReader
  readonly registry: Pick<QueryRegistry, 'get' | 'added'>
  readonly stillWriting: StillWriting
}

export type Canceled = 'done' | 'ended' | 'refused' | 'unknown' | 'waiting'

/** Ends a query, here or, where recovery has not taken it over yet, after that: `StatementService.cancel`. */
export async function cancelQuery(
  deps: CancelDeps,
  queryId: QueryId,
  ending: Ending,
  waitMs: number,
): Promise<Canceled> {
  const deadline = deps.clock.monotonicMs() + waitMs
  const leftMs = (): number => deadline - deps.clock.monotonicMs()
  const found = await untilHere(deps, queryId, leftMs)
  if (typeof found === 'string') return found
  const { query, execution } = found
  if (ending.mayEnd?.(query.created.session, queryId) === false) return 'refused'
  if (!execution || isTerminal(query.kind)) return endedSo(query, ending) ? 'done' : 'ended'
  void execution.fail(ending.failure, ending.endedBy).catch(() => {})
  while (!isTerminal(execution.aggregate.state.kind)) {
    const left = leftMs()
    if (left <= 0) return 'waiting'
    await execution.news(execution.revision, left)
  }
  return endedSo(execution.aggregate.state, ending) ? 'done' : 'ended'
}

/** Whether this ending ended the query. Endings without `endedBy` are equal if their errors are equal. */
function endedSo(state: QueryState, { failure, endedBy }: Ending): boolean {
  if (state.kind !== 'FAILED') return false
  if (!endedBy) return state.failure.errorName === failure.errorName
  const by = state.failed.endedBy
  // The same object was recorded. If another process carried the statement or act out, only their ids are equal.
  if (by === endedBy) return true
  const isSame = (one: 'statement' | 'act'): boolean => by?.[one] !== undefined && by[one] === endedBy[one]
  return isSame('statement') || isSame('act')
}

/**
 * Waits until the query is here, since recovery may still reach it. Returns it with its execution while it is open, or
 * the reason why there is none to end.
 */
async function untilHere(
  { log, registry, stillWriting }: CancelDeps,
  queryId: QueryId,
  leftMs: () => number,
): Promise<{ readonly query: KnownQuery; readonly execution?: QueryExecution } | 'unknown' | 'waiting'> {
  for (;;) {
    const execution = registry.get(queryId)
    if (execution) {
      const query = execution.aggregate.state
      if (query.kind !== 'NONE') return { query, execution }
      // The first event is not valid yet: no client knows the query, and it has no known owner.
      const left = leftMs()
      if (left <= 0) return 'waiting'
      await execution.news(execution.revision, left)
      continue
    }
    const { state: query } = await timely(readQuery(log, queryId), lookUpMs(leftMs()))
    if (query.kind === 'NONE') {
      await stillWriting(lookUpMs(leftMs()))
      return 'unknown'
    }
    if (isTerminal(query.kind)) return { query }
    // Recovery may have added it while its stream was read; waiting for an addition would then miss it.
    if (registry.get(queryId)) continue
    const left = leftMs()
    if (left <= 0) return 'waiting'
    await registry.added(left)
  }
}
