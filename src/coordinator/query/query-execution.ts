import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import { Fenced, LogUnavailable, LogWentBackwards, NotTaken, TooLarge, type EventLog } from '../../events/event-log.ts'
import type { Split } from '../../execution/api/fragment.ts'
import type { TaskStats } from '../../execution/api/task.ts'
import type { EngineRun } from '../../execution/engine/engine.ts'
import { planStages } from '../../planner/plan-stages.ts'
import type { StagePlan } from '../../planner/stage-plan.ts'
import { deferred } from '../../shared/deferred.ts'
import { EngineError, failureOf, toFailure, type Failure } from '../../shared/engine-error.ts'
import type { QueryId } from '../../shared/ids.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { entitySpanId, formatTraceparent, parseTraceparent } from '../../telemetry/trace-context.ts'
import type { AnalyzedStatement, FrontEndTimes, MetadataPort, SqlFrontEnd } from '../../sql/front-end.ts'
import type { TaskCleaner } from '../scheduler/task-cleaner.ts'
import { catalogsOf, listSplits, loadSplits, readsSystem } from '../dispatch/catalog-metadata.ts'
import type { Place, ResourceGroups } from '../dispatch/resource-groups.ts'
import { makeRow, NO_STAGES, publishRow, runOnCoordinator } from './coordinator-run.ts'
import type { CoordinatorRun, CoordinatorRunDeps } from './coordinator-run.ts'
import { createConnectorCalls } from './connector-calls.ts'
import type { QueryCommand } from './decider.ts'
import type { QueryEventOf } from './events.ts'
import { explainAnalyzeText, runForFigures } from './explain-analyze.ts'
import { explainColumn, explainText } from './explain-text.ts'
import { createRecorder } from './first-append.ts'
import type { PageMemory } from './page-memory.ts'
import { checkPlanSize, plannedData, toStagePlan, withTimes, type PlanFacts } from './planned-data.ts'
import type { QueryExecution, Resumption, Submission } from './query-handle.ts'
import { createQueryAggregate, type Step } from './query-aggregate.ts'
import { checkHeaders, responseHeaders, type ResponseHeader } from './session-headers.ts'
import { sessionContext } from './session-context.ts'
import { initialQueryState, isDecided, isTerminal, resultSize, type KnownQuery } from './state.ts'
import { queryTotals, stagesAtEnd } from './totals.ts'
import { Suspended } from './suspended.ts'
import { runWorkerStage, secretsAreGone, type FinishedTask, type WorkerStageDeps } from './worker-stage.ts'
import { carryOutWrite, resumeWrite, type WriteDeps, type WriteRun } from './write-execution.ts'

type Planned = QueryEventOf<'QueryPlanned'>['data']

export interface ExecutionDeps extends WorkerStageDeps, WriteDeps, CoordinatorRunDeps {
  readonly log: EventLog
  readonly frontEnd: SqlFrontEnd
  readonly catalogs: Catalogs
  readonly metadata: MetadataPort
  readonly groups: ResourceGroups
  readonly version: string
  readonly nodeId: string
  readonly selfUrl: string
  readonly limits: {
    readonly pageBytes: number
    /** Rows of a coordinator-only result held in memory at most. */
    readonly inlineBytes: number
    readonly queryRunMs: number
    readonly answersKeptMs: number
    /** Of a request: what a client must remember comes with each. */
    readonly headerBytes: number
    /** A plan as text. */
    readonly planBytes: number
  }
  readonly cleaner: TaskCleaner
  /** For the pages of one query. */
  readonly pageMemory: () => PageMemory
  /** QueryCreated waits so long for company: a statement that ends by then is one append. Milliseconds. */
  readonly firstAppendHoldMs: number
  readonly onInternalError: (queryId: string, error: unknown) => void
  /** A query's end could not be recorded: only a successor that reads the log anew can end it. */
  readonly onUnrecorded: (queryId: string) => void
  /** What is read for a statement over `system` belongs to its span. */
  readonly withinSpan?: <T>(traceparent: string | undefined, run: () => Promise<T>) => Promise<T>
}

