import { FairQueue } from '../../../shared/fair-queue.ts'
import { QuipuError } from '../../../shared/quipu-error.ts'

/** A read found too many other reads in the queue, or waited too long for them. */
export class QueueFull extends QuipuError {
  readonly retry = 'later'
}

/** A read left the queue: nothing needs its value any more. */
export class NotWanted extends QuipuError {
  readonly retry = 'anew'
}

export interface ReadQueueOptions {
  /** How many reads run at a time. */
  readonly atOnce: number
  /** How many reads may wait. */
  readonly mostWaiting: number
  /** How many reads of one user may wait. */
  readonly mostWaitingOfUser: number
  /** Milliseconds, monotonic. */
  readonly now: () => number
}

/** Lets a number of reads run at a time. The users of the reads that wait take turns. */
export class ReadQueue {
  readonly #options: ReadQueueOptions
  readonly #waiting = new FairQueue<() => void>()
  #running = 0

  constructor(options: ReadQueueOptions) {
    this.#options = options
  }

  /**
   * Runs a read as soon as there is room.
   * @param user undefined: the user of this gateway
   * @param withinMs how long the read may take, milliseconds, with the time that it waits for room
   * @param read gets the milliseconds that are left
   * @param unwanted when it aborts, a read that waits leaves the queue
   * @throws QueueFull when too many reads wait, or there was no room in time; NotWanted
   */
  async run<T>(
    user: string | undefined,
    withinMs: number,
    read: (leftMs: number) => Promise<T>,
    unwanted?: AbortSignal,
  ): Promise<T> {
    const { now } = this.#options
    const startMs = now()
    await this.#room(user, withinMs, unwanted)
    try {
      return await read(Math.max(1, Math.ceil(withinMs - (now() - startMs))))
    } finally {
      // The next read gets the room of the read that ends.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running--
    }
  }

  async #room(user: string | undefined, withinMs: number, unwanted: AbortSignal | undefined): Promise<void> {
    if (unwanted?.aborted) throw new NotWanted()
    const { atOnce, mostWaiting, mostWaitingOfUser } = this.#options
    const owner = { address: '', user: user ?? '' }
    if (this.#running < atOnce) {
      this.#running++
      this.#waiting.passed(owner)
      return
    }
    if (this.#waiting.length >= mostWaiting) throw new QueueFull(`${mostWaiting} statements wait`)
    if (user !== undefined && this.#waiting.lengthOf(owner) >= mostWaitingOfUser)
      throw new QueueFull(`${mostWaitingOfUser} statements of the user wait`)
    await new Promise<void>((resolve, reject) => {
      const stopWaiting = (): void => {
        clearTimeout(timer)
        unwanted?.removeEventListener('abort', onAbort)
      }
      const leave = this.#waiting.push(owner, () => {
        stopWaiting()
        resolve()
      })
      const giveUp = (error: Error): void => {
        stopWaiting()
        leave()
        reject(error)
      }
      const onAbort = (): void => giveUp(new NotWanted())
      const timer = setTimeout(() => giveUp(new QueueFull(`other statements took ${withinMs} ms`)), withinMs)
      unwanted?.addEventListener('abort', onAbort)
    })
  }
}
