/**
 * The values that occur most often, found in one pass with little memory: the space-saving sketch of Metwally, Agrawal
 * and El Abbadi (2005). A value has a place of its own while it is among the `top`; all others share one.
 */
export interface TopValues {
  /**
   * Counts a value.
   * @returns whether it has a place, and whose place it took, if it just got one
   */
  offer(value: string): { readonly placed: boolean; readonly instead?: string }
}

interface Counted {
  count: number
  /** At most so much of `count` was another value's. */
  error: number
}

/** Values followed for each place: with more of them a frequent one is known sooner among many rare ones. */
const FOLLOWED = 10
/** Counts begin anew after it, so that who was busy yesterday gives its place to who is today. */
export const PERIOD_MS = 3_600_000

/** @param monotonicMs clock */
export function createTopValues(top: number, monotonicMs: () => number): TopValues {
  /** Of those with a place: exact, since they got it or since the period began. */
  const placed = new Map<string, Counted>()
  let others = new Map<string, Counted>()
  let periodEnds = monotonicMs() + PERIOD_MS

  function follow(value: string): Counted {
    const known = others.get(value)
    if (known) {
      known.count++
      return known
    }
    const fresh: Counted = { count: 1, error: 0 }
    if (others.size >= top * FOLLOWED) {
      const [least, { count: floor }] = leastOf(others)
      others.delete(least)
      fresh.count = floor + 1
      fresh.error = floor
    }
    others.set(value, fresh)
    return fresh
  }

  return {
    offer(value) {
      if (monotonicMs() >= periodEnds) {
        periodEnds = monotonicMs() + PERIOD_MS
        others = new Map()
        for (const one of placed.values()) one.count = 0
      }
      const own = placed.get(value)
      if (own) {
        own.count++
        return { placed: true }
      }
      if (placed.size < top) {
        placed.set(value, { count: 1, error: 0 })
        return { placed: true }
      }
      const found = follow(value)
      // Compared by what it surely has: of many that come once, none takes a place.
      const sure = found.count - found.error
      const [weakest, lost] = leastOf(placed)
      if (sure <= lost.count) return { placed: false }
      placed.delete(weakest)
      others.delete(value)
      placed.set(value, { count: sure, error: 0 })
      others.set(weakest, lost)
      return { placed: true, instead: weakest }
    },
  }
}

function leastOf(entries: Iterable<readonly [string, Counted]>): readonly [string, Counted] {
  let least: readonly [string, Counted] | undefined
  for (const entry of entries) if (!least || entry[1].count < least[1].count) least = entry
  if (!least) throw new Error('nothing is followed')
  return least
}
