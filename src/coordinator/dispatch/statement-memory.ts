import { formatSize } from '../../shared/durations.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { SlotOwner } from '../../shared/fair-queue.ts'

/** The part of this process's memory that one statement holds. */
export interface HeldMemory {
  /** The owner whose limits it counts against. */
  readonly owner: SlotOwner
  /** Bytes held now. */
  readonly bytes: number
  /**
   * Holds this many bytes more. A small amount is always granted, so that a user that exhausts the limits does not harm
   * accepted statements.
   * @returns a function that releases the bytes, once
   * @throws EngineError EXCEEDED_GLOBAL_MEMORY_LIMIT when that is too much: the statement keeps the bytes that it held
   */
  more(bytes: number): () => void
  /** Releases everything; later calls do nothing, and no more bytes are held. */
  release(): void
}

export interface StatementMemoryLimits {
  /** The limit for all open statements together, bytes. */
  readonly totalBytes: number
  readonly userBytes: number
  readonly addressBytes: number
}

/** The memory of open statements, limited in all, for each user, and for each address of unknown users. */
export interface StatementMemory {
  /** @throws EngineError TOO_MANY_REQUESTS_FAILED when one of the limits is reached; `later` if waiting can help */
  hold(owner: SlotOwner, bytes: number): HeldMemory
  /**
   * Holds memory for a query that an earlier coordinator accepted: only such queries count against the total limit.
   * @param needed true when the query cannot be ended instead
   * @returns undefined when it is too much
   */
  holdRecovered(owner: SlotOwner, bytes: number, needed: boolean): HeldMemory | undefined
  readonly heldBytes: number
}

/** Bytes that an accepted statement always gets: for a small plan and a small result. */
const ALWAYS_GIVEN = 16 * 1024

export function createStatementMemory(limits: StatementMemoryLimits): StatementMemory {
  let total = 0
  let recovered = 0
  const users = createTally()
  const addresses = createTally()

  function take({ user, address, known }: SlotOwner, bytes: number): void {
    total += bytes
    users.add(user, bytes)
    if (!known) addresses.add(address, bytes)
  }

  /** The limit that forbids this many bytes more; undefined when none does. */
  function obstacle({ user, address, known }: SlotOwner, bytes: number): string | undefined {
    if (total + bytes > limits.totalBytes) return `All open statements take ${of(total, limits.totalBytes)}`
    if (users.of(user) + bytes > limits.userBytes)
      return `The open statements of this user take ${of(users.of(user), limits.userBytes)}`
    if (!known && addresses.of(address) + bytes > limits.addressBytes)
      return `The open statements of this address take ${of(addresses.of(address), limits.addressBytes)}`
    return undefined
  }

  /** Whether the limits allow this many bytes while no other statement is open. */
  function fitsAlone({ known }: SlotOwner, bytes: number): boolean {
    return bytes <= Math.min(limits.totalBytes, limits.userBytes, known ? Infinity : limits.addressBytes)
  }

  function held(owner: SlotOwner, first: number, onRelease: () => void): HeldMemory {
    let bytes = 0
    let open = true
    const change = (by: number): void => {
      bytes += by
      take(owner, by)
    }
    change(first)
    return {
      owner,
      get bytes() {
        return bytes
      },
      more(wanted) {
        if (!open) return () => {}
        const reason = bytes - first + wanted > ALWAYS_GIVEN ? obstacle(owner, wanted) : undefined
        if (reason !== undefined)
          throw new EngineError(
            'EXCEEDED_GLOBAL_MEMORY_LIMIT',
            `${reason}; this one needs ${formatSize(wanted)} more for its plan or result`,
          )
        change(wanted)
        let given = true
        return () => {
          if (given && open) change(-wanted)
          given = false
        }
      },
      release() {
        if (!open) return
        open = false
        change(-bytes)
        onRelease()
      },
    }
  }

  return {
    hold(owner, bytes) {
      const reason = obstacle(owner, bytes)
      if (reason !== undefined)
        throw new EngineError('TOO_MANY_REQUESTS_FAILED', `${reason}: take or cancel their results, or wait`, {
          retry: fitsAlone(owner, bytes) ? 'later' : 'never',
        })
      return held(owner, bytes, () => {})
    },
    holdRecovered(owner, bytes, needed) {
      if (!needed && recovered + bytes > limits.totalBytes) return undefined
      recovered += bytes
      return held(owner, bytes, () => (recovered -= bytes))
    },
    get heldBytes() {
      return total
    },
  }
}

function of(bytes: number, limit: number): string {
  return `${formatSize(bytes)} of at most ${formatSize(limit)}`
}

/** Sums by name; a name with sum 0 is removed. */
function createTally() {
  const sums = new Map<string, number>()
  return {
    of: (name: string): number => sums.get(name) ?? 0,
    add(name: string, bytes: number): void {
      const sum = (sums.get(name) ?? 0) + bytes
      if (sum > 0) sums.set(name, sum)
      else sums.delete(name)
    },
  }
}
