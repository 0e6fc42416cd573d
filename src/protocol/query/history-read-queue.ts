import { EngineError } from '../../shared/engine-error.ts'
import { FairQueue, type SlotOwner } from '../../shared/fair-queue.ts'

/** The most statements that read history at once: each has its own connection. */
export const HISTORY_READS = 3
/** The most statements that read `system.runtime` at once: each holds some megabytes. */
export const RUNTIME_READS = 3
/** The same for one owner, so that a slot is left for others. */
const READS_OF_ONE = 2

/** Queues statements that read system tables. Owners take turns, however often one of them asks. */
export interface HistoryReadQueue {
  /**
   * Waits for a slot.
   * @returns releases the slot; may be called twice
   * @throws EngineError EXCEEDED_TIME_LIMIT when no slot was free in time
   */
  take(owner: SlotOwner): Promise<() => void>
}

export interface HistoryReadLimits {
  readonly atOnce: number
  /** Longest wait for a slot, milliseconds. */
  readonly waitMs: number
  /** The thing that is read, as an error names it: `The history`. */
  readonly what: string
}

export function createHistoryReadQueue({ atOnce, waitMs, what }: HistoryReadLimits): HistoryReadQueue {
  const running = new Map<string, number>()
  const waiting = new FairQueue<() => void>()
  let all = 0
  const may = (address: string): boolean => all < atOnce && (running.get(address) ?? 0) < READS_OF_ONE

  function begin({ address }: SlotOwner): () => void {
    all++
    running.set(address, (running.get(address) ?? 0) + 1)
    let ended = false
    return () => {
      if (ended) return
      ended = true
      all--
      const left = (running.get(address) ?? 1) - 1
      if (left === 0) running.delete(address)
      else running.set(address, left)
      waiting.shift({ address: may, user: () => true })?.()
    }
  }

  return {
    take(owner) {
      if (may(owner.address)) {
        waiting.passed(owner)
        return Promise.resolve(begin(owner))
      }
      return new Promise((resolve, reject) => {
        const leave = waiting.push(owner, () => {
          clearTimeout(timer)
          resolve(begin(owner))
        })
        const timer = setTimeout(() => {
          leave()
          reject(new EngineError('EXCEEDED_TIME_LIMIT', `Other users are reading ${what}: try again later`))
        }, waitMs)
      })
    },
  }
}
