import { ROOT_STAGE } from '../../../shared/ids.ts'
import type { Meters } from '../../../telemetry/meters.ts'
import type { TraceRef } from '../../../telemetry/instruments.ts'
import { parseTraceparent } from '../../../telemetry/trace-context.ts'
import type { FrontEndTimes } from '../../../sql/front-end.ts'
import { groupOfQuery, recordedTotals, type EndedQuery, type KnownQuery, type TaskRecord } from '../stream/state.ts'

/** Names for labels of metrics, of which there are boundedly many. */
export interface FigureNames {
  /** The connector behind a catalog. */
  readonly connectorOf: (catalog: string) => string
  /** The label of a resource group. */
  readonly groupLabel: (group: string) => string
}

/** Counts an ended query in the metrics, from its events and from what its process measured. */
export function countQuery(
  query: EndedQuery,
  times: FrontEndTimes | undefined,
  meters: Meters,
  { connectorOf, groupLabel }: FigureNames,
): void {
  const { session } = query.created
  const totals = recordedTotals(query)
  const failure = query.kind === 'FAILED' ? query.failure : undefined
  const route = query.planned?.route ?? 'none'
  const trace = traceOf(query)
  const group = groupLabel(groupOfQuery(query))
  const { rows, bytes } =
    query.kind === 'FINISHED' ? query.finished : { rows: totals.outputPositions, bytes: totals.outputBytes }
  const labels = {
    state: query.kind,
    error_type: failure?.errorType ?? 'none',
    query_type: query.planned?.queryType ?? 'none',
    route,
  }
  meters.count('queries', labels, 1, trace)
  if (failure?.errorName === 'QUERY_QUEUE_FULL') meters.count('groupRejections', { group, reason: 'queue_full' })
  if (failure) meters.count('queryErrors', { error_type: failure.errorType, error_name: failure.errorName })
  meters.observe('queryDuration', { state: query.kind, route }, secondsBetween(query.createdAt, query.endedAt), trace)
  meters.count('queryCpuSeconds', { group }, totals.cpuNanos / 1e9)
  meters.count('queryRows', { direction: 'input' }, totals.processedInputPositions)
  meters.count('queryRows', { direction: 'output' }, rows)
  meters.count('queryBytes', { direction: 'input' }, totals.rawInputBytes)
  meters.count('queryBytes', { direction: 'output' }, bytes)
  meters.count('userQueries', { user: session.user })
  meters.count('sourceQueries', { source: session.source ?? 'none' })
  if (failure && query.planned?.tables.some(({ mode }) => mode === 'WRITE'))
    meters.count('writes', { outcome: 'refused' })
  countPhases(query, times, meters, trace)
  countPlan(query, meters, connectorOf)
  for (const task of query.tasks.values()) countTask(task, meters)
  for (const ratio of stageSkews(query)) meters.observe('stageSkewRatio', {}, ratio)
}

/** The exemplar of a query. An unsampled query has a trace id in the log, but gets no exemplar. */
export function traceOf(query: KnownQuery): TraceRef | undefined {
  if (!query.created.sampled) return undefined
  const context = parseTraceparent(query.created.traceparent)
  return context && { traceId: context.traceId, spanId: context.spanId }
}

function countPhases(
  query: EndedQuery,
  times: FrontEndTimes | undefined,
  meters: Meters,
  trace: TraceRef | undefined,
): void {
  const totals = recordedTotals(query)
  const phase = (name: string, seconds: number): void => {
    if (seconds > 0) meters.observe('queryPhaseDuration', { phase: name }, seconds, trace)
  }
  phase('queued', totals.queuedNanos / 1e9)
  phase('parse', (times?.parseMs ?? 0) / 1000)
  phase('render', (times?.renderMs ?? 0) / 1000)
  phase('access_control', (times?.resolveMs ?? 0) / 1000)
  phase('analyze', (query.planned?.analysisNanos ?? 0) / 1e9)
  phase('plan', totals.planningNanos / 1e9)
  const stats = [...query.tasks.values()].map((task) => task.stats).filter((one) => one !== undefined)
  const starts = stats.map((one) => one.startTime).filter((one) => one !== undefined)
  const endTimes = stats.map((one) => one.endTime).filter((one) => one !== undefined)
  const began = starts.toSorted()[0]
  const done = endTimes.toSorted().at(-1)
  if (query.planned?.executionStartedAt && began)
    phase('start', secondsBetween(query.planned.executionStartedAt, began))
  if (began && done) phase('execute', secondsBetween(began, done))
  const relay = [...query.tasks.values()].find(({ stage, stats: of }) => stage === ROOT_STAGE && of?.startTime)?.stats
  if (relay && relay.blockedNanos > 0)
    meters.count('exchangeBlockedSeconds', { side: 'consumer' }, relay.blockedNanos / 1e9)
  if (relay?.startTime && relay.endTime) phase('publish', secondsBetween(relay.startTime, relay.endTime))
  // The time after the work is done is the client's.
  if (done) phase('deliver', secondsBetween(done, query.endedAt))
}

function countPlan(query: EndedQuery, meters: Meters, connectorOf: (catalog: string) => string): void {
  const { planned } = query
  if (!planned) return
  meters.count('plans', { distribution: distributionOfRoute(planned.route) })
  for (const stage of planned.stages)
    for (const split of stage.splits) meters.count('splits', { connector: connectorOf(split.catalog) })
}

export function distributionOfRoute(route: 'coordinator' | 'local' | 'delegated'): string {
  return { coordinator: 'coordinator', local: 'single', delegated: 'delegated' }[route]
}

/** The end state of a task of an ended query: a task that sent no end counts as failed. */
export function endStateOf(state: string): string {
  return state === 'FINISHED' || state === 'CANCELED' || state === 'ABORTED' ? state : 'FAILED'
}

function countTask(task: TaskRecord, meters: Meters): void {
  const { state, stats } = task
  meters.count('tasks', { state: endStateOf(state) })
  if (task.retryReason !== undefined) meters.count('taskRetries', { reason: task.retryReason })
  if (!stats) return
  if (task.stage !== ROOT_STAGE && stats.startTime)
    meters.observe('taskStartDelay', {}, secondsBetween(task.createdAt, stats.startTime))
  if (!stats.profiled) return
  for (const { operators } of stats.pipelines)
    for (const { engineOperator, outputPositions, estimatedPositions } of operators)
      if (estimatedPositions)
        meters.observe('planEstimateRatio', { operator: engineOperator }, outputPositions / estimatedPositions)
}

/** For each stage that ran on workers: the time of its slowest task divided by the median. */
function stageSkews(query: KnownQuery): readonly number[] {
  const byStage = new Map<number, number[]>()
  for (const { stage, stats } of query.tasks.values())
    if (stage !== ROOT_STAGE && stats && stats.elapsedNanos > 0)
      byStage.set(stage, [...(byStage.get(stage) ?? []), stats.elapsedNanos])
  return [...byStage.values()].map((times) => {
    const sorted = times.toSorted((a, b) => a - b)
    return sorted.at(-1)! / sorted[Math.floor((sorted.length - 1) / 2)]!
  })
}

function secondsBetween(from: string, to: string): number {
  return Math.max(0, Date.parse(to) - Date.parse(from)) / 1000
}
