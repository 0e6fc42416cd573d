import type { Failure } from '../../shared/engine-error.ts'
import { isTaskTerminal, type TaskStats } from '../../execution/api/task.ts'
import type { HeaderFamily } from './session-headers.ts'
import type { StatementUris } from './next-uri.ts'
import type { RemoteColumn, RemoteError, RemoteTail } from '../../coordinator/clusters/relay/relay-port.ts'
import type { RelayedPage } from '../../coordinator/clusters/relay/sealed-address.ts'
import type { RelayedQueryAnswer } from '../../coordinator/query/registry/remote-answers.ts'
import { writtenBy, type KnownQuery } from '../../coordinator/query/stream/state.ts'
import {
  queryTotals,
  stageTimes,
  statsOf,
  type QueryTotals,
  type StageTimes,
} from '../../coordinator/query/statistics/totals.ts'
import { ROOT_STAGE, type TaskId } from '../../shared/ids.ts'
import type { QueryError, QueryResults, StageStats, StatementStats } from '../info/schemas/statement.ts'

/** The parts of an answer, with the query. */
export interface AnswerView {
  readonly query: KnownQuery
  readonly liveStats: ReadonlyMap<TaskId, TaskStats>
  readonly queuedReason: string | undefined
  readonly nextToken: number | undefined
  /** The page at a cluster behind the next token. */
  readonly relayed?: RelayedPage | undefined
  readonly failure: Failure | undefined
  /** See `StatementView.failureInfo`. */
  readonly failureInfo?: RemoteError['failureInfo']
  /** Milliseconds since the epoch. Times of running parts are computed up to it. */
  readonly now: number
  /** The POST's answer: its state is at most RUNNING, and it never has an error. */
  readonly initial: boolean
}

/** An answer's JSON around the page. The page's bytes are the value of `data`, sent unchanged. */
export interface AnswerText {
  readonly head: string
  readonly tail: string
}

/**
 * The body of a statement's answer: keys in Trino's order, absent keys left out.
 * With a page the body is `head + page + tail`, else `head + tail`.
 */
export function answerText(view: AnswerView, uris: StatementUris, hasPage: boolean): AnswerText {
  const { query, nextToken } = view
  const { baseUri, headerFamily } = query.created
  const stages = stageTimes(query)
  const figures = figuresOf(view)
  const open = stages.filter((stage) => view.initial || !isDone(stage.state))
  const before = {
    id: query.queryId,
    infoUri: uris.infoUri(baseUri, query.queryId),
    partialCancelUri:
      query.planned && query.planned.route !== 'delegated' && open.length > 0 && nextToken !== undefined
        ? uris.partialCancelUri(baseUri, query.queryId, Math.max(...open.map((stage) => stage.id)))
        : undefined,
    nextUri: nextToken === undefined ? undefined : uris.nextUri(baseUri, query.queryId, nextToken, view.relayed),
    // The columns of a delegated statement come with the answers of its cluster.
    columns:
      query.planned && query.planned.route !== 'delegated' && !view.failure
        ? wireColumns(query.planned.columns, headerFamily)
        : undefined,
  } satisfies Partial<QueryResults>
  const after = {
    stats: statementStats(view, figures, stages),
    error: view.failure && wireError(view.failure, view.failureInfo),
    warnings: query.kind === 'FINISHED' ? query.finished.warnings : (query.planned?.warnings ?? []),
    updateType: query.planned?.updateType,
    updateCount: query.kind === 'FINISHED' ? query.finished.updateCount : undefined,
  } satisfies Partial<QueryResults>
  // JSON leaves undefined values out.
  const head = JSON.stringify(before).slice(0, -1)
  const tail = JSON.stringify(after).slice(1)
  return hasPage ? { head: `${head},"data":`, tail: `,${tail}` } : { head: `${head},${tail}`, tail: '' }
}

function figuresOf({ query, liveStats, now }: AnswerView): QueryTotals {
  if (query.kind === 'FINISHED') return query.finished.totals
  if (query.kind === 'FAILED') return query.failed.totals
  return queryTotals(query, liveStats, now)
}

