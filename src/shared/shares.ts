import type { MayTake, SlotOwner } from './fair-queue.ts'

/** Gives a slot back. Later calls do nothing. */
type Leave = () => void

/** An owner may hold this many slots for each free slot. */
const OF_EACH_FREE = 3

/**
 * Counts which owner holds how many of a number of slots. No user and no address holds more than three for each free
 * slot: one owner alone leaves a quarter of the slots free, two leave a seventh, and so on. So while few owners hold
 * many slots, a new owner does not wait for their long work.
 *
 * The rule is that of dynamic thresholds for buffers of switches (Choudhury and Hahne, 1998).
 */
export class Shares {
  readonly #addresses = new Map<string, number>()
  readonly #users = new Map<string, number>()

  /** Makes the tests that decide whether an owner may take one of the free slots. */
  among(free: number): MayTake {
    const most = free > 0 ? OF_EACH_FREE * free : -1
    return {
      address: (address) => (this.#addresses.get(address) ?? 0) <= most,
      user: (user) => (this.#users.get(user) ?? 0) <= most,
    }
  }

  may({ address, user }: SlotOwner, free: number): boolean {
    const may = this.among(free)
    return may.address(address) && may.user(user)
  }

  take({ address, user }: SlotOwner): Leave {
    add(this.#addresses, address, 1)
    add(this.#users, user, 1)
    let held = true
    return () => {
      if (!held) return
      held = false
      add(this.#addresses, address, -1)
      add(this.#users, user, -1)
    }
  }
}

function add(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by
  if (count > 0) counts.set(name, count)
  else counts.delete(name)
}
