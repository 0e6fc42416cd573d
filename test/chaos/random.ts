/** A generator of numbers that depend only on its seed and use. */
export interface Random {
  /** A number in [0, 1). */
  next(): number
  /** A whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number
  chance(probability: number): boolean
  pick<T>(items: readonly T[]): T
}

/**
 * mulberry32 over a seed and a use: numbers of one use do not change those of another.
 * @param use for example `plan`, or `client 3`
 */
export function createRandom(seed: number, use: string): Random {
  let state = seed >>> 0
  for (const character of use) state = Math.imul(state ^ character.codePointAt(0)!, 0x01000193) >>> 0
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const whole = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1))
  return {
    next,
    whole,
    chance: (probability) => next() < probability,
    pick: (items) => items[whole(0, items.length - 1)]!,
  }
}
