/** The owner of a queued item. A client may use many user names, so the address counts first. See `limitOwners`. */
export interface SlotOwner {
  /** The network of an unverified client. For a verified user, a text that is not an address. */
  readonly address: string
  readonly user: string
  /** The user was verified, so their address does not count. */
  readonly known?: true
}

/** Tests whether an owner may go next now. */
export interface MayTake {
  address(address: string): boolean
  user(user: string): boolean
}

/**
 * A queue in which addresses go in turn, and within an address its users. Items of one user are served in the order in
 * which they came. A user with one item waits for at most as many others as there are addresses and users, however many
 * items each of them has. The owner that was served longest ago is next.
 */
export class FairQueue<T> {
  readonly #addresses = new Rotation<Rotation<Set<{ readonly item: T }>>>()
  #length = 0

  get length(): number {
    return this.#length
  }

  /** How many items of a user wait. */
  lengthOf({ address, user }: SlotOwner): number {
    return this.#addresses.get(address)?.get(user)?.size ?? 0
  }

  /** @returns removes the item again; does nothing once the item was served */
  push({ address, user }: SlotOwner, item: T): () => void {
    const users = this.#addresses.join(address, () => new Rotation<Set<{ readonly item: T }>>())
    const own = users.join(user, () => new Set<{ readonly item: T }>())
    const entry = { item }
    own.add(entry)
    this.#length++
    return () => {
      if (!own.delete(entry)) return
      this.#length--
      if (own.size === 0) users.leave(user)
      if (users.waiting === 0) this.#addresses.leave(address)
    }
  }

  /** Records that an item of this owner was served without waiting. It counts like any other. */
  passed({ address, user }: SlotOwner): void {
    this.#addresses.passed(address)
    this.#addresses.get(address)?.passed(user)
  }

  /**
   * Removes and returns the next item.
   * @param may owners for which it says no are skipped and keep their position
   */
  shift(may?: MayTake): T | undefined {
    for (const [address, users] of this.#addresses.inOrder()) {
      if (may && !may.address(address)) continue
      for (const [user, own] of users.inOrder()) {
        if (may && !may.user(user)) continue
        const [entry] = own
        own.delete(entry!)
        this.#length--
        users.had(user, own.size > 0)
        this.#addresses.had(address, users.waiting > 0)
        return entry!.item
      }
    }
    return undefined
  }
}

/** How many names that were never served go in a row before a name that was. */
const FRESH_IN_A_ROW = 4
/** How many names without items stay in memory after they were served. Older ones are forgotten. */
const MOST_IDLE = 256

/**
 * Names in turn, each with its value. Names that were never served come first, then the name that was served longest
 * ago, even if nothing was waiting since. A client that uses ever new names gets at most four of five.
 */
class Rotation<V> {
  /** Names that were never served. Maps keep the order of their keys. */
  readonly #fresh = new Map<string, V>()
  /** Names that were served, oldest first; undefined for names without items now. */
  readonly #served = new Map<string, V | undefined>()
  #idle = 0
  #freshInARow = 0

  /** How many names have items. */
  get waiting(): number {
    return this.#fresh.size + this.#served.size - this.#idle
  }

  get(name: string): V | undefined {
    return this.#fresh.get(name) ?? this.#served.get(name)
  }

  join(name: string, make: () => V): V {
    const there = this.get(name)
    if (there !== undefined) return there
    const made = make()
    if (this.#served.has(name)) {
      this.#served.set(name, made)
      this.#idle--
    } else this.#fresh.set(name, made)
    return made
  }

  /** The name has no items any more, without having been served. */
  leave(name: string): void {
    if (this.#fresh.delete(name) || this.#served.get(name) === undefined) return
    this.#served.set(name, undefined)
    this.#idle++
    this.#forgetOldest()
  }

  *inOrder(): Generator<[string, V]> {
    const isFresh = this.#freshInARow < FRESH_IN_A_ROW
    const order = isFresh ? [this.#fresh, this.#served] : [this.#served, this.#fresh]
    for (const names of order) for (const [name, value] of names) if (value !== undefined) yield [name, value]
  }

  /** The name was served. */
  had(name: string, more: boolean): void {
    const value = this.get(name)
    this.#freshInARow = this.#fresh.delete(name) ? this.#freshInARow + 1 : 0
    this.#served.delete(name)
    this.#served.set(name, more ? value : undefined)
    if (more) return
    this.#idle++
    this.#forgetOldest()
  }

  /** The name was served without waiting. */
  passed(name: string): void {
    const value = this.get(name)
    if (value === undefined && this.#served.has(name)) this.#idle--
    this.#fresh.delete(name)
    this.#served.delete(name)
    this.#served.set(name, value)
    if (value !== undefined) return
    this.#idle++
    this.#forgetOldest()
  }

  #forgetOldest(): void {
    if (this.#idle <= MOST_IDLE) return
    for (const [name, value] of this.#served) {
      if (value !== undefined) continue
      this.#served.delete(name)
      this.#idle--
      return
    }
  }
}
