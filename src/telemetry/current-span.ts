import { TrackedValue } from '../shared/tracked-value.ts'
import type { TraceContext } from './trace-context.ts'

const ofRead = new TrackedValue<TraceContext>()

/**
 * Assigns all reads until the promise settles to a span. The span is tracked, because between a statement over `system`
 * and the read models there is a connector, which knows no traces.
 */
export async function withinSpan<T>(context: TraceContext | undefined, run: () => Promise<T>): Promise<T> {
  return context?.sampled ? ofRead.during(context, run) : run()
}

/** The span to which reads belong now. */
export function currentSpan(): TraceContext | undefined {
  return ofRead.current
}
