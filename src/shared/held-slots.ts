import type { SlotOwner } from './fair-queue.ts'

/** An owner may hold this many slots for each free slot: see `Shares`. */
const OF_EACH_FREE = 3

interface Held {
  readonly address: string
  readonly giveUp: () => void
}

/**
 * Slots that their holders keep as long as they like, such as connections. No owner holds more than three for each free
 * slot, so a few owners never take all. If many owners did take all, an owner without a slot gets one from the owner
 * with the most.
 */
export class HeldSlots {
  readonly #most: number
  readonly #mostOfOne: number
  /** In the order in which they were taken. */
  readonly #held = new Set<Held>()

  /** @param mostOfOne the maximum number of slots of one owner, however many are free */
  constructor(most: number, mostOfOne: number) {
    this.#most = most
    this.#mostOfOne = mostOfOne
  }

  get size(): number {
    return this.#held.size
  }

  /** Whether `take` would give a slot. */
  may(owner: SlotOwner): boolean {
    const own = this.#of(owner.address)
    const free = this.#most - this.#held.size
    if (own >= this.#mostOfOne) return false
    return free > 0 ? own <= OF_EACH_FREE * free : own === 0 && this.#largestHolding() !== undefined
  }

  /**
   * Takes a slot.
   * @param giveUp called when the slot goes to an owner without one; the holder has already lost it then
   * @returns gives the slot back, once; undefined if there is no slot for this owner
   */
  take({ address }: SlotOwner, giveUp: () => void): (() => void) | undefined {
    if (!this.may({ address, user: '' })) return undefined
    const taken = this.#held.size < this.#most ? undefined : this.#largestHolding()
    if (taken) this.#held.delete(taken)
    const held = { address, giveUp }
    this.#held.add(held)
    taken?.giveUp()
    return () => void this.#held.delete(held)
  }

  #of(address: string): number {
    let count = 0
    for (const held of this.#held) if (held.address === address) count++
    return count
  }

  /** The newest slot of the owner that holds most, if that is more than one. */
  #largestHolding(): Held | undefined {
    const counts = new Map<string, number>()
    for (const { address } of this.#held) counts.set(address, (counts.get(address) ?? 0) + 1)
    const [address, count] = [...counts].reduce((most, one) => (one[1] > most[1] ? one : most), ['', 1])
    return count > 1 ? [...this.#held].findLast((held) => held.address === address) : undefined
  }
}
