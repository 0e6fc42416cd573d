import { FairQueue, type SlotOwner } from '../../shared/fair-queue.ts'
import { Shares } from '../../shared/shares.ts'

/**
 * Work that a machine can do little of at once: so many run, so many wait, more are told so. Addresses take turns, and none
 * has all the places, so that who sends much at once waits for himself.
 */
export interface BoundedWork {
  /**
   * @param network whose work it is, as `networkOf` has it
   * @returns undefined, having begun nothing, when too many wait already, or too many of his
   */
  run<T>(network: string, work: () => Promise<T>): Promise<T> | undefined
}

export function createBoundedWork(atOnce: number, mostWaiting: number): BoundedWork {
  const waiting = new FairQueue<() => void>()
  const places = new Shares()
  const slotsToWait = new Shares()
  let running = 0

  function giveSlots(): void {
    while (running < atOnce) {
      const begin = waiting.shift(places.among(atOnce - running))
      if (!begin) return
      begin()
    }
  }

  async function begun<T>(owner: SlotOwner, work: () => Promise<T>): Promise<T> {
    running++
    const leave = places.take(owner)
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
      // By name nobody is counted: many guess at the same one.
      const owner = { address: network, user: network }
      if (waiting.lengthOf(owner) === 0 && places.may(owner, atOnce - running)) {
        waiting.passed(owner)
        return begun(owner, work)
      }
      return slotsToWait.may(owner, mostWaiting - waiting.length) ? later(owner, work) : undefined
    },
  }
}
