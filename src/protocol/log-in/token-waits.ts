import { setTimeout as sleep } from 'node:timers/promises'
import type { LogInStore } from '../../security/authentication/log-in-store.ts'

/** The answer to a program that waits for its log-in. */
export type LogInOutcome =
  | { readonly kind: 'ended'; readonly outcome: string }
  /** The token was given before. */
  | { readonly kind: 'taken' }
  | { readonly kind: 'waiting' }
  /** Too many programs wait. */
  | { readonly kind: 'full' }

/** Programs that wait for a log-in to end. One query to the database serves all of them. */
export interface TokenWaits {
  /** @throws errors of the database */
  wait(id: Buffer, address: string, signal: AbortSignal): Promise<LogInOutcome>
  /** Ends all waits. The programs ask again, at the next coordinator. */
  stop(): void
  stopped(): boolean
}

/** Clients depend on this time: the Python client gives up after five answers. */
const WAIT_MS = 10_000
const LOOK_EVERY_MS = 250
const MOST = 2_000
/** Users are not known before they log in, so an address is limited: to this many waiting slots for each free one. */
const OF_EACH_FREE = 3

interface Waiting {
  readonly id: Buffer
  readonly address: string
  end(outcome: LogInOutcome): void
  fail(error: unknown): void
}

export function createTokenWaits(store: () => Pick<LogInStore, 'take'>): TokenWaits {
  const waiting = new Set<Waiting>()
  let looking = false
  let stopped = false

  async function check(): Promise<void> {
    if (looking) return
    looking = true
    while (waiting.size > 0) {
      const asked = [...waiting]
      try {
        for (const { id, outcome } of await store().take(asked.map((one) => one.id))) give(id, outcome)
      } catch (error) {
        for (const one of asked) one.fail(error)
      }
      if (waiting.size > 0) await sleep(LOOK_EVERY_MS)
    }
    looking = false
  }

  /** Gives the outcome to one of the requests that wait for it; the others get `taken`. */
  function give(id: Buffer, outcome: string | undefined): void {
    let left = outcome
    for (const one of waiting) {
      if (!one.id.equals(id)) continue
      one.end(left === undefined ? { kind: 'taken' } : { kind: 'ended', outcome: left })
      left = undefined
    }
  }

  return {
    wait(id, address, signal) {
      if (stopped) return Promise.resolve({ kind: 'waiting' })
      const here = [...waiting].filter((one) => one.address === address).length
      if (waiting.size >= MOST || here > OF_EACH_FREE * (MOST - waiting.size)) return Promise.resolve({ kind: 'full' })
      return new Promise((resolve, reject) => {
        const over = (): void => one.end({ kind: 'waiting' })
        const timer = setTimeout(over, WAIT_MS)
        const leave = (): void => {
          waiting.delete(one)
          clearTimeout(timer)
          signal.removeEventListener('abort', over)
        }
        const one: Waiting = {
          id,
          address,
          end(outcome) {
            leave()
            resolve(outcome)
          },
          fail(error) {
            leave()
            reject(error)
          },
        }
        waiting.add(one)
        signal.addEventListener('abort', over)
        void check()
      })
    },
    stopped: () => stopped,
    stop() {
      stopped = true
      for (const one of waiting) one.end({ kind: 'waiting' })
    },
  }
}
