/** A source of time. Wall time may jump, so waits use `monotonicMs`. Tests pass their own clock. */
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

/**
 * A wall clock that starts at the wall time of this call and follows the monotonic clock: jumps of the wall clock do
 * not move it.
 */
export function steadyWall(clock: Clock): () => number {
  const offset = clock.now() - clock.monotonicMs()
  return () => offset + clock.monotonicMs()
}