/** Presto's clients parse `type` only, strictly, and expect an older form of the signature: they get none. */
function wireColumns(columns: readonly RemoteColumn[], family: HeaderFamily): QueryResults['columns'] {
  return columns.map(({ name, type, typeSignature }) => ({
    name,
    type,
    typeSignature: family === 'Presto' ? undefined : typeSignature,
  }))
}

/**
 * The beginning of an answer that a cluster gives, with addresses of this server: up to the rows, or to the members
 * behind them where there are no rows.
 * @param token the token that the client asked for
 */
export function relayedHead(answer: RelayedQueryAnswer, token: number, uris: StatementUris): string {
  const { query, next, cancelableStage, columns, data } = answer
  const { queryId } = query
  const { baseUri, headerFamily } = query.created
  const head = JSON.stringify({
    id: queryId,
    infoUri: uris.infoUri(baseUri, queryId),
    // Absent keys are left out.
    partialCancelUri:
      cancelableStage === undefined ? undefined : uris.partialCancelUri(baseUri, queryId, cancelableStage),
    nextUri: next && uris.nextUri(baseUri, queryId, token + 1, next),
    columns: columns && wireColumns(columns, headerFamily),
  })
  return `${head.slice(0, -1)}${data ? ',"data":' : ''}`
}

/** The end of an answer that a cluster gives, behind `relayedHead` and the rows. */
export function relayedTail({ stats, error, warnings, updateType, updateCount }: RemoteTail): string {
  return `,${JSON.stringify({ stats, error, warnings, updateType, updateCount }).slice(1)}`
}

/**
 * The protocol's `error` object.
 * @param remoteInfo the cluster's error with its causes, for a failure at a cluster
 */
export function wireError(failure: Failure, remoteInfo?: RemoteError['failureInfo']): QueryError {
  const { message, location } = failure
  // A client that knows the cluster's connectors knows their errors.
  const { errorName, errorCode, errorType } = failure.remote ?? failure
  const errorLocation = location ? { errorLocation: { ...location } } : {}
  return {
    message,
    errorCode,
    errorName,
    errorType,
    ...errorLocation,
    failureInfo: {
      type: 'io.quipu.EngineError',
      message,
      suppressed: [],
      stack: [],
      errorInfo: { code: errorCode, name: errorName, type: errorType },
      ...errorLocation,
      ...(failure.remote && remoteInfo),
    },
  }
}

function statementState(view: AnswerView): StatementStats['state'] {
  const { query } = view
  if (view.failure && !view.initial) return 'FAILED'
  if (!view.initial) return view.nextToken !== undefined && query.kind === 'FINISHED' ? 'FINISHING' : query.kind
  switch (query.kind) {
    case 'QUEUED':
    case 'PLANNING':
      return query.kind
    case 'STARTING':
    case 'RUNNING':
    case 'FINISHING':
    case 'FINISHED':
      return 'RUNNING'
    case 'FAILED':
      return 'QUEUED'
    default:
      throw new Error(`Unknown query state: ${JSON.stringify(query satisfies never)}`)
  }
}

const millis = (nanos: number): number => Math.round(nanos / 1e6)

function statementStats(view: AnswerView, totals: QueryTotals, stages: readonly StageTimes[]): StatementStats {
  const { query } = view
  const splits = splitCounts(query, view.liveStats)
  const planned = query.planned !== undefined
  const nodes = new Set([...query.tasks.values()].map((task) => task.nodeId)).size
  const hasSplits = splits.totalSplits > 0
  return {
    state: statementState(view),
    queued: query.kind === 'QUEUED',
    scheduled: planned && query.planned.stages.every((stage) => hasTasks(query, stage.id) || isFinished(query)),
    nodes,
    ...splits,
    planningTimeMillis: millis(totals.planningNanos),
    analysisTimeMillis: millis(totals.analysisNanos),
    cpuTimeMillis: millis(totals.cpuNanos),
    wallTimeMillis: millis(totals.wallNanos),
    queuedTimeMillis: millis(totals.queuedNanos),
    elapsedTimeMillis: millis(totals.elapsedNanos),
    finishingTimeMillis: 0,
    physicalInputTimeMillis: 0,
    processedRows: totals.processedInputPositions,
    processedBytes: totals.processedInputBytes,
    physicalInputBytes: totals.rawInputBytes,
    physicalWrittenBytes: writtenBy(query).bytes,
    internalNetworkInputBytes: query.planned && query.planned.stages.length > 1 ? totals.outputBytes : 0,
    peakMemoryBytes: totals.peakMemoryBytes,
    spilledBytes: totals.spilledBytes,
    queuedReason: view.queuedReason,
    progressPercentage: !hasSplits
      ? undefined
      : isFinished(query)
        ? 100
        : percent(splits.completedSplits, splits.totalSplits),
    runningPercentage: hasSplits ? percent(splits.runningSplits, splits.totalSplits) : undefined,
    rootStage: query.planned && stages.length > 0 ? stageStats(view, ROOT_STAGE, stages) : undefined,
  }
}

