export type AttributeValue = string | number | boolean | readonly string[]

/** A span as data. It is made from events as well as live, so that a crash loses none (observability 1). */
export interface SpanRecord {
  readonly name: string
  readonly kind: 'INTERNAL' | 'SERVER' | 'CLIENT' | 'PRODUCER' | 'CONSUMER'
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  /** Milliseconds since the epoch, with fractions. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, AttributeValue>>
  readonly status: 'OK' | 'ERROR' | 'UNSET'
  readonly statusMessage?: string
  readonly events: readonly SpanEvent[]
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
}

export interface SpanEvent {
  readonly name: string
  readonly atMs: number
  readonly attributes: Readonly<Record<string, AttributeValue>>
}

/** The source of spans that are made later, in another thread; plain data, so that it can be sent there. */
export interface SpansLater {
  readonly kind: string
}

/** Takes spans. Never slows the caller down, and never makes it fail. */
export interface SpanSink {
  /** Whether spans are sent at all. */
  readonly enabled: boolean
  emit(spans: readonly SpanRecord[]): void
  /** Takes a source whose spans are made off this process's event loop. */
  later(source: SpansLater): void
  stop(): Promise<void>
}

export const noSpans: SpanSink = { enabled: false, emit: () => {}, later: () => {}, stop: async () => {} }

/** A sink until the exporter is loaded. It keeps as many spans as the exporter's queue would. */
export function createPendingSpans(): SpanSink & { replay(to: SpanSink): void } {
  let kept: ((to: SpanSink) => void)[] = []
  const keep = (one: (to: SpanSink) => void): void => {
    if (kept.length < MOST_KEPT) kept.push(one)
  }
  return {
    enabled: true,
    emit: (spans) => keep((to) => to.emit(spans)),
    later: (source) => keep((to) => to.later(source)),
    stop: async () => {},
    replay(to) {
      for (const one of kept) one(to)
      kept = []
    },
  }
}

const MOST_KEPT = 8_000
