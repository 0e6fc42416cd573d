import type { ScalarFunction } from './scalar-function.ts'

/** The last level; values of finer levels are counted in it. */
const LAST_LEVEL = 39
/** Number of codes in the first level, as a power of two. */
const FIRST_BITS = 18

/** The share of all values that have one given code of a level, as `q_distinct_code` assigns them. */
export function shareOfCode(level: number, leastBits: number): number {
  return 2 ** -(Math.min(level + 1, LAST_LEVEL) + Math.max(FIRST_BITS - 2 * level, leastBits))
}

/**
 * Estimates the number of different values from the number of codes that occur in each level: the most likely number.
 * Bitmaps with levels that see half the values of the level before are by Estan, Varghese and Fisk (2003). The estimate
 * is the zero of the likelihood's derivative, Σ taken · share / (1 - e^(-count · share)) - 1. `levels` and `taken` have
 * the same length.
 */
export function distinctEstimate(levels: readonly number[], taken: readonly number[], leastBits: number): number {
  const all = levels.map((level, i) => ({ share: shareOfCode(level, leastBits), taken: taken[i]! }))
  // Each value has at most one code.
  const least = taken.reduce((sum, each) => sum + each, 0)
  return likeliest(
    least,
    (count) => all.reduce((sum, each) => sum - (each.taken * each.share) / Math.expm1(-count * each.share), 0) > 1,
  )
}

/**
 * Estimates the number of different values from how many of 2^`bits` registers have each highest level, as in
 * HyperLogLog (Flajolet and others, 2007), by likelihood (Ertl, 2017) instead of bias tables. `levels` and `registers`
 * have the same length. A value reaches level k in one of 2^k cases.
 */
export function highestEstimate(levels: readonly number[], registers: readonly number[], bits: number): number {
  const all = levels.map((level, i) => ({
    share: 2 ** -(bits + Math.min(level + 1, LAST_LEVEL)),
    level,
    of: registers[i]!,
  }))
  const taken = registers.reduce((sum, each) => sum + each, 0)
  const free = 1 - taken * 2 ** -bits
  return likeliest(taken, (count) => {
    const slope = all.reduce((sum, { share, level, of }) => {
      // There is no higher level than the last one.
      const isLast = level >= LAST_LEVEL
      return sum + of * share * (1 / Math.expm1(count * share) - (isLast ? 0 : 1))
    }, 0)
    return slope > free
  })
}

/** The smallest count that is not too low, from `from` on. */
function likeliest(from: number, isTooLow: (count: number) => boolean): number {
  let low = from
  let high = low * 2
  while (high < 2 ** 63 && isTooLow(high)) {
    low = high
    high *= 2
  }
  while (high - low > 0.1 && high - low > low * 1e-5) {
    const middle = (low + high) / 2
    if (isTooLow(middle)) low = middle
    else high = middle
  }
  return Math.round((low + high) / 2)
}

export const distinctEstimateScripts: readonly ScalarFunction[] = [
  {
    name: 'u_distinct_estimate',
    parameters: ['DOUBLE[]', 'DOUBLE[]', 'DOUBLE'],
    returns: 'DOUBLE',
    call: distinctEstimate,
  },
  {
    name: 'u_highest_estimate',
    parameters: ['DOUBLE[]', 'DOUBLE[]', 'DOUBLE'],
    returns: 'DOUBLE',
    call: highestEstimate,
  },
]
