import { ROOT_STAGE } from '../../../shared/ids.ts'
import type { Logger } from '../../../telemetry/logger.ts'
import type { Meters } from '../../../telemetry/meters.ts'
import type { SpanSink } from '../../../telemetry/span.ts'
import { parseTraceparent } from '../../../telemetry/trace-context.ts'
import type { FrontEndTimes } from '../../../sql/front-end.ts'
import type { ConnectorCall } from '../statistics/connector-calls.ts'
import type { QueryExecution } from '../registry/query-handle.ts'
import type { PlanOutline } from '../stream/events.ts'
import { countQuery, traceOf, type FigureNames } from './query-metrics.ts'
import { querySpans, type QueryEnded } from './query-spans.ts'
import { targetText } from '../stream/route-text.ts'
import {
  groupOfQuery,
  remoteOf,
  resultSize,
  recordedTotals,
  type EndedQuery,
  type KnownQuery,
} from '../stream/state.ts'

export interface QueryTelemetry {
  /** Follows a query from its submission on: at its end it is counted, timed, logged and traced. */
  follow(execution: QueryExecution): void
  /** Follows a query that another coordinator began. */
  resumed(execution: QueryExecution): void
  /** Reports a query that recovery ended without an execution. */
  recovered(query: KnownQuery): void
  /** Reports that the first rows were sent to the client. */
  firstRows(query: KnownQuery): void
}

export interface QueryTelemetryDeps {
  readonly meters: () => Meters
  readonly spans: () => SpanSink
  readonly logger: Logger
  readonly now: () => number
  /** Bounded names for labels, such as the connector behind a catalog. */
  readonly names: FigureNames
  /** How often the query's client has polled. */
  readonly polls: (query: KnownQuery) => number
  /** The number of polls of a query that got no span of their own. */
  readonly pollsUnrecorded: (query: KnownQuery) => number
  /** Queries that take at least this long get a log line with their plan and operators, milliseconds. */
  readonly slowMs: number
}

/** Reports each query at its end: in metrics, in one log line, and as a trace. */
export function createQueryTelemetry(deps: QueryTelemetryDeps): QueryTelemetry {
  const firstSeen = new WeakSet<object>()

  function ended(
    query: KnownQuery,
    recovered: boolean,
    times?: FrontEndTimes,
    calls: readonly ConnectorCall[] = [],
  ): void {
    if (query.kind !== 'FINISHED' && query.kind !== 'FAILED') return
    countQuery(query, times, deps.meters(), deps.names)
    logEnd(query, recovered)
    if (!query.created.sampled || !deps.spans().enabled) return
    const options = { withRequest: recovered, pollsUnrecorded: deps.pollsUnrecorded(query), times, calls }
    // The span of the POST may be lost with the coordinator that answered it; if it is not, the ids are the same. The
    // span maker follows this process's appends: it has all events of the process's own queries, but lacks the first
    // events of a recovered query, so that the spans of such a query are made here.
    if (recovered) return deps.spans().emit(querySpans(query, options))
    const end: QueryEnded = { kind: 'queryEnded', queryId: query.queryId, options }
    deps.spans().later(end)
  }

  function logEnd(query: EndedQuery, recovered: boolean): void {
    const { session } = query.created
    const totals = recordedTotals(query)
    const failure = query.kind === 'FAILED' ? query.failure : undefined
    const { rows, bytes } = resultSize(query.pages)
    const context = parseTraceparent(query.created.traceparent)
    const elapsedMillis = Date.parse(query.endedAt) - Date.parse(query.createdAt)
    const about = {
      queryId: query.queryId,
      user: session.user,
      source: session.source,
      clientAddress: session.remoteUserAddress,
      resourceGroup: groupOfQuery(query),
      ...touchedTables(query.planned?.tables ?? []),
      queryType: query.planned?.queryType,
      route: query.planned?.route,
      ...routeFields(query),
      state: query.kind,
      errorName: failure?.errorName,
      errorType: failure?.errorType,
      elapsedMillis,
      queuedTimeMillis: Math.round(totals.queuedNanos / 1e6),
      planningTimeMillis: Math.round((totals.analysisNanos + totals.planningNanos) / 1e6),
      cpuTimeMillis: Math.round(totals.cpuNanos / 1e6),
      peakMemoryBytes: totals.peakMemoryBytes,
      outputRows: rows,
      outputBytes: bytes,
      tasks: totals.totalTasks,
      retries: [...query.tasks.values()].filter((task) => task.retryOf !== undefined).length,
      polls: deps.polls(query),
      ...(recovered ? { recovered } : {}),
      traceId: context?.traceId,
      spanId: context?.spanId,
    }
    deps.logger.info('query.completed', about, failure ? `Query failed: ${failure.errorName}` : 'Query finished')
    if (elapsedMillis >= deps.slowMs) logSlow(query, elapsedMillis, context?.traceId)
  }

  function logSlow(query: EndedQuery, elapsedMillis: number, traceId: string | undefined): void {
    const operators = slowestOperators(query)
    const phases = phasesOf(query)
    const [slowest] = operators
    const [phase] = Object.entries(phases).toSorted(([, a], [, b]) => b - a)
    const where = slowest ? `; ${slowest.operator} worked ${slowest.timeMillis} ms` : ''
    deps.logger.warn(
      'query.slow',
      {
        queryId: query.queryId,
        user: query.created.session.user,
        elapsedMillis,
        phases,
        ...(slowest && { slowest: `${slowest.operator} (${slowest.engineOperator})` }),
        // Names alone: the compared values stay in the event log.
        plan: query.planned?.outline && planNames(query.planned.outline),
        operators,
        traceId,
      },
      `Query took ${elapsedMillis} ms, most of it ${phase![0]}${where}`,
    )
  }

  function watch(execution: QueryExecution, recovered: boolean): void {
    let done = false
    execution.aggregate.onValid(() => {
      const { state } = execution.aggregate
      if (done || state.kind === 'NONE') return
      if (state.kind !== 'FINISHED' && state.kind !== 'FAILED') return
      done = true
      // After the answer: the client does not wait for telemetry.
      setImmediate(ended, state, recovered, execution.times, execution.calls)
    })
  }

  return {
    follow: (execution) => watch(execution, false),
    resumed: (execution) => watch(execution, true),
    recovered: (query) => ended(query, true),
    firstRows(query) {
      // An aggregate has one `created` object: only the first answer of the query counts.
      if (firstSeen.has(query.created)) return
      firstSeen.add(query.created)
      const seconds = (deps.now() - Date.parse(query.createdAt)) / 1000
      const labels = { route: query.planned?.route ?? 'none' }
      deps.meters().observe('queryFirstPageDuration', labels, Math.max(0, seconds), traceOf(query))
    },
  }
}

