import { attributes as names } from '../../../../telemetry/attribute-names.ts'
import type { AttributeValue, SpanEvent } from '../../../../telemetry/span.ts'
import { entitySpanId } from '../../../../telemetry/trace-context.ts'
import { targetText } from '../../stream/route-text.ts'
import { groupOfQuery, remoteOf, recordedTotals, type EndedQuery } from '../../stream/state.ts'
import { failureAttributes, MAX_TEXT, spanEnding } from './span-ending.ts'
import { tableNames, type SpanDraft, type TracedQuery } from './traced-query.ts'

/** A stand-in for the span of the POST, as far as events know it. */
export function requestSpan({ query, requestSpanId, startMs }: TracedQuery): SpanDraft {
  return {
    name: 'POST /v1/statement',
    kind: 'SERVER',
    spanId: requestSpanId,
    ...(query.created.parentSpanId === undefined ? {} : { parentSpanId: query.created.parentSpanId }),
    startMs,
    endMs: query.plannedAt ? Date.parse(query.plannedAt) : startMs,
    attributes: { [names.httpMethod]: 'POST', [names.httpRoute]: '/v1/statement', [names.rebuilt]: true },
    status: 'UNSET',
  }
}

/** @param pollsUnrecorded the number of polls that got no span of their own */
export function querySpan(traced: TracedQuery, pollsUnrecorded: number | undefined): SpanDraft {
  const { query, startMs, endMs, failure } = traced
  return {
    name: 'query',
    kind: 'INTERNAL',
    spanId: traced.spanId,
    parentSpanId: traced.requestSpanId,
    startMs,
    endMs,
    attributes: {
      ...queryAttributes(query),
      ...failureAttributes(failure),
      ...(pollsUnrecorded ? { [names.pollsUnrecorded]: pollsUnrecorded } : {}),
    },
    ...spanEnding(failure, endMs, 'OK', stateEvents(query, endMs)),
  }
}

/** The span of the wait for the query's resource group. */
export function queuedSpans({ query, spanId, endMs }: TracedQuery): readonly SpanDraft[] {
  const { queued, admitted } = query
  if (!queued) return []
  return [
    {
      name: 'queued',
      kind: 'INTERNAL',
      spanId: entitySpanId('queued', query.queryId),
      parentSpanId: spanId,
      startMs: Date.parse(queued.at),
      endMs: admitted ? Date.parse(admitted.at) : endMs,
      attributes: { [names.queuePosition]: queued.position, [names.queueReason]: queued.reason },
      status: 'UNSET',
    },
  ]
}

/**
 * The span from the plan to the last published page, or to the end of a write. The client's time to fetch is not in it.
 */
export function executionSpans({ query, spanId, executionSpanId, endMs }: TracedQuery): readonly SpanDraft[] {
  const { planned, plannedAt } = query
  if (!planned || !plannedAt) return []
  const startMs = Date.parse(planned.executionStartedAt ?? plannedAt)
  const endTimes = [...query.tasks.values()].flatMap(({ endedAt }) =>
    endedAt === undefined ? [] : [Date.parse(endedAt)],
  )
  if (query.committed) endTimes.push(Date.parse(query.committed.at))
  const done = query.kind === 'FINISHED' && endTimes.length > 0
  return [
    {
      name: 'execution',
      kind: 'INTERNAL',
      spanId: executionSpanId,
      parentSpanId: spanId,
      startMs,
      endMs: done ? Math.min(endMs, Math.max(startMs, ...endTimes)) : endMs,
      attributes: { [names.planStages]: planned.stages.length },
      status: 'UNSET',
    },
  ]
}

/** The span from a write's decision to its outcome. */
export function writeSpans({ query, executionSpanId }: TracedQuery): readonly SpanDraft[] {
  const { write, committed } = query
  if (!write || !committed) return []
  return [
    {
      name: 'commit',
      kind: 'INTERNAL',
      spanId: entitySpanId('commit', query.queryId),
      parentSpanId: executionSpanId,
      startMs: Date.parse(write.at),
      endMs: Date.parse(committed.at),
      attributes: { [names.dbOperation]: write.operation, [names.writeOutcome]: committed.outcome },
      status: 'UNSET',
    },
  ]
}

