import { createCeiling } from './ceiling.ts'

export interface QuietBudget {
  /** How many are allowed at once, after a pause. */
  readonly burst: number
  /** How many are allowed a second in the long run. */
  readonly perSecond: number
  /** How many may run at once. More are a flood, however slowly they arrive. */
  readonly running: number
  /** Monotonic milliseconds. */
  readonly monotonicMs: () => number
}

/**
 * Allows everything at a quiet pace, and one a second in a flood. Refused calls use the budget up as well, so that it
 * does not refill while more than `perSecond` arrive. Called once for each task, with the number of running ones.
 */
export function createQuietBudget(budget: QuietBudget): (running: number) => boolean {
  const { burst, perSecond, monotonicMs } = budget
  const sample = createCeiling(1, monotonicMs)
  let left = burst
  let askedAt = monotonicMs()
  return (running) => {
    const now = monotonicMs()
    left = Math.min(burst, left + ((now - askedAt) / 1000) * perSecond)
    askedAt = now
    const allowed = left >= 1 && running <= budget.running
    left = Math.max(0, left - 1)
    return allowed || sample()
  }
}
