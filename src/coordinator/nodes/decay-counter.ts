/** A count that loses its weight with time: c·e^(−Δt/τ). Counts add up as if each had been kept by itself. */
export interface DecayCounter {
  readonly count: number
  /** Milliseconds, the time `count` is true of. */
  readonly at: number
}

/** After this time, in milliseconds, a count is worth 1/e of itself: 1000 become 367.9. */
const DECAY_MS = 60_000

export const zeroCounter: DecayCounter = { count: 0, at: 0 }

/** @param now milliseconds of a clock that does not go back; an earlier time counts as the counter's own */
export function countAt(counter: DecayCounter, now: number): number {
  return counter.count * Math.exp(-Math.max(0, now - counter.at) / DECAY_MS)
}

export function addToCounter(counter: DecayCounter, amount: number, now: number): DecayCounter {
  return { count: countAt(counter, now) + amount, at: Math.max(counter.at, now) }
}
