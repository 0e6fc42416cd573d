import type { StreamReader } from '../../../events/event-log.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { Failure } from '../../../shared/engine-error.ts'
import type { QueryId } from '../../../shared/ids.ts'
import type { QueryExecution } from '../query-handle.ts'
import type { QueryRegistry } from '../query-registry.ts'
import { readQuery } from '../read-query.ts'
import { isTerminal } from '../state.ts'
import { lookUpMs, type StillWriting } from './log-word.ts'

export interface CancelDeps {
  readonly clock: Clock
  readonly log: StreamReader
  readonly registry: Pick<QueryRegistry, 'get' | 'added'>
  readonly stillWriting: StillWriting
}

export type Canceled = 'done' | 'unknown' | 'waiting'

/** Ends a query with `failure`, here or, once it is taken over, when that comes: `StatementService.cancel`. */
export async function cancelQuery(
  deps: CancelDeps,
  queryId: QueryId,
  failure: Failure,
  waitMs: number,
): Promise<Canceled> {
  const deadline = deps.clock.monotonicMs() + waitMs
  const leftMs = (): number => deadline - deps.clock.monotonicMs()
  const execution = await untilHere(deps, queryId, leftMs)
  if (typeof execution === 'string') return execution
  void execution.fail(failure).catch(() => {})
  while (!isTerminal(execution.aggregate.state.kind)) {
    const left = leftMs()
    if (left <= 0) return 'waiting'
    await execution.news(execution.revision, left)
  }
  return 'done'
}

/** The query, which recovery may yet come to; or why there is none to fail. */
async function untilHere(
  { log, registry, stillWriting }: CancelDeps,
  queryId: QueryId,
  leftMs: () => number,
): Promise<QueryExecution | Canceled> {
  for (;;) {
    const known = registry.get(queryId)
    if (known) return known
    const { state } = await readQuery(log, queryId)
    if (state.kind === 'NONE') {
      await stillWriting(lookUpMs(leftMs()))
      return 'unknown'
    }
    if (isTerminal(state.kind)) return 'done'
    // Recovery may have come to it while its stream was read; who waits then is told of no addition.
    const taken = registry.get(queryId)
    if (taken) return taken
    const left = leftMs()
    if (left <= 0) return 'waiting'
    await registry.added(left)
  }
}
