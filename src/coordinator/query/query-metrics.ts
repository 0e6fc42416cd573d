import type { Meters, TraceRef } from '../../telemetry/meters.ts'
import { parseTraceparent } from '../../telemetry/trace-context.ts'
import { resultSize, type KnownQuery, type TaskRecord } from './state.ts'

type EndedQuery = Extract<KnownQuery, { kind: 'FINISHED' | 'FAILED' }>

/** Everything that is counted of a query once it has ended, from its events alone. */
export function countQuery(query: EndedQuery, meters: Meters, connectorOf: (catalog: string) => string): void {
  const { session } = query.created
  const totals = query.kind === 'FINISHED' ? query.finished.totals : query.failed.totals
  const failure = query.kind === 'FAILED' ? query.failure : undefined
  const route = query.planned?.route ?? 'none'
  const trace = traceOf(query)
  const { rows, bytes } = resultSize(query.pages)
  const labels = {
    state: query.kind,
    error_type: failure?.errorType ?? 'none',
    query_type: query.planned?.queryType ?? 'none',
    route,
  }
  meters.count('queries', labels, 1, trace)
  if (failure?.errorName === 'QUERY_QUEUE_FULL')
    meters.count('groupRejections', { group: query.created.resourceGroup, reason: 'queue_full' })
  if (failure) meters.count('queryErrors', { error_type: failure.errorType, error_name: failure.errorName })
  meters.observe('queryDuration', { state: query.kind, route }, secondsBetween(query.createdAt, query.endedAt), trace)
  meters.count('queryCpuSeconds', { group: query.created.resourceGroup }, totals.cpuNanos / 1e9)
  meters.count('queryRows', { direction: 'input' }, totals.processedInputPositions)
  meters.count('queryRows', { direction: 'output' }, rows)
  meters.count('queryBytes', { direction: 'input' }, totals.rawInputBytes)
  meters.count('queryBytes', { direction: 'output' }, bytes)
  meters.count('userQueries', { user: session.user })
  meters.count('sourceQueries', { source: session.source ?? 'none' })
  countPhases(query, meters, trace)
  countPlan(query, meters, connectorOf)
  for (const task of query.tasks.values()) countTask(task, meters)
  for (const ratio of stageSkews(query)) meters.observe('stageSkewRatio', {}, ratio)
}

/** A trace that nobody takes gets no exemplar, but its id is in the log. */
export function traceOf(query: KnownQuery): TraceRef | undefined {
  if (!query.created.sampled) return undefined
  const context = parseTraceparent(query.created.traceparent)
  return context && { traceId: context.traceId, spanId: context.spanId }
}

function countPhases(query: EndedQuery, meters: Meters, trace: TraceRef | undefined): void {
  const totals = query.kind === 'FINISHED' ? query.finished.totals : query.failed.totals
  const phase = (name: string, seconds: number): void => {
    if (seconds > 0) meters.observe('queryPhaseDuration', { phase: name }, seconds, trace)
  }
  phase('queued', totals.queuedNanos / 1e9)
  phase('analyze', totals.analysisNanos / 1e9)
  phase('plan', totals.planningNanos / 1e9)
  const stats = [...query.tasks.values()].map((task) => task.stats).filter((one) => one !== undefined)
  const starts = stats.map((one) => one.startTime).filter((one) => one !== undefined)
  const ends = stats.map((one) => one.endTime).filter((one) => one !== undefined)
  const began = starts.toSorted()[0]
  const done = ends.toSorted().at(-1)
  if (query.planned?.executionStartedAt && began)
    phase('start', secondsBetween(query.planned.executionStartedAt, began))
  if (began && done) phase('execute', secondsBetween(began, done))
  // What is left once the work is done is the client's time.
  if (done) phase('deliver', secondsBetween(done, query.endedAt))
}

function countPlan(query: EndedQuery, meters: Meters, connectorOf: (catalog: string) => string): void {
  const { planned } = query
  if (!planned) return
  const distribution = { coordinator: 'coordinator', local: 'single', delegated: 'delegated' }[planned.route]
  meters.count('plans', { distribution })
  for (const stage of planned.stages)
    for (const split of stage.splits) meters.count('splits', { connector: connectorOf(split.catalog) })
}

function countTask(task: TaskRecord, meters: Meters): void {
  const { state, stats } = task
  meters.count('tasks', {
    state: state === 'FINISHED' || state === 'CANCELED' || state === 'ABORTED' ? state : 'FAILED',
  })
  if (task.retryReason !== undefined) meters.count('taskRetries', { reason: task.retryReason })
  if (!stats) return
  if (task.stage !== 0 && stats.startTime)
    meters.observe('taskStartDelay', {}, secondsBetween(task.createdAt, stats.startTime))
  if (!stats.profiled) return
  for (const { operators } of stats.pipelines)
    for (const { engineOperator, outputPositions, estimatedPositions } of operators)
      if (estimatedPositions)
        meters.observe('planEstimateRatio', { operator: engineOperator }, outputPositions / estimatedPositions)
}

/** Of each stage that ran on workers: its slowest task over the median one. */
function stageSkews(query: KnownQuery): readonly number[] {
  const byStage = new Map<number, number[]>()
  for (const { stage, stats } of query.tasks.values())
    if (stage !== 0 && stats && stats.elapsedNanos > 0)
      byStage.set(stage, [...(byStage.get(stage) ?? []), stats.elapsedNanos])
  return [...byStage.values()].map((times) => {
    const sorted = times.toSorted((a, b) => a - b)
    return sorted.at(-1)! / sorted[Math.floor((sorted.length - 1) / 2)]!
  })
}

function secondsBetween(from: string, to: string): number {
  return Math.max(0, Date.parse(to) - Date.parse(from)) / 1000
}
