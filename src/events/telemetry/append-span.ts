import type { AppendReport } from '../event-log.ts'
import { attributes as names } from '../../telemetry/attribute-names.ts'
import type { SpanRecord } from '../../telemetry/span.ts'

/** An append of a traced query: the data for its span, and for the query's other spans. */
export interface TracedAppend {
  readonly kind: 'append'
  readonly stream: string
  readonly sequence: number
  readonly epoch: number
  readonly queueMs: number
  readonly sendMs: number
  readonly readBackMs: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  /** Wall clock, milliseconds. */
  readonly endMs: number
  readonly events: readonly StoredEvent[]
}

interface StoredEvent {
  readonly type: string
  readonly time: string
  readonly enc: 'none' | 'gzip'
  readonly stored: string
}

export function tracedAppend(
  report: AppendReport,
  trace: { readonly traceId: string; readonly spanId: string; readonly parentSpanId: string },
): TracedAppend {
  return {
    kind: 'append',
    stream: report.stream,
    sequence: report.sequence,
    epoch: report.epoch,
    queueMs: report.queueMs,
    sendMs: report.sendMs,
    readBackMs: report.readBackMs,
    ...trace,
    endMs: Date.now(),
    events: report.events.map(({ type, time, enc, stored }) => ({ type, time, enc, stored })),
  }
}

export function appendSpan(append: TracedAppend): SpanRecord {
  const { traceId, spanId, parentSpanId, endMs, queueMs, sendMs, readBackMs } = append
  return {
    name: 'append',
    kind: 'INTERNAL',
    traceId,
    spanId,
    parentSpanId,
    startMs: endMs - queueMs - sendMs - readBackMs,
    endMs,
    attributes: {
      [names.queryId]: append.stream,
      [names.stream]: append.stream,
      [names.sequence]: append.sequence,
      [names.epoch]: append.epoch,
      [names.appendQueueNanos]: nanos(queueMs),
      [names.appendSendNanos]: nanos(sendMs),
      [names.appendReadBackNanos]: nanos(readBackMs),
    },
    status: 'UNSET',
    events: [],
    links: [],
  }
}

function nanos(milliseconds: number): number {
  return Math.round(milliseconds * 1e6)
}
