import { hash, randomUUID } from 'node:crypto'

/** W3C trace context, version 00. */
export interface TraceContext {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Parses a header. A malformed one never fails a request: the result is undefined, and a new trace starts. */
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
  // `randomUUID` takes random bytes from a cache; `randomBytes` asks the kernel each time.
  return randomUUID().replaceAll('-', '')
}

/** A new id for the span of a single call. Ids of entities' spans are derived instead: see `entitySpanId`. */
export function newSpanId(): string {
  return newTraceId().slice(16)
}

/**
 * The span id of a query, stage, task, pipeline or operator. It is derived from the entity, so that any process that
 * emits the span after a crash gives it the same id: the first 8 bytes of SHA-256(span name + entity id).
 */
export function entitySpanId(name: string, entity: string): string {
  return hash('sha256', name + entity).slice(0, 16)
}

/**
 * Whether a trace is sampled. The client's flag wins; else the trace id itself decides, the same everywhere
 * (TraceIdRatio).
 */
export function isSampled(context: TraceContext | undefined, traceId: string, ratio: number): boolean {
  if (context) return context.sampled
  if (ratio >= 1) return true
  return Number.parseInt(traceId.slice(-14), 16) < ratio * 2 ** 56
}
