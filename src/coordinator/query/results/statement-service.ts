import type { LogEnd, StreamReader } from '../../../events/event-log.ts'
import type { QueryOwner } from '../../../security/authorization.ts'
import type { Clock } from '../../../shared/clock.ts'
import { isQueryId, type QueryId } from '../../../shared/ids.ts'
import type { RelayedPage } from '../../clusters/relay/sealed-address.ts'
import type { Ending } from '../stream/ending.ts'
import type { QueryExecution } from '../registry/query-handle.ts'
import type { PostedStatement } from '../secrets/query-secrets.ts'
import type { QueryRegistry } from '../registry/query-registry.ts'
import type { QueryEventOf } from '../stream/events.ts'
import { changesAtCluster } from '../stream/remote-routed.ts'
import { readQuery } from '../stream/read-query.ts'
import type { ResultPageSource } from './result-page-source.ts'
import { isEnded, type LiveQuery } from '../stream/state.ts'
import { cancelQuery, type Canceled } from './cancel-query.ts'
import { LiveAnswers } from './live-answers.ts'
import { createStillWriting, lookUpMs, timely } from './still-writing.ts'
import { createPastAnswers, type AskedPastPage, type FetchAgain } from './past-answers.ts'
import { statusAnswer, type StatementAnswer } from './statement-answer.ts'
import { submitStatement, type SubmitDeps } from './submit-statement.ts'

export type { StatementAnswer } from './statement-answer.ts'

export interface StatementService {
  /**
   * Starts a query. Resolves when the client may see its id and its plan is known, or a moment after the id.
   * @throws EngineError TOO_MANY_REQUESTS_FAILED too many open queries, or too much memory for them;
   * SERVER_SHUTTING_DOWN; LogUnavailable after its wait, or with a full disk
   */
  submit(statement: PostedStatement): Promise<QueryExecution>
  /**
   * The answer about token n; waits for something new at most `waitMs`.
   * @param relayed the page at a cluster that the client's address carries
   */
  poll(queryId: QueryId, token: number, waitMs: number, relayed?: RelayedPage): Promise<StatementAnswer>
  /**
   * Ends a query from outside.
   * @returns 'done' when this call has ended it; 'ended' when another end was faster, or it can only finish, and has;
   * 'refused' when the user has no right to; 'unknown' for no such query; 'waiting' when neither is valid after
   * `waitMs`, and may be later
   */
  cancel(queryId: QueryId, ending: Ending, waitMs: number): Promise<Canceled>
  /**
   * Ends a stage early; the query continues with the rows that it has. `unknown`: no such open query; `writes`:
   * refused, it writes.
   */
  cancelStage(queryId: QueryId, stage: number): Promise<'done' | 'unknown' | 'writes'>
  /** The owner of a query; not a promise for queries in memory. Undefined: no such query. */
  ownerOf(queryId: QueryId): QueryOwner | undefined | Promise<QueryOwner | undefined>
  /**
   * Whether there is such a query, open or ended a while ago. Counts as a sign of life of its client.
   * @param relayed the page at a cluster that the client's address carries
   */
  heartbeat(queryId: QueryId, relayed?: RelayedPage): Promise<boolean>
}

export interface StatementServiceDeps extends SubmitDeps {
  readonly clock: Clock
  readonly log: StreamReader & LogEnd
  readonly registry: QueryRegistry
  readonly pages: ResultPageSource
  readonly limits: SubmitDeps['limits'] & { readonly answersKeptMs: number }
  /**
   * The epoch of this coordinator. A higher one in the log belongs to another coordinator, which then answers clients.
   */
  readonly epoch: number
  /** Asks a cluster for a page of an ended statement again; undefined where no clusters are configured. */
  readonly fetchAgain?: FetchAgain | undefined
}

/**
 * The statements of clients. The state of the query decides which part answers:
 *
 * ```
 * submit ──────────────────────────► submit-statement.ts ──► the registry
 * poll ──┬ in the registry ─────────► live-answers.ts
 *        ├ ended, in the log ───────► past-answers.ts
 *        └ open, in the log ────────► its state, until recovery adds it to the registry
 * cancel ──────────────────────────► cancel-query.ts
 * ```
 */
export function createStatementService(deps: StatementServiceDeps): StatementService {
  const { clock, log, registry, pages } = deps
  const stillWriting = createStillWriting(log, deps.epoch)
  const live = new LiveAnswers({ clock, registry, pages, stillWriting })
  const past = createPastAnswers({
    clock,
    pages,
    answersKeptMs: deps.limits.answersKeptMs,
    fetchAgain: deps.fetchAgain,
  })

  async function pollLogged(
    queryId: QueryId,
    { token, relayed }: AskedPastPage,
    waitMs: number,
  ): Promise<StatementAnswer> {
    const { state } = await timely(readQuery(log, queryId), waitMs)
    if (state.kind === 'NONE') {
      await stillWriting(lookUpMs(waitMs))
      return { kind: 'unknown' }
    }
    return isEnded(state) ? past(state, { token, relayed }, waitMs) : pollUnclaimed(state, { token, relayed }, waitMs)
  }

  async function readOwner(queryId: QueryId): Promise<QueryOwner | undefined> {
    if (!isQueryId(queryId)) return undefined
    const { state } = await readQuery(log, queryId)
    return state.kind === 'NONE' ? undefined : state.created.session
  }

  /**
   * Answers for a query that is open in the log but not here: recovery has not reached it, or another coordinator has
   * it.
   */
  async function pollUnclaimed(
    query: LiveQuery,
    { token, relayed }: AskedPastPage,
    waitMs: number,
  ): Promise<StatementAnswer> {
    const until = clock.monotonicMs() + waitMs
    for (let left = waitMs; left > 0; left = until - clock.monotonicMs()) {
      const execution = registry.get(query.queryId)
      if (execution) return live.poll(execution, token, left, relayed)
      await registry.added(left)
    }
    return statusAnswer({ query, liveStats: new Map(), queuedReason: undefined }, token)
  }

  return {
    submit: (statement) => submitStatement(deps, statement),
    async poll(queryId, token, waitMs, relayed) {
      if (!isQueryId(queryId)) return { kind: 'unknown' }
      const execution = registry.get(queryId)
      return execution ? live.poll(execution, token, waitMs, relayed) : pollLogged(queryId, { token, relayed }, waitMs)
    },
    async cancel(queryId, ending, waitMs) {
      if (!isQueryId(queryId)) return 'unknown'
      return cancelQuery({ clock, log, registry, stillWriting }, queryId, ending, waitMs)
    },
    async cancelStage(queryId, stage) {
      const execution = registry.get(queryId)
      if (!execution) return 'unknown'
      registry.touch(queryId)
      const { intended } = execution.aggregate
      // With only a part of the rows the table would be neither the old table nor the new one.
      if (intended.kind !== 'NONE' && intended.planned && changesData(intended.planned)) return 'writes'
      await execution.cancelStage(stage)
      return 'done'
    },
    ownerOf(queryId) {
      const state = registry.get(queryId)?.aggregate.state
      if (state && state.kind !== 'NONE') return state.created.session
      return readOwner(queryId)
    },
    async heartbeat(queryId) {
      if (!isQueryId(queryId)) return false
      if (registry.get(queryId)) {
        registry.touch(queryId)
        return true
      }
      return (await readQuery(log, queryId)).state.kind !== 'NONE'
    },
  }
}

/** Whether a statement changes something, here or at a cluster. */
function changesData({ write, routed }: QueryEventOf<'QueryPlanned'>['data']): boolean {
  return write !== undefined || changesAtCluster(routed)
}
