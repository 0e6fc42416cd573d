import type { EventLog } from '../../events/event-log.ts'
import type { Clock } from '../../shared/clock.ts'
import { failureOf } from '../../shared/engine-error.ts'
import { decodeQueryEvent } from '../query/decode-event.ts'
import { evolve } from '../query/evolve.ts'
import { createQueryAggregate } from '../query/query-aggregate.ts'
import { initialQueryState, isTerminal, type QueryState } from '../query/state.ts'
import { queryTotals, stagesAtEnd } from '../query/totals.ts'

export interface EndedQueries {
  readonly failed: number
  readonly alreadyEnded: number
}

/**
 * Ends every query that the coordinator before left open with COORDINATOR_RESTARTED: each id ever given out ends in
 * exactly one terminal event. Pages of ended queries still answer.
 */
export async function endOpenQueries(
  log: EventLog,
  clock: Clock,
  open: readonly string[],
  onEnded: (queryId: string) => void = () => {},
): Promise<EndedQueries> {
  let failed = 0
  let alreadyEnded = 0
  // Side by side, so that their appends share a commit.
  await Promise.all(
    open.map(async (queryId) => {
      let state: QueryState = initialQueryState
      let sequence = 0
      for await (const recorded of log.readStream(queryId)) {
        sequence = recorded.sequence
        const event = decodeQueryEvent(recorded)
        if (event) state = evolve(queryId, state, event)
      }
      if (state.kind === 'NONE' || isTerminal(state.kind)) {
        alreadyEnded++
        return
      }
      const aggregate = createQueryAggregate(queryId, log, clock, () => undefined, { state, sequence })
      const failure = failureOf(
        'COORDINATOR_RESTARTED',
        'The coordinator was restarted while the query ran; submit it again',
      )
      await aggregate.execute([
        (query) =>
          query.kind === 'NONE'
            ? []
            : [...query.tasks.keys()].map((taskId) => ({ type: 'CancelTask', data: { taskId, reason: 'aborted' } })),
        (query) => {
          if (query.kind === 'NONE') return []
          const now = clock.now()
          const figures = {
            stages: [...stagesAtEnd(query, 'FAILED', new Date(now).toISOString())],
            totals: queryTotals(query, new Map(), now),
          }
          return [{ type: 'FailQuery', failure, figures }]
        },
      ])
      failed++
      onEnded(queryId)
    }),
  )
  return { failed, alreadyEnded }
}
