/**
 * Finds the most frequent values in one pass with little memory: the space-saving sketch of Metwally, Agrawal and El
 * Abbadi (2005). A value has a slot of its own while it is among the `top`; all others share one.
 */
export interface TopValues {
  /**
   * Counts a value.
   * @returns `placed`: whether the value has a slot; `instead`: the value that lost its slot to it, if it just got one
   */
  offer(value: string): { readonly placed: boolean; readonly instead?: string }
}

interface Counted {
  count: number
  /** Upper bound of the part of `count` that belongs to other values. */
  error: number
}

/** How many values are followed per slot. With more, a frequent value is found sooner among many rare ones. */
const FOLLOWED = 10
/** Counts restart after this time, so that values that were frequent yesterday give way to those of today. */
export const PERIOD_MS = 3_600_000

/** @param monotonicMs monotonic clock, milliseconds */
export function createTopValues(top: number, monotonicMs: () => number): TopValues {
  /** Exact counts of the values with a slot, since they got it or since the period began. */
  const placed = new Map<string, Counted>()
  let others = new Map<string, Counted>()
  let periodEndsAt = monotonicMs() + PERIOD_MS

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
      if (monotonicMs() >= periodEndsAt) {
        periodEndsAt = monotonicMs() + PERIOD_MS
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
      // Compared by its certain count: among many values that occur once, none gets a slot.
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
