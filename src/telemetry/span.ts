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

/** Where spans go. Never slows or fails whoever hands one over. */
export interface SpanSink {
  /** Is anybody there to take them? */
  readonly enabled: boolean
  emit(spans: readonly SpanRecord[]): void
  stop(): Promise<void>
}

export const noSpans: SpanSink = { enabled: false, emit: () => {}, stop: async () => {} }

/** A sink before the exporter is loaded: spans are kept, up to what its queue would hold. */
export function createPendingSpans(): SpanSink & { replay(to: SpanSink): void } {
  let kept: SpanRecord[] = []
  return {
    enabled: true,
    emit: (spans) => void (kept.length < MOST_KEPT && kept.push(...spans)),
    stop: async () => {},
    replay(to) {
      to.emit(kept)
      kept = []
    },
  }
}

const MOST_KEPT = 16_000
