import type { MayTake, SlotOwner } from './fair-queue.ts'

/** A place; given back once, later calls do nothing. */
type Leave = () => void

/** So many places for each that is left free. */
const OF_EACH_FREE = 3

/**
 * Who holds how many of a number of places. Nobody, by user or by address, holds more than three for each that is free: one
 * alone leaves a quarter of them to who comes, two a seventh, and so on, so that somebody who holds none waits for nobody's
 * long work while few hold many.
 *
 * The rule is that of dynamic thresholds for buffers of switches (Choudhury and Hahne, 1998).
 */
export class Shares {
  readonly #addresses = new Map<string, number>()
  readonly #users = new Map<string, number>()

  /** Who may take one of so many that are free. */
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
