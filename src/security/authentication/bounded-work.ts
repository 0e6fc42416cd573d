import { FairQueue, type SlotOwner } from '../../shared/fair-queue.ts'
import { Shares } from '../../shared/shares.ts'

/**
 * Limits work of which a machine can do little at the same time. A limited number of jobs runs, a limited number waits,
 * further ones are refused. Networks take turns, and no network gets all slots: a client that sends much at once waits
 * for its own work.
 */
export interface BoundedWork {
  /**
   * Starts the work or queues it.
   * @param network the network that the work is for, as `networkOf` returns it
   * @returns undefined, without starting anything, when too many jobs wait already, in all or from this network
   */
  run<T>(network: string, work: () => Promise<T>): Promise<T> | undefined
}

export function createBoundedWork(atOnce: number, mostWaiting: number): BoundedWork {
  const waiting = new FairQueue<() => void>()
  const slots = new Shares()
  const slotsToWait = new Shares()
  let running = 0

  function giveSlots(): void {
    while (running < atOnce) {
      const begin = waiting.shift(slots.among(atOnce - running))
      if (!begin) return
      begin()
    }
  }

  async function begun<T>(owner: SlotOwner, work: () => Promise<T>): Promise<T> {
    running++
    const leave = slots.take(owner)
    try {
      return await work()
    } finally {
      running--
      leave()
      giveSlots()
    }
  }

  function later<T>(owner: SlotOwner, work: () => Promise<T>): Promise<T> {
    const leave = slotsToWait.take(owner)
    return new Promise((resolve) => {
      waiting.push(owner, () => {
        leave()
        resolve(begun(owner, work))
      })
    })
  }

  return {
    run(network, work) {
      // The name does not count here: many clients may guess at the same name.
      const owner = { address: network, user: network }
      if (waiting.lengthOf(owner) === 0 && slots.may(owner, atOnce - running)) {
        waiting.passed(owner)
        return begun(owner, work)
      }
      return slotsToWait.may(owner, mostWaiting - waiting.length) ? later(owner, work) : undefined
    },
  }
}
