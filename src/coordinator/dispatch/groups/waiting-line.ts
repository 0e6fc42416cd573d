import type { SchedulingPolicy } from './group-rule.ts'

/** A waiting query. */
export interface Waits {
  readonly priority: number
  /** Lower came earlier; no two are equal. */
  readonly order: number
}

/** The queries that wait in one group, in the order in which its policy takes them. */
export class WaitingLine<T extends Waits> {
  #policy: SchedulingPolicy = 'fair'
  readonly #waiting: T[] = []

  get length(): number {
    return this.#waiting.length
  }

  get policy(): SchedulingPolicy {
    return this.#policy
  }

  set policy(policy: SchedulingPolicy) {
    if (policy === this.#policy) return
    this.#policy = policy
    this.#waiting.sort((a, b) => this.#compare(a, b))
  }

  /** The waiting queries, in their order. */
  get all(): readonly T[] {
    return this.#waiting
  }

  /** @returns how many queries are before it */
  add(one: T): number {
    const at = this.#placeOf(one)
    this.#waiting.splice(at, 0, one)
    return at
  }

  remove(one: T): void {
    const at = this.#placeOf(one)
    if (this.#waiting[at] === one) this.#waiting.splice(at, 1)
  }

  /** The highest priority of the waiting queries; 0 for none. */
  get highest(): number {
    return this.#waiting[0]?.priority ?? 0
  }

  /**
   * Removes and returns the next query.
   * @param draw a random number in [0, 1): under `weighted` a lot is drawn, and each query has as many lots as its
   * priority
   */
  take(draw: () => number): T | undefined {
    if (this.#policy !== 'weighted' || this.#waiting.length < 2) return this.#waiting.shift()
    const at = drawn(this.#waiting, (one) => one.priority, draw)
    return this.#waiting.splice(at, 1)[0]
  }

  /** The position where it is, or would be. */
  #placeOf(one: T): number {
    let low = 0
    let high = this.#waiting.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(this.#waiting[middle]!, one) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  #compare(a: T, b: T): number {
    const byPriority = this.#policy === 'query_priority' || this.#policy === 'weighted_fair'
    return (byPriority ? b.priority - a.priority : 0) || a.order - b.order
  }
}

/** The position of a drawn item. @param tickets the lots of an item, above 0 */
export function drawn<T>(of: readonly T[], tickets: (one: T) => number, draw: () => number): number {
  let left = draw() * of.reduce((sum, one) => sum + tickets(one), 0)
  for (const [at, one] of of.entries()) {
    left -= tickets(one)
    if (left < 0) return at
  }
  return of.length - 1
}
