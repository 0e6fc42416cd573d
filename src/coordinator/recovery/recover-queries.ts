import type { EventLog } from '../../events/event-log.ts'
import type { Clock } from '../../shared/clock.ts'
import { failureOf, type ErrorName, type Failure } from '../../shared/engine-error.ts'
import { isQueryId, type QueryId } from '../../shared/ids.ts'
import type { StatementMemory } from '../dispatch/statement-memory.ts'
import { ownerOf, queryBytes } from '../query/held-bytes.ts'
import { createQueryAggregate, type QueryAggregate } from '../query/query-aggregate.ts'
import type { Resumption } from '../query/query-handle.ts'
import { querySpanContext } from '../query/query-spans.ts'
import { readQuery } from '../query/read-query.ts'
import { isDecided, isTerminal, type KnownQuery, type LiveQuery, type QueryState } from '../query/state.ts'
import { queryTotals, stagesAtEnd } from '../query/totals.ts'

export interface RecoveredQueries {
  readonly resumed: number
  readonly failed: number
  /** Ended by their last coordinator, which the caller did not know. */
  readonly ended: number
}

export interface RecoveryDeps {
  readonly log: Pick<EventLog, 'append' | 'readStream'>
  readonly clock: Clock
  readonly epoch: number
  /**
   * Streams of many queries at once, folded, as far as that can be had: for the others the log is asked.
   * @default none
   */
  readonly readMany?: (queryIds: readonly string[]) => Promise<ReadonlyMap<string, QueryStream>>
  /** Memory that open statements may take. */
  readonly memory: Pick<StatementMemory, 'holdRecovered'>
  /** Goes on with a query; QueryRecovered is valid. Called in the order of the queries' creation. */
  readonly resume: (queryId: QueryId, resumption: Resumption) => void
  /** Of a query that was ended, not resumed. */
  readonly onFailed?: (query: KnownQuery) => void
}

/** A query's stream as it stands. */
export interface QueryStream {
  readonly state: QueryState
  readonly sequence: number
}

/** Read and appended together. */
const CHUNK = 100

/**
 * Takes over every query that the coordinator before left open, in the order given. QueryRecovered is valid before a query is touched; one
 * that was recovered before and has no event of its own since is failed: no statement can kill the coordinator for ever.
 */
export async function recoverQueries(deps: RecoveryDeps, open: readonly string[]): Promise<RecoveredQueries> {
  let resumed = 0
  let failed = 0
  let ended = 0
  for (let from = 0; from < open.length; from += CHUNK) {
    const ids = open.slice(from, from + CHUNK)
    const streams = (await deps.readMany?.(ids).catch(() => undefined)) ?? new Map<string, QueryStream>()
    // Side by side, so that their appends share a commit.
    const resumptions = await Promise.all(
      ids.map(async (queryId) => {
        const stream = isQueryId(queryId) ? (streams.get(queryId) ?? (await readQuery(deps.log, queryId))) : undefined
        if (!isQueryId(queryId) || !stream || stream.state.kind === 'NONE' || isTerminal(stream.state.kind)) {
          ended++
          return undefined
        }
        const { state, sequence } = stream
        const live = state as LiveQuery
        const aggregate = createQueryAggregate(queryId, deps.log, deps.clock, () => querySpanContext(live), {
          state,
          sequence,
        })
        const refusal = reasonNotToTouch(live)
        const held = refusal
          ? undefined
          : deps.memory.holdRecovered(ownerOf(live.created), queryBytes(live), isDecided(live))
        if (!held) {
          await failQuery(aggregate, deps.clock, refusal ?? TOO_MUCH)
          if (aggregate.state.kind !== 'NONE') deps.onFailed?.(aggregate.state)
          failed++
          return undefined
        }
        const data = { count: live.recoveries + 1, phase: live.kind, epoch: deps.epoch }
        const events = await aggregate.execute([{ type: 'RecoverQuery', data }])
        return { queryId, resumption: { state: aggregate.state as LiveQuery, sequence: sequence + events, held } }
      }),
    )
    // Those that waited wait again in the order in which they came.
    for (const one of resumptions) {
      if (!one) continue
      deps.resume(one.queryId, one.resumption)
      resumed++
    }
  }
  return { resumed, failed, ended }
}

const TOO_MUCH = failureOf(
  'COORDINATOR_RESTARTED',
  'The coordinator was restarted, and the statements that were open take more memory than they may; submit it again',
)

function reasonNotToTouch(query: LiveQuery): Failure | undefined {
  // It cannot fail any more, and what is left to do takes nothing of the statement.
  if (isDecided(query)) return undefined
  const restarted: ErrorName = 'COORDINATOR_RESTARTED'
  if (query.recoveries > 0 && query.eventsSinceRecovery === 0)
    return failureOf(
      restarted,
      'The coordinator was restarted again while it recovered the query; it is not tried once more',
    )
  if (query.created.redacted && !query.planned)
    return failureOf(
      restarted,
      'The coordinator was restarted before the statement was planned; the secrets in it are not kept, so submit it again',
    )
  return undefined
}

async function failQuery(aggregate: QueryAggregate, clock: Clock, failure: Failure): Promise<void> {
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
}