/** OpenTelemetry's conventions have no name for this system: it speaks Trino's protocol, but is not Trino. */
const DB_SYSTEM = 'quipu'

type Tables = NonNullable<EndedQuery['planned']>['tables']

/**
 * The table that the statement writes, or the only one that it reads: for several tables the conventions have no
 * attribute.
 */
function collectionOf(tables: Tables): string | undefined {
  const written = tables.filter(({ mode }) => mode === 'WRITE')
  const [only, ...others] = new Set(tableNames(written.length > 0 ? written : tables))
  return others.length === 0 ? only : undefined
}

function queryAttributes(query: EndedQuery): Record<string, AttributeValue> {
  const { session, sql } = query.created
  const totals = recordedTotals(query)
  const namespace = [session.catalog, session.schema].filter((one) => one !== undefined).join('|')
  const optional: Record<string, AttributeValue | undefined> = {
    [names.catalog]: session.catalog,
    [names.schema]: session.schema,
    [names.source]: session.source,
    [names.traceToken]: session.traceToken,
    [names.loggedInUser]: session.originalUser ?? session.user,
    [names.queryType]: query.planned?.queryType,
    [names.route]: query.planned?.route,
    ...routeAttributes(query),
    [names.dbNamespace]: namespace === '' ? undefined : namespace,
    [names.dbOperation]: query.planned?.queryType,
    [names.dbSummary]: query.planned
      ? [query.planned.queryType, ...query.planned.tables.map((table) => table.table)].join(' ')
      : undefined,
    [names.dbCollection]: query.planned && collectionOf(query.planned.tables),
    [names.tables]: query.planned && tableNames(query.planned.tables),
    [names.dbReturnedRows]: query.kind === 'FINISHED' ? query.finished.rows : undefined,
    [names.rows]: query.kind === 'FINISHED' ? query.finished.rows : undefined,
    [names.bytes]: query.kind === 'FINISHED' ? query.finished.bytes : undefined,
    [names.cpuNanos]: totals?.cpuNanos,
    [names.peakMemoryBytes]: totals?.peakMemoryBytes,
    [names.splits]: totals?.totalSplits,
    [names.tasks]: totals?.totalTasks,
    [names.retries]: [...query.tasks.values()].filter((task) => task.retryOf !== undefined).length,
  }
  return {
    [names.user]: session.user,
    [names.resourceGroup]: groupOfQuery(query),
    [names.clientTags]: session.clientTags,
    [names.dbSystem]: DB_SYSTEM,
    [names.dbText]: withoutLiterals(sql).slice(0, MAX_TEXT),
    ...Object.fromEntries(
      Object.entries(optional).filter((entry): entry is [string, AttributeValue] => entry[1] !== undefined),
    ),
  }
}

/** The decision about the route, and the cluster of the last attempt. */
function routeAttributes(query: EndedQuery): Record<string, AttributeValue | undefined> {
  const routed = query.planned?.routed
  if (!routed) return {}
  const remote = remoteOf(query)
  return {
    [names.routingTarget]: targetText(routed),
    [names.routingRule]: routed.rule,
    [names.routingFallback]: routed.fallback,
    [names.routingGrade]: 'grade' in routed ? routed.grade : undefined,
    [names.routingBytes]: routed.bytes,
    [names.routingSkipped]: routed.skipped.length > 0 ? routed.skipped.map(({ rule }) => rule) : undefined,
    [names.cluster]: remote?.cluster,
    [names.remoteQueryId]: remote?.queryId,
  }
}

/** Replaces literals with `?`: a trace store has more readers than the database. */
function withoutLiterals(sql: string): string {
  return sql.replaceAll(/'(?:[^']|'')*'/g, '?').replaceAll(/\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b/g, '?')
}

function stateEvents(query: EndedQuery, endMs: number): SpanEvent[] {
  const at = (name: string, time: string | undefined): SpanEvent[] =>
    time === undefined ? [] : [{ name: 'query_state', atMs: Date.parse(time), attributes: { [names.state]: name } }]
  return [
    ...at('QUEUED', query.createdAt),
    ...at('PLANNING', query.admitted?.at),
    ...at('STARTING', query.plannedAt),
    { name: 'query_state', atMs: endMs, attributes: { [names.state]: query.kind } },
  ]
}
