import { hash, randomUUID } from 'node:crypto'

/** W3C trace context, version 00. */
export interface TraceContext {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** A malformed header starts a new trace, it never fails a request: undefined. */
export function parseTraceparent(header: string | undefined): TraceContext | undefined {
  const match = TRACEPARENT.exec(header?.trim().toLowerCase() ?? '')
  if (!match || match[0].startsWith('ff')) return undefined
  const [, traceId = '', spanId = '', flags = '00'] = match
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function formatTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
}

export function newTraceId(): string {
  // Takes its randomness from a store, where `randomBytes` asks the kernel each time.
  return randomUUID().replaceAll('-', '')
}

/** For spans that stand for one call; those of entities follow from what they stand for. */
export function newSpanId(): string {
  return newTraceId().slice(16)
}

/**
 * Span ids of queries, stages, tasks, pipelines and operators follow from what they stand for, so that whoever emits
 * the span after a crash gives it the same id: the first 8 bytes of SHA-256(span name + entity id).
 */
export function entitySpanId(name: string, entity: string): string {
  return hash('sha256', name + entity).slice(0, 16)
}

/** Is a trace taken? The client's flag wins; else the trace id itself decides, the same everywhere (TraceIdRatio). */
export function isSampled(context: TraceContext | undefined, traceId: string, ratio: number): boolean {
  if (context) return context.sampled
  if (ratio >= 1) return true
  return Number.parseInt(traceId.slice(-14), 16) < ratio * 2 ** 56
}
