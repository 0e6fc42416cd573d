import type { QueryRows } from '../../events/projection.ts'
import type { Reachable } from './dependency-health.ts'

export type Need = 'log' | 'database'

/** What the start of a coordinator waits for, for those who ask it meanwhile. */
export interface StartNeeds {
  readonly log: Reachable
  readonly database: Reachable
  /** Waits for something of a need; when it takes long, or failed before, the need is away until it is done. */
  during<T>(need: Need, asked: () => Promise<T>): Promise<T>
  /** It said that it is away. */
  failed(need: Need): void
  /** From now on this is how things are. */
  follow(health: { readonly [need in Need]: Reachable }): void
  /** Reads the read models for polls, from when they may be asked. */
  read: QueryRows
}

/** A server that was stopped takes connections and says nothing: what takes so long is away. */
const LONG_MS = 1000

/** @param oneServer does the log lie in the database? */
export function createStartNeeds(oneServer: boolean): StartNeeds {
  const away: Record<Need, boolean> = { log: false, database: false }
  let followed: { readonly [need in Need]: Reachable } | undefined
  const is = (need: Need): Reachable => followed?.[need] ?? (away[need] || (oneServer && away.database) ? 'down' : 'up')
  return {
    get log() {
      return is('log')
    },
    get database() {
      return is('database')
    },
    async during(need, asked) {
      const timer = setTimeout(() => (away[need] = true), LONG_MS)
      try {
        const answer = await asked()
        away[need] = false
        return answer
      } finally {
        clearTimeout(timer)
      }
    },
    failed: (need) => void (away[need] = true),
    follow: (health) => void (followed = health),
    read: () => Promise.reject(new Error('The database was not asked yet')),
  }
}
