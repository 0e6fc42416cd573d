/** Whose turn something is. Anybody may go by many names: where they come from counts first. See `limitOwners`. */
export interface SlotOwner {
  /** Network of somebody who is not known; of a user who was verified something that is no address. */
  readonly address: string
  readonly user: string
  /** The user was verified: their address counts for nothing. */
  readonly known?: true
}

/** Who may have a turn now. */
export interface MayTake {
  address(address: string): boolean
  user(user: string): boolean
}

/**
 * A queue in which addresses take turns, and of one address its users; what is of one user goes in the order of its coming.
 * So somebody who has one thing waits for as many others as there are addresses and users, however much each of them has;
 * and whoever had his turn longest ago is next.
 */
export class FairQueue<T> {
  readonly #addresses = new Rotation<Rotation<Set<{ readonly item: T }>>>()
  #length = 0

  get length(): number {
    return this.#length
  }

  /** How many of a user wait. */
  lengthOf({ address, user }: SlotOwner): number {
    return this.#addresses.get(address)?.get(user)?.size ?? 0
  }

  /** @returns takes it out again; does nothing when its turn has come */
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

  /** Something of his was done that did not have to wait: a turn as any other. */
  passed({ address, user }: SlotOwner): void {
    this.#addresses.passed(address)
    this.#addresses.get(address)?.passed(user)
  }

  /**
   * What is next; it waits no more.
   * @param may whose turn it cannot be is passed over, and keeps its place
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

/** Names that had no turn yet, one after the other, before one that had. */
const FRESH_IN_A_ROW = 4
/** Names that have nothing and had a turn; of the others it is forgotten. */
const MOST_IDLE = 256

/**
 * Names in turn, each with what is its: first who had none, else who had his longest ago, also where nobody waited since. Who
 * comes by ever new names takes four turns of five at most.
 */
class Rotation<V> {
  /** Maps keep the order of their keys. */
  readonly #fresh = new Map<string, V>()
  /** By when they had their turn; undefined of those that have nothing now. */
  readonly #served = new Map<string, V | undefined>()
  #idle = 0
  #freshInARow = 0

  /** Names that have something. */
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

  /** It has nothing any more, without a turn. */
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

  /** It had its turn. */
  had(name: string, more: boolean): void {
    const value = this.get(name)
    this.#freshInARow = this.#fresh.delete(name) ? this.#freshInARow + 1 : 0
    this.#served.delete(name)
    this.#served.set(name, more ? value : undefined)
    if (more) return
    this.#idle++
    this.#forgetOldest()
  }

  /** It had one beside those that wait. */
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
