import { AsyncLocalStorage } from 'node:async_hooks'
import type { TraceContext } from './trace-context.ts'

const current = new AsyncLocalStorage<TraceContext>()
let within = 0

/**
 * Assigns all reads until the promise settles to a span. The runtime tracks the span, because between a statement over
 * `system` and the read models there is a connector, which knows no traces. The tracking is on only while such a read
 * runs, because it makes each `await` of the process slower.
 */
export async function withinSpan<T>(context: TraceContext | undefined, run: () => Promise<T>): Promise<T> {
  if (!context?.sampled) return run()
  within++
  try {
    return await current.run(context, run)
  } finally {
    if (--within === 0) current.disable()
  }
}

/** The span to which reads belong now. */
export function currentSpan(): TraceContext | undefined {
  return within > 0 ? current.getStore() : undefined
}
