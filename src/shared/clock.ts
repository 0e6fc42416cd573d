/** Where time comes from. Wall time may jump; waits use `monotonicMs`. Tests pass their own. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  now(): number
  /** Milliseconds that never go back, from an arbitrary start; sub-millisecond resolution. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
}
