import { Worker } from 'node:worker_threads'
import type { Delivery, Destination, Message } from './publication.ts'

/**
 * A message to the thread: messages to deliver, or the order to close. The thread answers each delivery with its
 * outcome.
 */
export type ThreadTask = readonly Message[] | 'close'

/** More than a batch and its copies need. */
const RESOURCES = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 16 }
const CLOSE_MS = 1_000

/**
 * A destination in a thread of its own, so that requests, encryption and client libraries do not delay statements. If
 * the thread ends by itself, the next delivery starts it again.
 * @param program of the thread
 * @param settings passed to the thread
 */
export function threadedDestination(program: URL, settings: unknown, env: NodeJS.ProcessEnv): Destination {
  let thread: Worker | undefined
  let answer: ((delivery: Delivery) => void) | undefined
  let closed = false

  function settle(delivery: Delivery): void {
    answer?.(delivery)
    answer = undefined
  }
  const trouble = (text: string): Delivery => ({ taken: 0, refused: [], trouble: text })

  function begin(): Worker {
    const begun = new Worker(program, { workerData: settings, env, resourceLimits: RESOURCES })
    begun.unref()
    begun.on('message', settle)
    begun.on('error', (error) => settle(trouble(error.message)))
    begun.on('exit', () => {
      if (thread === begun) thread = undefined
      settle(trouble('The thread that publishes ended'))
    })
    return begun
  }

  return {
    deliver(messages) {
      if (closed) return Promise.resolve(trouble('Publishing is closed'))
      return new Promise((resolve) => {
        answer = resolve
        thread ??= begin()
        thread.postMessage(messages satisfies ThreadTask)
      })
    },
    async close() {
      closed = true
      const last = thread
      if (!last) return
      last.postMessage('close' satisfies ThreadTask)
      let late: NodeJS.Timeout | undefined
      await Promise.race([
        new Promise((resolve) => last.once('exit', resolve)),
        new Promise((resolve) => (late = setTimeout(resolve, CLOSE_MS))),
      ])
      clearTimeout(late)
      await last.terminate()
      settle(trouble('Publishing is closed'))
    },
  }
}
