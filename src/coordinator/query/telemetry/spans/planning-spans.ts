import type { FrontEndTimes } from '../../../../sql/front-end.ts'
import { attributes as names } from '../../../../telemetry/attribute-names.ts'
import { entitySpanId } from '../../../../telemetry/trace-context.ts'
import type { ConnectorCall } from '../../statistics/connector-calls.ts'
import type { PlannedQuery } from '../../stream/state.ts'
import { failureAttributes, spanEnding } from './span-ending.ts'
import { tableNames, type SpanDraft, type TracedQuery } from './traced-query.ts'

/** A statement that needs no worker ends within milliseconds: its steps that were shorter than this get no span. */
const BRIEF_MS = 1

/**
 * The spans of the analyzer and the planner with their steps. If the statement failed before it was planned, only the
 * span of the analyzer.
 */
export function planningSpans(traced: TracedQuery, times: FrontEndTimes | undefined): readonly SpanDraft[] {
  const { planned, plannedAt } = traced.query
  if (planned && plannedAt) {
    const moments = momentsOf(traced, planned, plannedAt)
    return [
      analyzerSpan(traced, planned, moments),
      plannerSpan(traced, planned, moments),
      ...steps(traced, planned, moments, times),
    ]
  }
  return traced.failure ? [failedAnalyzer(traced)] : []
}

/** The span of a call to a catalog; only the process that made the call knows it. */
export function connectorSpan({ query }: TracedQuery, call: ConnectorCall, index: number): SpanDraft {
  const { operation, catalog, startMs, endMs } = call
  return {
    name: `connector ${operation}`,
    kind: 'CLIENT',
    spanId: entitySpanId('connector', `${query.queryId}.${index}`),
    parentSpanId: entitySpanId(query.planned && operation === 'splits' ? 'planner' : 'analyzer', query.queryId),
    startMs,
    endMs,
    attributes: { [names.catalog]: catalog },
    status: 'UNSET',
  }
}

type Planned = PlannedQuery['planned']

/** When the steps to the plan began and ended, in milliseconds since the epoch. */
interface Moments {
  readonly began: number
  readonly parsed: number
  readonly analyzed: number
  readonly planned: number
}

/** Counts back from the plan: the events have its time, and how long each step took. */
function momentsOf({ startMs }: TracedQuery, planned: Planned, plannedAt: string): Moments {
  const plannedMs = Date.parse(planned.executionStartedAt ?? plannedAt)
  const analyzed = Math.max(startMs, plannedMs - planned.planningNanos / 1e6)
  const parsed = Math.max(startMs, analyzed - planned.analysisNanos / 1e6)
  const began = Math.max(startMs, parsed - planned.parseNanos / 1e6)
  return { began, parsed, analyzed, planned: plannedMs }
}

function analyzerSpan({ query, spanId }: TracedQuery, planned: Planned, { began, analyzed }: Moments): SpanDraft {
  return {
    name: 'analyzer',
    kind: 'INTERNAL',
    spanId: entitySpanId('analyzer', query.queryId),
    parentSpanId: spanId,
    startMs: began,
    endMs: analyzed,
    attributes: {
      [names.tables]: tableNames(planned.tables),
    },
    status: 'UNSET',
  }
}

function plannerSpan({ query, spanId, startMs }: TracedQuery, planned: Planned, moments: Moments): SpanDraft {
  return {
    name: 'planner',
    kind: 'INTERNAL',
    spanId: entitySpanId('planner', query.queryId),
    parentSpanId: spanId,
    startMs: moments.analyzed,
    endMs: Math.max(startMs, moments.planned),
    attributes: { [names.planStages]: planned.stages.length },
    status: 'UNSET',
  }
}

function steps(
  traced: TracedQuery,
  planned: Planned,
  moments: Moments,
  times: FrontEndTimes | undefined,
): readonly SpanDraft[] {
  const { began, parsed, analyzed } = moments
  const all: Step[] = []
  if (planned.parseNanos > 0) {
    all.push({ name: 'parse', of: 'analyzer', startMs: began, endMs: parsed })
    if (times && times.resolveMs > 0)
      all.push({
        name: 'access-control',
        of: 'analyzer',
        startMs: parsed,
        endMs: Math.min(analyzed, parsed + times.resolveMs),
      })
    all.push({ name: 'analyze', of: 'analyzer', startMs: parsed, endMs: analyzed })
  }
  if (times && times.renderMs > 0) {
    const rendered = Math.min(moments.planned, analyzed + times.renderMs)
    all.push({ name: 'render', of: 'planner', startMs: analyzed, endMs: rendered })
    all.push({ name: 'fragment', of: 'planner', startMs: rendered, endMs: moments.planned })
  }
  const shown = traced.onCoordinator ? all.filter(({ startMs, endMs }) => endMs - startMs >= BRIEF_MS) : all
  return shown.map((step) => stepSpan(traced, step))
}

interface Step {
  readonly name: string
  readonly of: 'analyzer' | 'planner'
  readonly startMs: number
  readonly endMs: number
}

function stepSpan({ query }: TracedQuery, { name, of, startMs, endMs }: Step): SpanDraft {
  return {
    name,
    kind: 'INTERNAL',
    spanId: entitySpanId(name, query.queryId),
    parentSpanId: entitySpanId(of, query.queryId),
    startMs,
    endMs,
    status: 'UNSET',
  }
}

function failedAnalyzer({ query, spanId, startMs, endMs, failure }: TracedQuery): SpanDraft {
  return {
    name: 'analyzer',
    kind: 'INTERNAL',
    spanId: entitySpanId('analyzer', query.queryId),
    parentSpanId: spanId,
    startMs,
    endMs,
    attributes: failureAttributes(failure),
    ...spanEnding(failure, endMs, 'UNSET'),
  }
}
