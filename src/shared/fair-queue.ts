/** Whose turn something is. Anybody may go by many names: where they come from counts first. */
export interface TurnOwner {
  readonly address: string
  readonly user: string
}

/**
 * A queue in which addresses take turns, and of one address its users; what is of one user goes in the order of its coming.
 * So somebody who has one thing waits for as many others as there are addresses and users, however much each of them has.
 */
export class FairQueue<T> {
  /** By address and user. A map keeps the order of its keys: whose turn was moves to the end. */
  readonly #turns = new Map<string, Map<string, Set<{ readonly item: T }>>>()
  #length = 0

  get length(): number {
    return this.#length
  }

  /** How many of a user wait. */
  lengthOf({ address, user }: TurnOwner): number {
    return this.#turns.get(address)?.get(user)?.size ?? 0
  }

  /** @returns takes it out again; does nothing when its turn has come */
  push({ address, user }: TurnOwner, item: T): () => void {
    const users = valueOf(this.#turns, address, () => new Map<string, Set<{ readonly item: T }>>())
    const own = valueOf(users, user, () => new Set<{ readonly item: T }>())
    const entry = { item }
    own.add(entry)
    this.#length++
    return () => {
      if (!own.delete(entry)) return
      this.#length--
      if (own.size === 0 && users.get(user) === own) users.delete(user)
      if (users.size === 0 && this.#turns.get(address) === users) this.#turns.delete(address)
    }
  }

  /** What is next; it waits no more. */
  shift(): T | undefined {
    const [address, users] = firstOf(this.#turns) ?? []
    if (address === undefined || !users) return undefined
    const [user, own] = firstOf(users)!
    const [entry] = own
    own.delete(entry!)
    this.#length--
    users.delete(user)
    if (own.size > 0) users.set(user, own)
    this.#turns.delete(address)
    if (users.size > 0) this.#turns.set(address, users)
    return entry!.item
  }
}

function firstOf<K, V>(map: ReadonlyMap<K, V>): [K, V] | undefined {
  for (const entry of map) return entry
  return undefined
}

function valueOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key)
  if (value === undefined) map.set(key, (value = make()))
  return value
}
