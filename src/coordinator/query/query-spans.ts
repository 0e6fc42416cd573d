import type { QueryId } from '../../shared/ids.ts'
import type { FrontEndTimes } from '../../sql/front-end.ts'
import type { SpanRecord } from '../../telemetry/span.ts'
import { entitySpanId, formatTraceparent, parseTraceparent } from '../../telemetry/trace-context.ts'
import type { ConnectorCall } from './connector-calls.ts'
import { connectorSpan, planningSpans } from './spans/planning-spans.ts'
import { executionSpans, writeSpans, querySpan, queuedSpans, requestSpan } from './spans/query-span.ts'
import { stageSpans } from './spans/stage-spans.ts'
import { spanOf, tracedQuery } from './spans/traced-query.ts'
import type { KnownQuery, QueryState } from './state.ts'

export interface QuerySpansOptions {
  /**
   * Also stand-ins for the spans of requests, POST's and those that made tasks, as far as events know them: for a
   * coordinator that died before its own left, and for whoever looks at a trace that was not taken. No span is without
   * its parent.
   */
  readonly withRequest?: boolean
  /** Polls that got no span of their own. */
  readonly pollsUnrecorded?: number
  /** Calls that only their process knows of. */
  readonly times?: FrontEndTimes | undefined
  readonly calls?: readonly ConnectorCall[]
}

/** A query whose events were told of has ended: its spans can be made. */
export interface QueryEnded {
  readonly kind: 'queryEnded'
  readonly queryId: QueryId
  readonly options: QuerySpansOptions
}

/**
 * The trace of an ended query, from its events alone. The same spans, ids and times whoever makes them: the coordinator
 * that saw the end, its successor, or `/v1/query/{id}/trace`.
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

/** Context of what a query causes: its own span. */
export function querySpanContext(query: QueryState): string | undefined {
  if (query.kind === 'NONE') return undefined
  const trace = parseTraceparent(query.created.traceparent)
  return trace && formatTraceparent({ ...trace, spanId: entitySpanId('query', query.queryId) })
}
