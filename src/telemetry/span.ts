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
