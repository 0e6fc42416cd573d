import type { QueryRows } from '../../events/projection.ts'
import type { Reachable } from '../health/dependency-health.ts'

export type Need = 'log' | 'database'

/** The state of the dependencies that a coordinator's start waits for, for clients that ask meanwhile. */
export interface StartNeeds {
  readonly log: Reachable
  readonly database: Reachable
  /**
   * Waits for an answer of a dependency. If it takes long, or failed before, the dependency counts as away until it is
   * done.
   */
  during<T>(need: Need, asked: () => Promise<T>): Promise<T>
  /** Records that a dependency reported that it is away. */
  failed(need: Need): void
  /** From now on takes the states from `health`. */
  follow(health: { readonly [need in Need]: Reachable }): void
  /** Reads the read models for polls, once they may be read. */
  read: QueryRows
}

/** A dependency that takes this long is away: a stopped server accepts connections and stays silent. */
const LONG_MS = 1000

/** @param oneServer whether the log is in the database */
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
    read: () => Promise.reject(new Error('The database was not tried yet')),
  }
}
