import { createCeiling } from './ceiling.ts'
import { isSampled, type TraceContext } from './trace-context.ts'

export interface SamplerOptions {
  /** Part of the traces that are taken when the client does not say. */
  readonly ratio: number
  /** Traces begun here in a second at most; the client's own flag is not counted. */
  readonly perSecond: number
  /** Monotonic milliseconds. */
  readonly monotonicMs: () => number
}

/** Is a new trace taken? `context` is the client's, if it sent one. */
export type Sampler = (context: TraceContext | undefined, traceId: string) => boolean

/**
 * ParentBased(TraceIdRatio) with a ceiling: a trace costs milliseconds of CPU, which hundreds of small statements a second
 * would feel.
 */
export function createSampler({ ratio, perSecond, monotonicMs }: SamplerOptions): Sampler {
  const below = createCeiling(perSecond, monotonicMs)
  return (context, traceId) => isSampled(context, traceId, ratio) && (context !== undefined || below())
}
