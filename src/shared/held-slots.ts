import type { SlotOwner } from './fair-queue.ts'

/** So many places for each that is left free: see `Shares`. */
const OF_EACH_FREE = 3

interface Held {
  readonly address: string
  readonly giveUp: () => void
}

/**
 * Places that are held for as long as their holders like, like connections. Nobody holds more than three for each that is free,
 * so that few owners never take all; and where many did, somebody who has none gets a place of whoever has most.
 */
export class HeldSlots {
  readonly #most: number
  readonly #mostOfOne: number
  /** In the order of their coming. */
  readonly #held = new Set<Held>()

  /** @param mostOfOne of one owner, however many are free */
  constructor(most: number, mostOfOne: number) {
    this.#most = most
    this.#mostOfOne = mostOfOne
  }

  get size(): number {
    return this.#held.size
  }

  /** Would `take` give a place? */
  may(owner: SlotOwner): boolean {
    const own = this.#of(owner.address)
    const free = this.#most - this.#held.size
    if (own >= this.#mostOfOne) return false
    return free > 0 ? own <= OF_EACH_FREE * free : own === 0 && this.#ofWhoHasMost() !== undefined
  }

  /**
   * @param giveUp called when the place goes to somebody who has none; the holder has it no more by then
   * @returns gives the place back, once; undefined where there is none for this owner
   */
  take({ address }: SlotOwner, giveUp: () => void): (() => void) | undefined {
    if (!this.may({ address, user: '' })) return undefined
    const taken = this.#held.size < this.#most ? undefined : this.#ofWhoHasMost()
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

  /** The newest place of whoever holds most, if that is more than one. */
  #ofWhoHasMost(): Held | undefined {
    const counts = new Map<string, number>()
    for (const { address } of this.#held) counts.set(address, (counts.get(address) ?? 0) + 1)
    const [address, count] = [...counts].reduce((most, one) => (one[1] > most[1] ? one : most), ['', 1])
    return count > 1 ? [...this.#held].findLast((held) => held.address === address) : undefined
  }
}
