import { createCeiling } from './ceiling.ts'
import { isSampled, type TraceContext } from './trace-context.ts'

export interface SamplerOptions {
  /** Share of the traces that are sampled if the client does not decide. */
  readonly ratio: number
  /** The maximum number of traces begun here in a second. Traces with the client's own flag do not count. */
  readonly perSecond: number
  /** Monotonic milliseconds. */
  readonly monotonicMs: () => number
}

/** Whether a new trace is sampled. `context` is the client's, if it sent one. */
export type Sampler = (context: TraceContext | undefined, traceId: string) => boolean

/**
 * ParentBased(TraceIdRatio) with a ceiling. A trace costs milliseconds of CPU, which hundreds of small statements a
 * second would notice.
 */
export function createSampler({ ratio, perSecond, monotonicMs }: SamplerOptions): Sampler {
  const below = createCeiling(perSecond, monotonicMs)
  return (context, traceId) => isSampled(context, traceId, ratio) && (context !== undefined || below())
}
