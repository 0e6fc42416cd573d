import { FairQueue, type SlotOwner } from '../../../shared/fair-queue.ts'
import { Shares } from '../../../shared/shares.ts'
import type { Line, Waits } from './waiting-line.ts'

/** One slot of this many is for new queries, however many the earlier coordinator left waiting. */
const SLOTS_FOR_ONE_NEW = 4

/**
 * The line of the group that exists without a file of rules. Addresses and users go in turn, and each user's queries
 * keep their order. One user, or one address, leaves slots to others, so that their short statements do not wait for
 * long ones. Queries of an earlier coordinator come first, but leave a quarter of the slots to new ones.
 */
export class OwnerLine<T extends Waits> implements Line<T> {
  readonly policy = 'fair'
  readonly highest = 0
  readonly isKept = true
  readonly startsOnArrival = false
  readonly #slots: number
  /** Queries that waited at an earlier coordinator, in their old order. */
  readonly #recovered = new Set<T>()
  readonly #fresh = new FairQueue<T>()
  /** The waiting new queries, each with the function that removes it from the queue. */
  readonly #waiting = new Map<T, () => void>()
  /** The running new queries, each with the function that gives back its share. */
  readonly #running = new Map<T, () => void>()
  readonly #shares = new Shares()

  /** @param slots how many queries of the group may run at once */
  constructor(slots: number) {
    this.#slots = slots
  }

  get length(): number {
    return this.#recovered.size + this.#fresh.length
  }

  get all(): readonly T[] {
    return [...this.#recovered, ...this.#waiting.keys()]
  }

  add(one: T): void {
    if (one.recovered) this.#recovered.add(one)
    else this.#waiting.set(one, this.#fresh.push(one.owner, one))
  }

  remove(one: T): void {
    this.#recovered.delete(one)
    this.#waiting.get(one)?.()
    this.#waiting.delete(one)
  }

  /** Recovered queries have only recovered ones before them. */
  positionOf({ recovered }: T): number {
    return recovered ? this.#recovered.size : this.length
  }

  mayStart({ owner, recovered }: { owner: SlotOwner; recovered: boolean }, running: number, expected: number): boolean {
    const free = this.#slots - running
    if (free <= 0) return false
    if (recovered) return this.#recovered.size === 0
    // If others wait although slots are free, their owners already have their share.
    return this.#isForNew(running, expected) && this.#fresh.lengthOf(owner) === 0 && this.#shares.may(owner, free)
  }

  take(_draw: () => number, running: number, expected: number): T | undefined {
    const free = this.#slots - running
    const fresh = this.#isForNew(running, expected) ? this.#fresh.shift(this.#shares.among(free)) : undefined
    const [next] = fresh ? [fresh] : this.#recovered
    if (next) this.remove(next)
    return next
  }

  started(one: T): void {
    if (!one.recovered) this.#running.set(one, this.#shares.take(one.owner))
  }

  ended(one: T): void {
    this.#running.get(one)?.()
    this.#running.delete(one)
  }

  /** Whether a free slot may go to a new query. */
  #isForNew(running: number, expected: number): boolean {
    if (this.#running.size < Math.floor(this.#slots / SLOTS_FOR_ONE_NEW)) return true
    return this.#recovered.size === 0 && running + expected < this.#slots
  }
}
