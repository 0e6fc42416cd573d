import { createCeiling } from './ceiling.ts'

export interface QuietBudget {
  /** Allowed at once, after a pause. */
  readonly burst: number
  /** Allowed a second in the long run. */
  readonly perSecond: number
  /** Running at a time: more of them are a flood, however slowly they come. */
  readonly running: number
  /** Monotonic milliseconds. */
  readonly monotonicMs: () => number
}

/**
 * Allows all that comes at a quiet pace, and of a flood one a second: what is refused uses the budget up as well, so that
 * nothing of it gathers while more than `perSecond` come. Asked once for each, with how many run.
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
