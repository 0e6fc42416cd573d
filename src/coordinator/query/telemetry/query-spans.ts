import type { QueryId } from '../../../shared/ids.ts'
import type { FrontEndTimes } from '../../../sql/front-end.ts'
import type { SpanRecord } from '../../../telemetry/span.ts'
import { entitySpanId, formatTraceparent, parseTraceparent } from '../../../telemetry/trace-context.ts'
import type { ConnectorCall } from '../statistics/connector-calls.ts'
import { connectorSpan, planningSpans } from './spans/planning-spans.ts'
import { executionSpans, writeSpans, querySpan, queuedSpans, requestSpan } from './spans/query-span.ts'
import { stageSpans } from './spans/stage-spans.ts'
import { spanOf, tracedQuery } from './spans/traced-query.ts'
import type { KnownQuery, QueryState } from '../stream/state.ts'

export interface QuerySpansOptions {
  /**
   * Also makes stand-ins for the spans of requests (the POST, and those that created tasks), as far as events know
   * them: for a coordinator that died before it had sent its own spans, and for readers of a trace that was not
   * sampled. So every span has its parent.
   */
  readonly withRequest?: boolean
  /** The number of polls that got no span of their own. */
  readonly pollsUnrecorded?: number
  /** Times and calls that only the query's process knows. */
  readonly times?: FrontEndTimes | undefined
  readonly calls?: readonly ConnectorCall[]
}

/** The end of a query whose appends the span maker has followed: it can make the spans now. */
export interface QueryEnded {
  readonly kind: 'queryEnded'
  readonly queryId: QueryId
  readonly options: QuerySpansOptions
}

/**
 * The trace of an ended query, from its events alone. Spans, ids and times are the same wherever they are made: in the
 * coordinator that saw the end, in its successor, or for `/v1/query/{id}/trace`.
 *
 * ```
 * POST /v1/statement                             spans/query-span.ts
 * └ query
 *   ├ queued
 *   ├ analyzer, planner                          spans/planning-spans.ts
 *   │ └ parse, analyze, render …, connector …
 *   └ execution
 *     ├ stage                                    spans/stage-spans.ts
 *     │ ├ remote-task ─ task-update              spans/task-spans.ts
 *     │ └ task
 *     │   ├ exchange                             spans/relay-spans.ts
 *     │   ├ batch                                spans/pipeline-spans.ts
 *     │   └ pipeline                             with its operators as events
 *     ├ publish                                  spans/relay-spans.ts
 *     └ commit
 * ```
 */
export function querySpans(query: KnownQuery, options: QuerySpansOptions = {}): readonly SpanRecord[] {
  const traced = tracedQuery(query)
  if (!traced) return []
  const { withRequest = false, calls = [] } = options
  const drafts = [
    ...(withRequest ? [requestSpan(traced)] : []),
    querySpan(traced, options.pollsUnrecorded),
    ...queuedSpans(traced),
    ...planningSpans(traced, options.times),
    ...executionSpans(traced),
    ...stageSpans(traced, withRequest),
    ...writeSpans(traced),
    ...calls.map((call, index) => connectorSpan(traced, call, index)),
  ]
  return drafts.map((draft) => spanOf(traced, draft))
}

/** The trace context for whatever a query causes: the query's own span. */
export function querySpanContext(query: QueryState): string | undefined {
  if (query.kind === 'NONE') return undefined
  const trace = parseTraceparent(query.created.traceparent)
  return trace && formatTraceparent({ ...trace, spanId: entitySpanId('query', query.queryId) })
}
