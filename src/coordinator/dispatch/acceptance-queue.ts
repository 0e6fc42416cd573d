import { EngineError } from '../../shared/engine-error.ts'
import { FairQueue, type SlotOwner } from '../../shared/fair-queue.ts'
import { Shares } from '../../shared/shares.ts'

export interface AcceptanceLimits {
  /** How many statements may be in acceptance at once: being planned, and written to the log. */
  readonly atOnce: number
  /**
   * A statement of at least `longBytes` is long; of the statements in acceptance at most `longAtOnce` are long. Each
   * commit of the log takes only one long statement.
   */
  readonly longBytes: number
  readonly longAtOnce: number
  /** How many statements may wait for acceptance, in all and of one user. */
  readonly waiting: number
  readonly waitingOfUser: number
  /** The longest wait, milliseconds. */
  readonly waitMs: number
}

/**
 * Limits how many statements are accepted at once. A user that posts a thousand statements waits only for itself, and
 * other users get their turns in between.
 */
export interface AcceptanceQueue {
  /**
   * Takes a turn.
   * @param bytes of the statement
   * @returns a function that ends the turn, once; a promise of it when others come first
   * @throws EngineError TOO_MANY_REQUESTS_FAILED when too many wait, or the wait took too long: also as a rejection
   */
  take(owner: SlotOwner, bytes: number): (() => void) | Promise<() => void>
}

export function createAcceptanceQueue(limits: AcceptanceLimits): AcceptanceQueue {
  const all = createSlots(limits)
  const long = createSlots({ ...limits, atOnce: limits.longAtOnce })

  async function takeLong(owner: SlotOwner): Promise<() => void> {
    const endLong = await long(owner)
    try {
      const end = await all(owner)
      return () => {
        end()
        endLong()
      }
    } catch (error) {
      endLong()
      throw error
    }
  }

  return { take: (owner, bytes) => (bytes < limits.longBytes ? all(owner) : takeLong(owner)) }
}

type TakeSlot = (owner: SlotOwner) => (() => void) | Promise<() => void>

function createSlots(limits: Omit<AcceptanceLimits, 'longBytes' | 'longAtOnce'>): TakeSlot {
  const waiting = new FairQueue<() => void>()
  const shares = new Shares()
  let running = 0

  function begin(owner: SlotOwner): () => void {
    running++
    const leave = shares.take(owner)
    let open = true
    return () => {
      if (!open) return
      open = false
      running--
      leave()
      giveSlots()
    }
  }

  function giveSlots(): void {
    while (running < limits.atOnce) {
      const next = waiting.shift(shares.among(limits.atOnce - running))
      if (!next) return
      next()
    }
  }

  return (owner) => {
    if (waiting.lengthOf(owner) === 0 && shares.may(owner, limits.atOnce - running)) {
      waiting.passed(owner)
      return begin(owner)
    }
    if (waiting.length >= limits.waiting || waiting.lengthOf(owner) >= limits.waitingOfUser)
      throw new EngineError(
        'TOO_MANY_REQUESTS_FAILED',
        'Too many statements are waiting to be accepted: try again later',
      )
    return new Promise((resolve, reject) => {
      const leave = waiting.push(owner, () => {
        clearTimeout(late)
        resolve(begin(owner))
      })
      const late = setTimeout(() => {
        leave()
        reject(new EngineError('TOO_MANY_REQUESTS_FAILED', 'The statement was not accepted in time: try again later'))
      }, limits.waitMs)
    })
  }
}
