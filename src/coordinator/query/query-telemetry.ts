import type { Logger } from '../../telemetry/logger.ts'
import type { Meters, TraceRef } from '../../telemetry/meters.ts'
import type { SpanSink } from '../../telemetry/span.ts'
import { parseTraceparent } from '../../telemetry/trace-context.ts'
import type { QueryExecution } from './query-execution.ts'
import { querySpans } from './query-spans.ts'
import { resultSize, type KnownQuery } from './state.ts'

export interface QueryTelemetry {
  /** From its submission on: counted, timed, logged and traced at its end. */
  follow(execution: QueryExecution): void
  /** The first rows left. */
  firstRows(query: KnownQuery): void
  /** A query that ended without an execution here: its coordinator died. */
  ended(query: KnownQuery): void
}

export interface QueryTelemetryParts {
  readonly meters: () => Meters
  readonly spans: () => SpanSink
  readonly logger: Logger
  readonly now: () => number
}

/** What is said of a query at its end, in metrics, in one log line, and as a trace. */
export function createQueryTelemetry(parts: QueryTelemetryParts): QueryTelemetry {
  const firstSeen = new WeakSet<object>()

  function ended(query: KnownQuery): void {
    if (query.kind !== 'FINISHED' && query.kind !== 'FAILED') return
    const meters = parts.meters()
    const { session } = query.created
    const totals = query.kind === 'FINISHED' ? query.finished.totals : query.failed.totals
    const failure = query.kind === 'FAILED' ? query.failure : undefined
    const route = query.planned?.route ?? 'none'
    const trace = traceOf(query)
    const { rows, bytes } = resultSize(query.pages)
    const elapsedMs = Date.parse(query.endedAt) - Date.parse(query.createdAt)
    meters.count(
      'queries',
      {
        state: query.kind,
        error_type: failure?.errorType ?? 'none',
        query_type: query.planned?.queryType ?? 'none',
        route,
      },
      1,
      trace,
    )
    if (failure) meters.count('queryErrors', { error_type: failure.errorType, error_name: failure.errorName })
    meters.observe('queryDuration', { state: query.kind, route }, elapsedMs / 1000, trace)
    meters.count('queryCpuSeconds', { group: query.created.resourceGroup }, totals.cpuNanos / 1e9)
    meters.count('queryRows', { direction: 'input' }, totals.processedInputPositions)
    meters.count('queryRows', { direction: 'output' }, rows)
    meters.count('queryBytes', { direction: 'input' }, totals.rawInputBytes)
    meters.count('queryBytes', { direction: 'output' }, bytes)
    meters.count('userQueries', { user: session.user })
    meters.count('sourceQueries', { source: session.source ?? 'none' })
    phase(meters, 'queued', totals.queuedNanos, trace)
    phase(meters, 'analyze', totals.analysisNanos, trace)
    phase(meters, 'plan', totals.planningNanos, trace)
    for (const task of query.tasks.values()) meters.count('tasks', { state: closedTaskState(task.state) })
    for (const task of query.tasks.values())
      if (task.retryReason !== undefined) meters.count('taskRetries', { reason: task.retryReason })
    parts.logger.info(
      'query.completed',
      {
        queryId: query.queryId,
        user: session.user,
        source: session.source,
        resourceGroup: query.created.resourceGroup,
        queryType: query.planned?.queryType,
        route,
        state: query.kind,
        errorName: failure?.errorName,
        errorType: failure?.errorType,
        elapsedMillis: elapsedMs,
        queuedTimeMillis: Math.round(totals.queuedNanos / 1e6),
        planningTimeMillis: Math.round((totals.analysisNanos + totals.planningNanos) / 1e6),
        cpuTimeMillis: Math.round(totals.cpuNanos / 1e6),
        peakMemoryBytes: totals.peakMemoryBytes,
        outputRows: rows,
        outputBytes: bytes,
        tasks: totals.totalTasks,
        retries: [...query.tasks.values()].filter((task) => task.retryOf !== undefined).length,
        traceId: trace?.traceId,
        spanId: trace?.spanId,
      },
      failure ? `Query failed: ${failure.errorName}` : 'Query finished',
    )
    if (query.created.sampled && parts.spans().enabled) parts.spans().emit(querySpans(query))
  }

  return {
    follow(execution) {
      let done = false
      execution.aggregate.onValid(() => {
        const { state } = execution.aggregate
        if (done || state.kind === 'NONE') return
        if (state.kind !== 'FINISHED' && state.kind !== 'FAILED') return
        done = true
        // After the answer: the client does not wait for what is said about it.
        setImmediate(ended, state)
      })
    },
    firstRows(query) {
      // One aggregate has one `created`: the first answer of the query counts.
      if (firstSeen.has(query.created)) return
      firstSeen.add(query.created)
      const seconds = (parts.now() - Date.parse(query.createdAt)) / 1000
      parts
        .meters()
        .observe(
          'queryFirstPageDuration',
          { route: query.planned?.route ?? 'none' },
          Math.max(0, seconds),
          traceOf(query),
        )
    },
    ended,
  }
}

function phase(meters: Meters, name: string, nanos: number, trace: TraceRef | undefined): void {
  if (nanos > 0) meters.observe('queryPhaseDuration', { phase: name }, nanos / 1e9, trace)
}

function closedTaskState(state: string): string {
  return state === 'FINISHED' || state === 'CANCELED' || state === 'ABORTED' ? state : 'FAILED'
}

/** A trace that nobody takes gets no exemplar, but its id is in the log. */
function traceOf(query: KnownQuery): TraceRef | undefined {
  if (!query.created.sampled) return undefined
  const context = parseTraceparent(query.created.traceparent)
  return context && { traceId: context.traceId, spanId: context.spanId }
}
