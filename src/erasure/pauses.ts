import { setImmediate as nextLoopPass } from 'node:timers/promises'

/** How long a search computes before other work of the process runs, milliseconds. */
const SLICE_MS = 10

/**
 * Makes a function to call between two texts of a search. It waits for other work of the event loop if the search has
 * computed for a while: a text may take a second, and the supervisor kills a silent coordinator.
 */
export function createPauses(): () => Promise<void> | undefined {
  let began = performance.now()
  return () => {
    if (performance.now() - began < SLICE_MS) return undefined
    return nextLoopPass().then(() => void (began = performance.now()))
  }
}
