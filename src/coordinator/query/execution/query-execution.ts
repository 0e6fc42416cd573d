import { propertyValue } from '../../../sql/session/session-properties.ts'
import type { QueryEventOf } from '../stream/events.ts'
import { groupOfQuery, initialQueryState, isOnHold, isTerminal } from '../stream/state.ts'
import { entitySpanId, formatTraceparent, parseTraceparent } from '../../../telemetry/trace-context.ts'
import { REMOTE_STAGE } from '../../../planner/query-plan.ts'
import type { QueryId } from '../../../shared/ids.ts'
import type { QueryExecution, Resumption, Submission } from '../registry/query-handle.ts'
import type { RemoteAnswers } from '../registry/remote-answers.ts'
import { canceledByClient } from '../stream/ending.ts'
import { createQueryAggregate, type QueryAggregate, type QueryStep } from '../stream/query-aggregate.ts'
import type { ResponseHeader } from '../session/session-headers.ts'
import { Suspended } from './suspended.ts'
import { Admission } from './admission.ts'
import { Analysis } from './analysis.ts'
import { Completion } from './completion.ts'
import type { ExecutionDeps } from './execution-deps.ts'
import { Figures } from './figures.ts'
import { HeldLimits } from './held-limits.ts'
import { createRecorder, type Recorder } from '../stream/recorder.ts'
import { OngoingWork } from './ongoing-work.ts'
import { createRunContext, type RunContextParts } from './run-context.ts'
import { Waiters } from './waiters.ts'
import { executeStatement } from './execute-statement.ts'
import { identityOf } from '../session/session-identity.ts'

/**
 * A query's execution, from its acceptance to its end in the log.
 *
 * ```
 *  beginExecution ── CreateQuery is held a little, to be batched ──────────────────────────────► recorder
 *       │
 *       ▼                    queued, admitted
 *  admission: a slot ──────────────────────────────► execute-statement
 *       ▲                                               ├─ delegated ─────────────────────────────► remote-statement
 *       │ a write, once its client follows              ├─ query ─────────┬─ literals ────────────► coordinator-run
 *       └───────────────────────────────────────────────┤                 ├─ system tables … ─────► coordinator-run
 *                                                       │                 └─ any other ───────────► run-plan
 *       planned, after a restart: continues ───────────►├─ session, call: wait for their client
 *                                                       ├─ explain ───────────────────────────────► coordinator-run
 *                                                       ├─ explain analyze: run-plan, for the figures
 *                                                       └─ write: rows by run-plan, decision, commit
 *
 *  ends:      finished with the last pages, or when the client has them │ failed, canceled
 *             then the slot, the memory and the tasks are given back; running work is stopped
 *  waiters:   answers wait for the plan and for news; some statements wait for their client
 * ```
 * All parts see the query through one `RunContext`. This file puts them together and is the handle that the
 * registry and the statement routes know.
 *
 * @param resumed the query as another coordinator left it open; absent for a new query
 */
export function beginExecution(
  deps: ExecutionDeps,
  queryId: QueryId,
  submission: Submission,
  resumed?: Resumption,
): QueryExecution {
  return new Execution(deps, queryId, submission, resumed)
}

class Execution implements QueryExecution {
  readonly queryId: QueryId
  readonly aggregate: QueryAggregate
  readonly created: Promise<void>
  readonly planKnown: Promise<void>
  readonly calls: QueryExecution['calls']
  readonly firstToken: number
  readonly #parts: RunContextParts
  #headers: readonly ResponseHeader[] | undefined
  #remote: RemoteAnswers | undefined

