/** A count that decays with time: c·e^(−Δt/τ). The sum of counts equals the sum of each decayed alone. */
export interface DecayCounter {
  readonly count: number
  /** Milliseconds; the time at which `count` holds. */
  readonly at: number
}

/** After this time, in milliseconds, a count has decayed to 1/e: 1000 becomes 367.9. */
const DECAY_MS = 60_000

export const zeroCounter: DecayCounter = { count: 0, at: 0 }

/** @param now milliseconds of a clock that does not go back; an earlier time counts as the counter's own */
export function countAt(counter: DecayCounter, now: number): number {
  return counter.count * Math.exp(-Math.max(0, now - counter.at) / DECAY_MS)
}

export function addToCounter(counter: DecayCounter, amount: number, now: number): DecayCounter {
  return { count: countAt(counter, now) + amount, at: Math.max(counter.at, now) }
}
