import type { Failure } from '../../../../shared/engine-error.ts'
import { attributes as names } from '../../../../telemetry/attribute-names.ts'
import type { SpanRecord } from '../../../../telemetry/span.ts'
import { entitySpanId, parseTraceparent } from '../../../../telemetry/trace-context.ts'
import { isEnded, type EndedQuery, type KnownQuery, type PlannedQuery } from '../../stream/state.ts'

/** An ended query with the data that all of its spans need. Times are milliseconds since the epoch. */
export interface TracedQuery {
  readonly query: EndedQuery
  readonly traceId: string
  /** The span of the request that posted the statement. */
  readonly requestSpanId: string
  readonly spanId: string
  /** The parent of its stages: the span `execution`, or `query` of a query that was not planned. */
  readonly executionSpanId: string
  readonly startMs: number
  readonly endMs: number
  readonly failure: Failure | undefined
  /** True when no worker took part. */
  readonly onCoordinator: boolean
}

/** A span of a query, before the query's ids are added. */
export type SpanDraft = Omit<SpanRecord, 'traceId' | 'events' | 'links' | 'attributes'> &
  Partial<Pick<SpanRecord, 'events' | 'links' | 'attributes'>>

/** @returns undefined for a query that has not ended, or was not traced */
export function tracedQuery(query: KnownQuery): TracedQuery | undefined {
  const parent = parseTraceparent(query.created.traceparent)
  if (!parent || !isEnded(query)) return undefined
  const spanId = entitySpanId('query', query.queryId)
  return {
    query,
    traceId: parent.traceId,
    requestSpanId: parent.spanId,
    spanId,
    executionSpanId: query.planned ? entitySpanId('execution', query.queryId) : spanId,
    startMs: Date.parse(query.createdAt),
    endMs: Date.parse(query.endedAt),
    failure: query.kind === 'FAILED' ? query.failure : undefined,
    onCoordinator: query.planned?.route === 'coordinator',
  }
}

/** Completes a draft to a span in this query's trace. */
export function spanOf({ traceId, query }: TracedQuery, draft: SpanDraft): SpanRecord {
  return {
    events: [],
    links: [],
    ...draft,
    traceId,
    // A worker's clock may differ: no span ends before it starts.
    endMs: Math.max(draft.startMs, draft.endMs),
    attributes: { [names.queryId]: query.queryId, ...draft.attributes },
  }
}

/** Tables of a plan as `catalog.schema.table`. */
export function tableNames(tables: PlannedQuery['planned']['tables']): readonly string[] {
  return tables.map(({ catalog, schema, table }) => `${catalog}.${schema}.${table}`)
}