  constructor(deps: ExecutionDeps, queryId: QueryId, submission: Submission, resumed: Resumption | undefined) {
    const parts = putTogether(deps, queryId, submission, resumed, {
      keepHeaders: (headers) => void (this.#headers = headers),
      keepRemote: (answers) => void (this.#remote = answers),
    })
    const { admission, analysis, completion, limits, recorder, waiters } = parts
    this.queryId = queryId
    this.#parts = parts
    this.aggregate = parts.query.aggregate
    this.created = recorder.first
    this.planKnown = waiters.planKnown
    this.calls = analysis.calls
    this.firstToken = Math.max(0, resumed?.state.delivered ?? 0)
    const run = createRunContext(parts)

    limits.begin(resumed?.state.planned)
    executeStatement({ deps, run, submission, resumed, admission, analysis, limits, waiters })
      .catch((error: unknown) => completion.failFor(error))
      .catch((error: unknown) => completion.unrecorded(error))
      .finally(() => {
        waiters.planIsKnown()
        admission.leave()
      })
  }

  get liveStats(): QueryExecution['liveStats'] {
    return this.#parts.figures.live
  }

  get queuedReason(): string | undefined {
    return this.#parts.admission.queuedReason
  }

  get times(): QueryExecution['times'] {
    return this.#parts.analysis.times
  }

  get bytes(): number {
    return this.#parts.completion.bytes
  }

  get responseHeaders(): readonly ResponseHeader[] | undefined {
    return this.#headers
  }

  get remote(): QueryExecution['remote'] {
    return this.#remote
  }

  get followed(): boolean {
    return this.#parts.waiters.followed
  }

  get revision(): number {
    return this.#parts.waiters.revision
  }

  follow(): void {
    this.#parts.waiters.follow()
  }

  news(since: number, ms: number): Promise<void> {
    return this.#parts.waiters.news(since, ms)
  }

  pageInMemory(token: number): Buffer | undefined {
    return this.#parts.pages.get(token)
  }

  acknowledge(before: number): void {
    this.#parts.pages.forgetBefore(before)
  }

  finish(): Promise<void> {
    return this.#parts.completion.finish()
  }

  cancel(): Promise<void> {
    return this.#parts.completion.fail(canceledByClient.failure)
  }

  fail(...failing: Parameters<QueryExecution['fail']>): Promise<void> {
    return this.#parts.completion.fail(...failing)
  }

  async hold(data: QueryEventOf<'QueryHeld'>['data']): Promise<boolean> {
    const { admission, recorder } = this.#parts
    if (!admission.hold(data.reason)) return false
    await recorder.record([{ type: 'HoldQuery', data }])
    const { state } = this.aggregate
    if (state.kind !== 'NONE' && isOnHold(state)) return state.hold?.act === data.act
    admission.release()
    return false
  }

  async release(data: QueryEventOf<'QueryReleased'>['data']): Promise<boolean> {
    const { admission, recorder } = this.#parts
    await recorder.record([{ type: 'ReleaseQuery', data }])
    const { state } = this.aggregate
    if (state.kind === 'NONE' || isOnHold(state)) return false
    admission.release()
    return state.hold?.released?.act === data.act
  }

  async cancelStage(stage: number): Promise<void> {
    const { completion } = this.#parts
    if (!this.#remote) return completion.stopStage(stage)
    if (stage === REMOTE_STAGE && (await this.#remote.cancelStage())) completion.markPartial()
  }

  totals(): ReturnType<QueryExecution['totals']> {
    return this.#parts.figures.totals()
  }

  recordDelivery(token: number, rows: number, bytes: number): void {
    this.#parts.recorder.record([{ type: 'DeliverResults', data: { token, rows, bytes } }]).catch(() => {})
  }

  recordLoss(token: number, reason: string): void {
    this.#parts.recorder.record([{ type: 'LosePages', data: { tokens: [token], reason } }]).catch(() => {})
  }

  suspend(): void {
    const { limits, recorder, waiters, work } = this.#parts
    recorder.flush()
    limits.dispose()
    work.suspend()
    waiters.wake()
  }

  dispose(): void {
    const { completion, limits, pages, recorder } = this.#parts
    limits.dispose()
    recorder.dispose()
    pages.clear()
    completion.releaseMemory()
  }
}

/** Creates the parts, each with the others that it needs; nothing runs yet. */
function putTogether(
  deps: ExecutionDeps,
  queryId: QueryId,
  submission: Submission,
  resumed: Resumption | undefined,
  kept: Pick<RunContextParts, 'keepHeaders' | 'keepRemote'>,
): RunContextParts {
  const { cleaner, clock, groups, onInternalError, onUnrecorded } = deps
  const { created, held } = submission
  const startTimeMillis = resumed ? Date.parse(resumed.state.createdAt) : clock.now()
  const trace = parseTraceparent(created.traceparent)
  const spanContext: RunContextParts['spanContext'] = (name, entity) =>
    trace && formatTraceparent({ ...trace, spanId: entitySpanId(name, entity) })
  const ofQuery = spanContext('query', queryId)
  const aggregate = createQueryAggregate(queryId, deps.log, clock, () => ofQuery, {
    ...(resumed ?? { state: initialQueryState, sequence: 0 }),
    seal: submission.secrets.seal,
  })
  const work = new OngoingWork()
  const pages = deps.pageMemory()
  // The log does not know which pages of a cluster were delivered.
  const wasFollowed = (resumed?.state.delivered ?? -1) >= 0 || resumed?.state.planned?.route === 'delegated'
  const waiters = new Waiters(wasFollowed)
  const create: QueryStep = { type: 'CreateQuery', data: created, at: new Date(startTimeMillis).toISOString() }
  const hold = { holdMs: deps.firstAppendHoldMs, clock }
  const recorder = untilSuspended(createRecorder(aggregate, resumed ? undefined : create, hold), work)
  const { record } = recorder
  const analysis = new Analysis(deps, { queryId, submission, startTimeMillis, signal: work.signal })
  const figures = new Figures({ clock, aggregate, work, record, wake: () => waiters.wake() })
  const admission = new Admission({
    groups,
    clock,
    entrant: {
      group: resumed ? groupOfQuery(resumed.state) : created.resourceGroup,
      owner: held.owner,
      statement: { session: created.session, queryType: () => submission.type.get() },
      priority: propertyValue(created.session, 'query_priority'),
      signal: work.signal,
      usage: () => figures.usage(),
    },
    heldBefore: resumed && isOnHold(resumed.state) ? resumed.state.hold?.reason : undefined,
    record,
    onWait: () => submission.text.forget(),
  })
  const { answersKeptMs } = deps.limits
  const completion = new Completion({
    aggregate,
    record,
    work,
    figures,
    held,
    cleaner,
    answersKeptMs,
    digestsBy: deps.digester?.keyName,
    onInternalError,
    onUnrecorded,
  })
  const limits = new HeldLimits({
    clock,
    settings: { bounds: deps.limits.server, maxAttempts: deps.maxAttempts },
    properties: submission.session.properties,
    createdMillis: startTimeMillis,
    figures,
    fail: (failure) => completion.fail(failure).catch((error: unknown) => completion.unrecorded(error)),
  })
  aggregate.onValid(() => {
    if (isTerminal(aggregate.state.kind)) {
      submission.text.forget()
      limits.dispose()
      waiters.planIsKnown()
      admission.leave()
      completion.releaseMemory()
      completion.releaseTasks()
    }
    waiters.wake()
  })
  // The log refused the query, so no client will ever see it.
  recorder.first.catch(() => {
    limits.dispose()
    work.stop()
    completion.releaseMemory()
  })
  const { session } = created
  const query = { queryId, user: session.user, identity: identityOf(session), startTimeMillis, aggregate }
  const ofLife = { work, waiters, admission, analysis, figures, limits, completion }
  return { deps, query, recorder, ...ofLife, held, pages, spanContext, ...kept }
}

/** A recorder that stops when this process stops: the successor then records those events. */
function untilSuspended(recorder: Recorder, work: OngoingWork): Recorder {
  return {
    ...recorder,
    record: (steps, pages) => (work.suspended ? Promise.reject(new Suspended()) : recorder.record(steps, pages)),
    recordSoon: (commands) => (work.suspended ? Promise.reject(new Suspended()) : recorder.recordSoon(commands)),
  }
}
