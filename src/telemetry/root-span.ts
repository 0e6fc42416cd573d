import type { SpanRecord } from './span.ts'
import { newSpanId, newTraceId, parseTraceparent } from './trace-context.ts'

/** The maximum number of links of one span. */
export const MOST_LINKS = 128

/** A span that begins a trace of its own. */
export function rootSpan(
  name: string,
  kind: SpanRecord['kind'],
  startMs: number,
  endMs: number,
): Omit<SpanRecord, 'attributes' | 'links'> {
  return { name, kind, traceId: newTraceId(), spanId: newSpanId(), startMs, endMs, status: 'UNSET', events: [] }
}

/** Links to the sampled traces, each once. */
export function linksTo(traceparents: readonly (string | undefined)[]): SpanRecord['links'] {
  return [...new Set(traceparents)]
    .map(parseTraceparent)
    .filter((context) => context?.sampled === true)
    .slice(0, MOST_LINKS)
    .map((context) => ({ traceId: context!.traceId, spanId: context!.spanId }))
}
