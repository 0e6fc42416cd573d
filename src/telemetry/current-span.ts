import { AsyncLocalStorage } from 'node:async_hooks'
import type { TraceContext } from './trace-context.ts'

const current = new AsyncLocalStorage<TraceContext>()
let within = 0

/**
 * What is read until the promise settles belongs to a span. Followed by the runtime, since between a statement over
 * `system` and the read models lies a connector, which knows no traces; only while such a read runs, because each `await`
 * of the process is dearer meanwhile.
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

/** The span that what is read now belongs to. */
export function currentSpan(): TraceContext | undefined {
  return within > 0 ? current.getStore() : undefined
}