interface PlanNames {
  readonly name: string
  readonly children?: readonly PlanNames[]
}

function planNames({ name, children }: PlanOutline): PlanNames {
  return children.length === 0 ? { name } : { name, children: children.map(planNames) }
}

/** The decision about the route, and the cluster of the last attempt; nothing where no clusters are configured. */
function routeFields(query: EndedQuery) {
  const routed = query.planned?.routed
  const remote = remoteOf(query)
  return {
    ...(routed && { routedTo: targetText(routed) }),
    ...(routed?.rule !== undefined && { routingRule: routed.rule }),
    ...(routed?.fallback && { routingFallback: true }),
    ...(remote && { cluster: remote.cluster, remoteQueryId: remote.queryId, attempts: remote.attempts }),
  }
}

/** The most names of tables in a log line. */
const MOST_TABLES = 50

/** The catalogs and tables that the query read and wrote; tables as `catalog.schema.table`. */
function touchedTables(tables: NonNullable<EndedQuery['planned']>['tables']) {
  const namesOf = (of: 'READ' | 'WRITE'): readonly string[] => {
    const names = tables.filter(({ mode }) => mode === of).map((one) => `${one.catalog}.${one.schema}.${one.table}`)
    return [...new Set(names)].slice(0, MOST_TABLES)
  }
  const [reads, writes] = [namesOf('READ'), namesOf('WRITE')]
  return {
    catalogs: [...new Set(tables.map(({ catalog }) => catalog))],
    tables: reads,
    ...(writes.length > 0 && { writes }),
  }
}

/**
 * How long each phase of the query took, milliseconds. `fetching` is the client's time after the last page was ready.
 */
function phasesOf(query: EndedQuery) {
  const [begun, ended] = [Date.parse(query.createdAt), Date.parse(query.endedAt)]
  const queued = Math.round(recordedTotals(query).queuedNanos / 1e6)
  const planned = query.plannedAt === undefined ? ended : Date.parse(query.plannedAt)
  const taskEndMs = [...query.tasks.values()].map(({ endedAt }) => Date.parse(endedAt ?? query.endedAt))
  const executed = query.kind === 'FINISHED' ? Math.min(ended, Math.max(planned, ...taskEndMs)) : ended
  return {
    queued,
    planning: Math.max(0, planned - begun - queued),
    executing: Math.max(0, executed - planned),
    fetching: Math.max(0, ended - executed),
  }
}

const MOST_OPERATORS = 20

/** The slowest operators of profiled tasks. Leaves out the coordinator's relay when workers took part. */
function slowestOperators(query: KnownQuery) {
  const tasks = [...query.tasks.values()]
  const onWorkers = tasks.filter(({ stage }) => stage !== ROOT_STAGE)
  return (onWorkers.length > 0 ? onWorkers : tasks)
    .flatMap((task) =>
      (task.stats?.pipelines ?? []).flatMap((pipeline) =>
        pipeline.operators.map((operator) => ({
          taskId: task.taskId,
          operator: operator.operatorType,
          engineOperator: operator.engineOperator,
          timeMillis: Math.round(operator.timeNanos / 1e6),
          rowsIn: operator.inputPositions,
          rowsOut: operator.outputPositions,
          rowsEstimated: operator.estimatedPositions,
        })),
      ),
    )
    .toSorted((a, b) => b.timeMillis - a.timeMillis)
    .slice(0, MOST_OPERATORS)
}
