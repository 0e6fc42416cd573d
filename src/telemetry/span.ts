export type AttributeValue = string | number | boolean | readonly string[]

/** A span as data: made from events as well as live, so that a crash loses none (observability 1). */
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

/** What spans are made of where they are sent from. Plain data: it crosses to another thread. */
export interface SpansLater {
  readonly kind: string
}

/** Where spans go. Never slows or fails whoever hands one over. */
export interface SpanSink {
  /** Is anybody there to take them? */
  readonly enabled: boolean
  emit(spans: readonly SpanRecord[]): void
  /** Spans that are to be made off this process's event loop. */
  later(source: SpansLater): void
  stop(): Promise<void>
}

export const noSpans: SpanSink = { enabled: false, emit: () => {}, later: () => {}, stop: async () => {} }

/** A sink before the exporter is loaded: what it is told is kept, up to what its queue would hold. */
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
