import { isSampled, type TraceContext } from './trace-context.ts'

export interface SamplerOptions {
  /** Part of the traces that are taken when the client does not say. */
  readonly ratio: number
  /** Traces begun here in a second at most; the client's own flag is not counted. @default 50 */
  readonly perSecond?: number
  /** Monotonic milliseconds. */
  readonly monotonicMs: () => number
}

/** Is a new trace taken? `context` is the client's, if it sent one. */
export type Sampler = (context: TraceContext | undefined, traceId: string) => boolean

const PER_SECOND = 50

/**
 * ParentBased(TraceIdRatio) with a ceiling: a trace costs about a millisecond of CPU, which thousands of small
 * statements a second would feel.
 */
export function createSampler(options: SamplerOptions): Sampler {
  const { ratio, perSecond = PER_SECOND, monotonicMs } = options
  let second = Math.floor(monotonicMs() / 1000)
  let taken = 0
  return (context, traceId) => {
    if (!isSampled(context, traceId, ratio)) return false
    if (context) return true
    const now = Math.floor(monotonicMs() / 1000)
    if (now !== second) {
      second = now
      taken = 0
    }
    return ++taken <= perSecond
  }
}