function stageStats(view: AnswerView, id: number, stages: readonly StageTimes[]): StageStats | undefined {
  const { query, liveStats } = view
  const planned = query.planned?.stages.find((stage) => stage.id === id)
  if (!planned) return undefined
  const tasks = [...query.tasks.values()].filter((task) => task.stage === id)
  const state =
    view.initial && query.kind !== 'FAILED'
      ? 'SCHEDULED'
      : (stages.find((stage) => stage.id === id)?.state ?? 'PLANNED')
  const sum = (pick: (stats: TaskStats) => number): number =>
    tasks.reduce((total, task) => {
      const stats = statsOf(task, liveStats)
      return total + (stats ? pick(stats) : 0)
    }, 0)
  return {
    stageId: String(id),
    state,
    done: isDone(state),
    nodes: new Set(tasks.map((task) => task.nodeId)).size,
    totalSplits: sum((stats) => stats.totalSplits),
    queuedSplits: sum((stats) => stats.queuedSplits),
    runningSplits: sum((stats) => stats.runningSplits),
    completedSplits: sum((stats) => stats.completedSplits),
    cpuTimeMillis: millis(sum((stats) => stats.cpuNanos)),
    wallTimeMillis: millis(sum((stats) => stats.wallNanos)),
    processedRows: sum((stats) => stats.processedInputPositions),
    processedBytes: sum((stats) => stats.processedInputBytes),
    physicalInputBytes: sum((stats) => stats.rawInputBytes),
    failedTasks: tasks.filter((task) => task.state === 'FAILED').length,
    coordinatorOnly: planned.distribution === 'coordinator',
    subStages: planned.inputs.map((input) => stageStats(view, input, stages)).filter((stage) => stage !== undefined),
  }
}

function splitCounts(query: KnownQuery, live: ReadonlyMap<TaskId, TaskStats>) {
  const counts = { totalSplits: 0, queuedSplits: 0, runningSplits: 0, completedSplits: 0 }
  for (const task of query.tasks.values()) {
    const stats = statsOf(task, live)
    if (!stats) continue
    counts.totalSplits += stats.totalSplits
    counts.completedSplits += stats.completedSplits
    if (isTaskTerminal(task.state)) continue
    counts.queuedSplits += stats.queuedSplits
    counts.runningSplits += stats.runningSplits
  }
  return counts
}

function isDone(state: string): boolean {
  return state === 'FINISHED' || state === 'CANCELED' || state === 'ABORTED' || state === 'FAILED'
}

function isFinished(query: KnownQuery): boolean {
  return query.kind === 'FINISHED'
}

function hasTasks(query: KnownQuery, stage: number): boolean {
  for (const task of query.tasks.values()) if (task.stage === stage) return true
  // The root relays: it runs as soon as the stage that it reads runs.
  return stage === ROOT_STAGE && query.tasks.size > 0
}

function percent(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.min(100, Math.round((part / whole) * 10_000) / 100)
}

/** Figures of a query about which nothing is known here yet: it counts as queued. */
export function emptyStats(): StatementStats {
  return {
    state: 'QUEUED',
    queued: true,
    scheduled: false,
    nodes: 0,
    totalSplits: 0,
    queuedSplits: 0,
    runningSplits: 0,
    completedSplits: 0,
    cpuTimeMillis: 0,
    wallTimeMillis: 0,
    queuedTimeMillis: 0,
    elapsedTimeMillis: 0,
    processedRows: 0,
    processedBytes: 0,
    physicalInputBytes: 0,
    peakMemoryBytes: 0,
    spilledBytes: 0,
  }
}