export function startQueryExecution(
  deps: ExecutionDeps,
  queryId: QueryId,
  submission: Submission,
  resumed?: Resumption,
): QueryExecution {
  const { clock } = deps
  const { created } = submission
  const startTimeMillis = resumed ? Date.parse(resumed.state.createdAt) : clock.now()
  const trace = parseTraceparent(created.traceparent)
  /** What is caused by an entity of the query is its span's child. */
  const spanContext = (name: string, entity: string): string | undefined =>
    trace && formatTraceparent({ ...trace, spanId: entitySpanId(name, entity) })
  const ofQuery = spanContext('query', queryId)
  const aggregate = createQueryAggregate(queryId, deps.log, clock, () => ofQuery, {
    ...(resumed ?? { state: initialQueryState, sequence: 0 }),
    seal: submission.secrets.seal,
  })
  const abort = new AbortController()
  const liveStats = new Map<string, TaskStats>()
  const pages = deps.pageMemory()
  const { held } = submission
  let endedBytes: number | undefined
  const place: { current: Place | undefined } = { current: undefined }
  let engineRun: EngineRun | undefined
  let queuedReason: string | undefined
  let times: FrontEndTimes | undefined
  const calls = created.sampled ? createConnectorCalls() : undefined
  let followed = (resumed?.state.delivered ?? -1) >= 0
  let partial = false
  let progressAt = clock.monotonicMs()
  let dropPending: (() => Promise<void>) | undefined
  const waiters = new Set<() => void>()
  let headers: readonly ResponseHeader[] | undefined
  const follow = deferred()
  const planKnown = deferred()

  let released = false
  let revision = 0
  const wake = (): void => {
    revision++
    for (const woken of waiters) woken()
  }
  aggregate.onValid(() => {
    if (isTerminal(aggregate.state.kind)) {
      planKnown.resolve()
      place.current?.release()
      letGo()
      releaseTasks()
    }
    wake()
  })
  /** What it held is given back: ended queries are counted by who keeps them. */
  function letGo(): void {
    endedBytes ??= held.bytes
    held.release()
  }

  /** Tasks whose pages are all beside the log are done with; others serve their pages as long as answers are kept. */
  function releaseTasks(): void {
    const query = aggregate.state
    if (released || query.kind === 'NONE') return
    released = true
    const serving = new Set(query.pages.filter((page) => page.kept === 'worker').map((page) => page.taskId))
    const tasks = [...query.tasks.values()].filter((task) => task.stage !== 0)
    const needed = query.kind === 'FINISHED'
    deps.cleaner.release(
      tasks.filter((task) => needed && serving.has(task.taskId)),
      deps.limits.answersKeptMs,
    )
    deps.cleaner.release(
      tasks.filter((task) => !(needed && serving.has(task.taskId))),
      0,
    )
  }

  const create: Step = { type: 'CreateQuery', data: created, at: new Date(startTimeMillis).toISOString() }
  const recorder = createRecorder(aggregate, resumed ? undefined : create, deps.firstAppendHoldMs)
  const { recordSoon, flush } = recorder
  // Nobody will ever be told of a query that the log refused.
  recorder.first.catch(() => {
    stopWork()
    letGo()
  })
  let suspended = false
  const record: typeof recorder.record = (steps, pages) =>
    suspended ? Promise.reject(new Suspended()) : recorder.record(steps, pages)

  // --- ends ------------------------------------------------------------------------------------------------------
  function endFigures(query: KnownQuery, end: 'FINISHED' | 'FAILED' | 'CANCELED') {
    const now = clock.now()
    const executionStartedAt = query.planned?.executionStartedAt
    return {
      stages: [...stagesAtEnd(query, end, new Date(now).toISOString())],
      totals: queryTotals(query, liveStats, now),
      ...(executionStartedAt === undefined ? {} : { executionStartedAt }),
    }
  }
  async function fail(thrown: Failure): Promise<void> {
    const { intended } = aggregate
    if (suspended || isTerminal(intended.kind) || (intended.kind !== 'NONE' && isDecided(intended))) return
    stopWork()
    const failure = boundedFailure(thrown)
    const canceled = failure.errorName === 'USER_CANCELED'
    const failing = (figures: ReadonlyMap<string, TaskStats>): readonly Step[] => [
      (query) =>
        query.kind === 'NONE'
          ? []
          : [...query.tasks.keys()].map((task) => {
              const stats = figures.get(task)
              return {
                type: 'CancelTask',
                data: { taskId: task, reason: canceled ? 'canceled' : 'aborted', ...(stats ? { stats } : {}) },
              }
            }),
      (query) =>
        query.kind === 'NONE'
          ? []
          : [{ type: 'FailQuery', failure, figures: endFigures(query, canceled ? 'CANCELED' : 'FAILED') }],
    ]
    await record(failing(liveStats)).catch((error: unknown) => {
      if (!(error instanceof NotTaken)) throw error
      // The end itself always fits: figures of its tasks do not have to.
      return record(failing(new Map()))
    })
  }
  /** Nothing that the query began goes on, nothing new is begun. */
  function stopWork(): void {
    abort.abort(new Ended())
    engineRun?.cancel()
  }
  /** New figures of a running task; the log has them once a second at most, and nobody waits for that. */
  function progressed(task: string, stats: TaskStats): void {
    liveStats.set(task, stats)
    wake()
    const now = clock.monotonicMs()
    if (now - progressAt < PROGRESS_MS || stats.endTime !== undefined || suspended) return
    progressAt = now
    record([
      (query) =>
        query.kind === 'NONE' || isTerminal(query.kind)
          ? []
          : [{ type: 'ReportProgress', data: { tasks: [{ taskId: task, state: 'RUNNING', stats }] } }],
    ]).catch(() => {})
  }

  /** QueryFinished, its figures taken when everything before it in the same append is counted. */
  function finishStep(extra: Partial<QueryEventOf<'QueryFinished'>['data']> = {}): Step {
    return (query) => {
      if (query.kind === 'NONE') return []
      const planned = query.planned
      const data = {
        ...resultSize(query.pages),
        ordered: planned?.ordered ?? false,
        responseHeaders: [],
        warnings: planned?.warnings ?? [],
        partial,
        ...(planned?.updateType === undefined ? {} : { updateType: planned.updateType }),
        ...endFigures(query, 'FINISHED'),
        ...extra,
      }
      return [{ type: 'FinishQuery', data }]
    }
  }

  // --- the way from text to result ---------------------------------------------------------------------------------
  async function enter(recovered = false): Promise<void> {
    const group = created.resourceGroup
    if (deps.groups.reservation && !recovered) {
      queuedReason = 'queries that waited before the coordinator was restarted come first'
      await deps.groups.reservation.counted
      abort.signal.throwIfAborted()
      queuedReason = undefined
    }
    const free = deps.groups.tryEnter(group, abort.signal, recovered)
    if (free) {
      place.current = free
      return
    }
    const since = clock.monotonicMs()
    const waiting = deps.groups.enter(group, abort.signal, recovered)
    queuedReason = `resource group "${group}" is full; position ${waiting.position}`
    await record([
      { type: 'QueueQuery', data: { resourceGroup: group, reason: queuedReason, position: waiting.position } },
    ])
    const given = await waiting.place
    abort.signal.throwIfAborted()
    if (given) place.current = given
    queuedReason = undefined
    const queuedNanos = Math.round((clock.monotonicMs() - since) * 1e6)
    await record([{ type: 'AdmitQuery', data: { resourceGroup: group, queuedNanos } }])
  }

  async function run(): Promise<void> {
    if (resumed?.state.planned) return goOn(resumed.state.planned)
    if (resumed && created.redacted) throw secretsAreGone()
    // One that had a place keeps it.
    if (resumed?.state.kind === 'PLANNING') place.current = deps.groups.occupy(created.resourceGroup, abort.signal)
    else await enter(resumed !== undefined)
    const analysisStart = clock.monotonicMs()
    const analyzed = await analyze()
    const analysisNanos = Math.round((clock.monotonicMs() - analysisStart) * 1e6)
    return carryOut(analyzed, analysisNanos)
  }

  /** A planned query after a restart: it is not planned again, and what is published is not computed again. */
  async function goOn(planned: Planned): Promise<void> {
    planKnown.resolve()
    place.current = deps.groups.occupy(created.resourceGroup, abort.signal)
    if (aggregate.intended.kind === 'FINISHING') return
    const root = planned.stages[0]
    const work = planned.stages.find((stage) => stage.fragment !== undefined || stage.withheld !== undefined)
    // The stage's rows are not the answer: EXPLAIN ANALYZE tells the figures of one run, and that run was cut.
    if (work && planned.queryType === 'EXPLAIN')
      throw new EngineError(
        'COORDINATOR_RESTARTED',
        'The coordinator was restarted while the statement was measured; submit it again',
      )
    if (planned.write) {
      const resumedWrite = resumeWrite(deps, writeRun, planned)
      if (resumedWrite !== 'analyze') return resumedWrite
      if (created.redacted) throw secretsAreGone()
      return carryOutWrite(deps, writeRun, await analyzeWrite(), 0)
    }
    // A task that another coordinator made of it may still be there; what runs here runs anew.
    if (root?.withheld) throw secretsAreGone()
    if (work && root?.fragment) return runOnCoordinator(deps, coordinatorRun, toStagePlan(root), undefined)
    if (work) {
      await runOnWorker(toStagePlan(work), undefined)
      return
    }
    if (created.redacted) throw secretsAreGone()
    // No stage computes: a session statement or an EXPLAIN, which say the same again.
    await carryOut(await analyze(), 0)
  }

  function analyze(): Promise<AnalyzedStatement> {
    return deps.frontEnd.analyzeStatement(
      submission.sql,
      sessionContext(queryId, submission, startTimeMillis),
      calls ? calls.noting(deps.metadata) : deps.metadata,
      (told) => void (times = told),
    )
  }

  async function analyzeWrite(): Promise<Extract<AnalyzedStatement, { kind: 'write' }>> {
    const analyzed = await analyze()
    if (analyzed.kind !== 'write') throw new Error('a statement that writes has become another')
    return analyzed
  }

  async function carryOut(analyzed: AnalyzedStatement, analysisNanos: number): Promise<void> {
    switch (analyzed.kind) {
      case 'query':
        return runQuery(analyzed, analysisNanos)
      case 'session': {
        const { queryType, updateType, warnings } = analyzed
        headers = responseHeaders(queryId, analyzed.changes)
        checkHeaders(headers, deps.limits.headerBytes)
        held.more(JSON.stringify(headers).length)
        const recorded = recordSoon([
          planned({ ...NO_STAGES, queryType, analysisNanos, updateType, warnings, columns: [] }),
        ])
        // Clients repeat a POST whose answer was lost: it has no effect and no place before its first GET.
        place.current?.release()
        flush()
        await Promise.all([recorded, follow.promise])
        abort.signal.throwIfAborted()
        await record([
          finishStep({
            responseHeaders: [...headers],
            updateType: analyzed.updateType,
          }),
        ])
        return
      }
      case 'explain': {
        if (analyzed.analyze) return runExplainAnalyze(analyzed, analysisNanos)
        const text = await explain(analyzed)
        const columns = analyzed.columns.map((column) => explainColumn(column, text))
        return makeRow(deps, coordinatorRun, JSON.stringify([text]), {
          queryType: analyzed.queryType,
          columns,
          analysisNanos,
        })
      }
      case 'write':
        // Not awaited here: what was found out is not kept for as long as nobody follows.
        return writeOnceFollowed(analysisNanos)
      default:
        return unreachable(analyzed)
    }
  }

  async function writeOnceFollowed(analysisNanos: number): Promise<void> {
    // Clients repeat a POST whose answer was lost: it has no effect and no place before its first GET.
    place.current?.release()
    flush()
    planKnown.resolve()
    wake()
    await follow.promise
    abort.signal.throwIfAborted()
    await enter()
    // Nobody followed until now: the catalogs may have changed since.
    return carryOutWrite(deps, writeRun, await analyzeWrite(), analysisNanos)
  }

  async function runQuery(
    analyzed: Extract<AnalyzedStatement, { kind: 'query' }>,
    analysisNanos: number,
  ): Promise<void> {
    const { literalRow, outline } = analyzed.query
    if (literalRow !== undefined) {
      const { queryType, columns, warnings } = analyzed
      return makeRow(deps, coordinatorRun, literalRow, { queryType, columns, warnings, outline, analysisNanos })
    }
    const planStart = clock.monotonicMs()
    const list = () => listSplits(deps.catalogs, analyzed.query)
    const input = await (calls ? calls.timed('splits', catalogsOf(analyzed.query), list) : list())
    abort.signal.throwIfAborted()
    const stages = planStages(analyzed.query, analyzed.columns, input)
    const root = stages[0]!
    const tables = analyzed.reads.map((read) => ({ ...read, columns: [...read.columns], mode: 'READ' as const }))
    const plan = planned({
      queryType: analyzed.queryType,
      route: root.fragment ? 'coordinator' : 'local',
      columns: analyzed.columns,
      tables,
      stages,
      analysisNanos,
      planningNanos: Math.round((clock.monotonicMs() - planStart) * 1e6),
      warnings: analyzed.warnings,
      ordered: analyzed.query.ordered,
      outline: analyzed.query.outline,
    })
    if (root.fragment) return runOnCoordinator(deps, coordinatorRun, root, plan)
    await runOnWorker(
      stages.find((stage) => stage.fragment !== undefined)!,
      plan,
    )
  }

  /** A stage's splits with rows of system tables as they are now: in no event, and listed again after a restart. */
  async function splitsOf(stage: StagePlan): Promise<readonly Split[]> {
    if (!readsSystem(deps.catalogs, stage)) return stage.splits
    // Who asks which queries there are is one of them.
    flush()
    await recorder.first
    const load = () => loadSplits(deps.catalogs, stage)
    const splits = await (deps.withinSpan ? deps.withinSpan(ofQuery, load) : load())
    abort.signal.throwIfAborted()
    return splits
  }

  async function runOnWorker(work: StagePlan, plan: QueryCommand | undefined): Promise<FinishedTask | undefined> {
    return runWorkerStage(
      deps,
      {
        queryId,
        stage: work,
        user: created.session.user,
        startTimeMillis,
        profile: created.sampled || !(work.fragment?.estimate.small ?? false),
        traceparent: spanContext('stage', `${queryId}.${work.id}`),
        remainingMillis: deps.limits.queryRunMs,
        aggregate,
        signal: abort.signal,
        splitsOf,
        record,
        finish: finishStep(),
        onStats: progressed,
        onRunning: (drop) => {
          if (!work.fragment?.write && !work.withheld) dropPending = drop
        },
        onPageBytes: (token, bytes) => pages.set(token, bytes),
      },
      plan,
    )
  }

  /** The plan as its event has it; from now on the POST can be answered with it. */
  function planned(facts: PlanFacts): QueryCommand {
    const data = plannedData(withTimes(facts, times), new Date(clock.now()).toISOString())
    held.more(checkPlanSize(data, deps.limits.planBytes))
    planKnown.resolve()
    wake()
    return { type: 'PlanQuery', data }
  }

  /** Runs the statement, tells what each operator did, and throws its rows away. */
  async function runExplainAnalyze(
    analyzed: Extract<AnalyzedStatement, { kind: 'explain' }>,
    analysisNanos: number,
  ): Promise<void> {
    const inner = analyzed.statement
    if (inner.kind !== 'query')
      throw new EngineError('NOT_SUPPORTED', 'EXPLAIN ANALYZE of a statement that changes something is not supported')
    const planStart = clock.monotonicMs()
    const input = await listSplits(deps.catalogs, inner.query)
    const tables = inner.reads.map((read) => ({ ...read, columns: [...read.columns], mode: 'READ' as const }))
    // Operators run on a worker, whatever the statement is.
    const stages = planStages({ ...inner.query, simple: false }, inner.columns, input)
    const work = stages.find((stage) => stage.fragment !== undefined)!
    const planningNanos = Math.round((clock.monotonicMs() - planStart) * 1e6)
    const { columns } = analyzed
    const plan = planned({
      queryType: 'EXPLAIN',
      route: 'local',
      columns,
      tables,
      stages,
      analysisNanos,
      planningNanos,
    })
    const stats = await runForFigures(
      deps,
      {
        queryId,
        stage: work,
        user: created.session.user,
        startTimeMillis,
        profile: true,
        traceparent: spanContext('stage', `${queryId}.${work.id}`),
        remainingMillis: deps.limits.queryRunMs,
        aggregate,
        signal: abort.signal,
        splitsOf,
        record,
        onStats: progressed,
      },
      plan,
    )
    const text = explainAnalyzeText({ stage: work, stats }, { analysisNanos, planningNanos }, analyzed.verbose)
    await publishRow(deps, coordinatorRun, JSON.stringify([text]), 'ExplainAnalyzeOperator')
  }

  async function explain(analyzed: Extract<AnalyzedStatement, { kind: 'explain' }>): Promise<string | boolean> {
    const inner = analyzed.statement
    if (inner.kind !== 'query') return explainText(analyzed, [])
    const input = await listSplits(deps.catalogs, inner.query)
    return explainText(analyzed, planStages(inner.query, inner.columns, input))
  }

  const coordinatorRun: CoordinatorRun = {
    queryId,
    signal: abort.signal,
    record,
    recordSoon,
    planned,
    splitsOf,
    hold: (bytes) => held.more(bytes),
    finish: finishStep,
    onEngineRun: (running) => void (engineRun = running),
    onPage: (token, bytes) => pages.set(token, bytes),
  }

  const writeRun: WriteRun = {
    queryId,
    aggregate,
    signal: abort.signal,
    record,
    planned,
    async runStage(stage, plan) {
      const finished = await runOnWorker(stage, plan)
      if (!finished) throw new Error('a stage that writes ends with its task')
      return finished
    },
    finish: finishStep,
    onPage: (token, bytes) => pages.set(token, bytes),
  }

  run()
    .catch(async (error: unknown) => {
      if (suspended || error instanceof Ended) return
      if (!(error instanceof EngineError || error instanceof NotTaken)) deps.onInternalError(queryId, error)
      await fail(error instanceof NotTaken ? notTaken(error) : toFailure(error))
    })
    .catch((error: unknown) => {
      if (suspended) return
      deps.onInternalError(queryId, error)
      // The log itself tells of these, and a query nobody saw needs no end.
      const told = error instanceof Fenced || error instanceof LogWentBackwards
      const unseen = (error instanceof LogUnavailable || error instanceof NotTaken) && aggregate.state.kind === 'NONE'
      if (!told && !unseen) deps.onUnrecorded(queryId)
    })
    .finally(() => {
      planKnown.resolve()
      place.current?.release()
    })

  return {
    queryId,
    aggregate,
    liveStats,
    created: recorder.first,
    planKnown: planKnown.promise,
    firstToken: Math.max(0, resumed?.state.delivered ?? 0),
    get queuedReason() {
      return queuedReason
    },
    get times() {
      return times
    },
    calls: calls?.made ?? [],
    get bytes() {
      return endedBytes ?? held.bytes
    },
    get responseHeaders() {
      return headers
    },
    get followed() {
      return followed
    },
    follow() {
      followed = true
      follow.resolve()
    },
    get revision() {
      return revision
    },
    news(since, ms) {
      if (revision !== since) return Promise.resolve()
      return new Promise((resolve) => {
        const woken = (): void => {
          clearTimeout(timer)
          waiters.delete(woken)
          resolve()
        }
        const timer = setTimeout(woken, ms)
        waiters.add(woken)
      })
    },
    pageInMemory: (token) => pages.get(token),
    acknowledge: (before) => pages.forgetBefore(before),
    async finish() {
      if (isTerminal(aggregate.state.kind)) return
      await record([finishStep()])
    },
    cancel: () =>
      fail({
        errorName: 'USER_CANCELED',
        errorCode: 3,
        errorType: 'USER_ERROR',
        message: 'Query was canceled',
      }),
    fail,
    async cancelStage(stage) {
      const query = aggregate.intended
      if (query.kind === 'NONE' || isTerminal(query.kind) || !dropPending) return
      if (stage !== 0 && !query.planned?.stages.some(({ id }) => id === stage)) return
      partial = true
      await dropPending()
    },
    totals() {
      const query = aggregate.intended
      return query.kind === 'NONE' ? undefined : queryTotals(query, liveStats, clock.now())
    },
    recordDelivery(token, rows, bytes) {
      record([{ type: 'DeliverResults', data: { token, rows, bytes } }]).catch(() => {})
    },
    recordLoss(token, reason) {
      record([{ type: 'LosePages', data: { tokens: [token], reason } }]).catch(() => {})
    },
    suspend() {
      flush()
      suspended = true
      abort.abort(new Suspended())
      engineRun?.cancel()
      wake()
    },
    dispose() {
      recorder.dispose()
      pages.clear()
      letGo()
    },
  }
}

/** A failure is part of an event, of rows of the read models and of every answer. */
const MAX_MESSAGE = 8 * 1024

function boundedFailure(failure: Failure): Failure {
  if (failure.message.length <= MAX_MESSAGE) return failure
  return { ...failure, message: `${failure.message.slice(0, MAX_MESSAGE).replace(/[\uD800-\uDBFF]$/, '')}…` }
}

function notTaken(error: NotTaken): Failure {
  const message =
    error instanceof TooLarge
      ? `What is to be recorded of the statement takes ${error.bytes} bytes; the event log takes at most ${error.maxBytes} at once`
      : 'The event log does not take what is to be recorded of the statement'
  return failureOf('GENERIC_INSUFFICIENT_RESOURCES', message)
}

/** At most one QueryProgressed a query in this time, and none for a query that is over sooner. */
const PROGRESS_MS = 1000

/** The query has ended while something of it still ran: nobody needs to be told. */
class Ended extends Error {}
