/** The medians of equally many runs on each side, in milliseconds. */
export interface Speed {
  readonly kind: 'slower' | 'faster'
  readonly hereMs: number
  readonly thereMs: number
  readonly runs: number
}

/** Factor from the median absolute deviation to the standard deviation, for normally distributed numbers. */
const DEVIATION = 1.4826
/** How many standard deviations, of the side that varies more, count as noise. */
const BEYOND = 3
/** Smaller differences do not count, however steady they are. */
const LEAST_SHARE = 0.1
const LEAST_MS = 2

/**
 * Whether the other side is slower or faster by more than its runs differ among themselves; undefined if that is noise.
 * @param here, there milliseconds of several runs each
 */
export function speedOf(here: readonly number[], there: readonly number[]): Speed | undefined {
  const [hereMs, thereMs] = [median(here), median(there)]
  const noise = BEYOND * DEVIATION * Math.max(deviation(here), deviation(there))
  const apart = Math.abs(thereMs - hereMs)
  if (apart <= Math.max(noise, LEAST_SHARE * Math.min(hereMs, thereMs), LEAST_MS)) return undefined
  return { kind: thereMs > hereMs ? 'slower' : 'faster', hereMs, thereMs, runs: Math.min(here.length, there.length) }
}

export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The median of the distances from the median. */
function deviation(numbers: readonly number[]): number {
  const middle = median(numbers)
  return median(numbers.map((number) => Math.abs(number - middle)))
}
