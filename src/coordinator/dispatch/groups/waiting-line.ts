import type { SlotOwner } from '../../../shared/fair-queue.ts'
import type { SchedulingPolicy } from './group-rule.ts'

/** A waiting query. */
export interface Waits {
  /** The user and address that the query counts for. */
  readonly owner: SlotOwner
  /** Whether an earlier coordinator accepted it: then it comes before all new queries. */
  readonly recovered: boolean
  readonly priority: number
  /** A number of its own. An earlier query has a lower number. */
  readonly order: number
}

/** The queries that wait in one group, and which of them is next. */
export interface Line<T extends Waits> {
  readonly length: number
  readonly policy: SchedulingPolicy
  /** The waiting queries. If the policy has an order, they are in this order. */
  readonly all: readonly T[]
  /** The highest priority of the waiting queries; 0 for none. */
  readonly highest: number
  /** Whether the line has a memory, so that its group stays even without queries. */
  readonly isKept: boolean
  /** Whether a query that enters may start at once; else it waits first, if only for a moment. */
  readonly startsOnArrival: boolean
  add(one: T): void
  remove(one: T): void
  /** The position of a query that was added last. */
  positionOf(one: T): number
  /**
   * Whether a query may start before those that wait.
   * @param running how many queries of the group run
   * @param expected how many queries of the earlier coordinator have not arrived yet
   */
  mayStart(one: Pick<Waits, 'owner' | 'recovered'>, running: number, expected: number): boolean
  /**
   * Removes and returns the next query.
   * @param draw a random number in [0, 1): under `weighted` a lot is drawn, and each query has as many lots as its
   * priority
   */
  take(draw: () => number, running: number, expected: number): T | undefined
  /** Notes that a query has a slot. */
  started(one: T): void
  /** Notes that a query gave its slot back. */
  ended(one: T): void
}

/** The queries that wait in one group, in the order in which its policy takes them. */
export class WaitingLine<T extends Waits> implements Line<T> {
  readonly isKept = false
  readonly startsOnArrival = true
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

  get all(): readonly T[] {
    return this.#waiting
  }

  add(one: T): void {
    this.#waiting.splice(this.#indexOf(one), 0, one)
  }

  remove(one: T): void {
    const at = this.#indexOf(one)
    if (this.#waiting[at] === one) this.#waiting.splice(at, 1)
  }

  get highest(): number {
    return this.#waiting[0]?.priority ?? 0
  }

  positionOf(): number {
    return this.length
  }

  mayStart(): boolean {
    return true
  }

  started(): void {}

  ended(): void {}

  take(draw: () => number): T | undefined {
    if (this.#policy !== 'weighted' || this.#waiting.length < 2) return this.#waiting.shift()
    const at = drawn(this.#waiting, (one) => one.priority, draw)
    return this.#waiting.splice(at, 1)[0]
  }

  /** The index of the item, or the index where it would be inserted. */
  #indexOf(one: T): number {
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
