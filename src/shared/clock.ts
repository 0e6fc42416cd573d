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

/** Wall time as it was at the call, carried on by the monotonic clock: a jump of the wall clock does not move it. */
export function steadyWall(clock: Clock): () => number {
  const offset = clock.now() - clock.monotonicMs()
  return () => offset + clock.monotonicMs()
}
