import type { SchedulingPolicy } from './group-rules.ts'

/** Of one that waits. */
export interface Waits {
  readonly priority: number
  /** Lower came earlier; no two have the same. */
  readonly order: number
}

/** Queries that wait in one group, in the order in which its policy takes them. */
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

  /** Those that wait, as they stand. */
  get all(): readonly T[] {
    return this.#waiting
  }

  /** @returns how many stand before it */
  add(one: T): number {
    const at = this.#placeOf(one)
    this.#waiting.splice(at, 0, one)
    return at
  }

  remove(one: T): void {
    const at = this.#placeOf(one)
    if (this.#waiting[at] === one) this.#waiting.splice(at, 1)
  }

  /** Highest priority of those that wait; 0 for none. */
  get highest(): number {
    return this.#waiting[0]?.priority ?? 0
  }

  /**
   * The next one; it waits no more.
   * @param draw of [0, 1): under `weighted` a lot is drawn, with as many tickets for each as its priority
   */
  take(draw: () => number): T | undefined {
    if (this.#policy !== 'weighted' || this.#waiting.length < 2) return this.#waiting.shift()
    const at = drawn(this.#waiting, (one) => one.priority, draw)
    return this.#waiting.splice(at, 1)[0]
  }

  /** Where it stands, or would. */
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

/** Which of several a lot falls on. @param tickets of one, above 0 */
export function drawn<T>(of: readonly T[], tickets: (one: T) => number, draw: () => number): number {
  let left = draw() * of.reduce((sum, one) => sum + tickets(one), 0)
  for (const [at, one] of of.entries()) {
    left -= tickets(one)
    if (left < 0) return at
  }
  return of.length - 1
}
