import { setTimeout as sleep } from 'node:timers/promises'

/** Sessions that ended before they expired, stored in the database that all coordinators of a cluster share. */
export interface EndedSessionStore {
  /** Sessions that ended within the last `withinMs` milliseconds and have not expired; without a number all of them. */
  endedSessions(withinMs?: number): Promise<readonly EndedSession[]>
  endSession(ended: EndedSession): Promise<void>
}

export interface EndedSession {
  readonly id: string
  readonly expiresAt: number
}

/** The ended sessions that this process knows, in memory. */
export interface EndedSessions {
  /** Whether the session has ended. Undefined until the first read of the database: not known yet. */
  has(id: string): boolean | undefined
  /**
   * Ends a session: at once in this process, within two seconds in the other coordinators.
   * @throws when the database does not take it; this process then stores it as soon as the database is back
   */
  end(session: EndedSession): Promise<void>
  stop(): Promise<void>
}

/**
 * Interval between two reads of the database: other coordinators learn of a log-out within this time plus the time of
 * the query.
 */
const LOOK_EVERY_MS = 2000
/** A statement that ends a session may take this long to commit, so the periods that are read overlap by it. */
const OVERLAP_MS = 60_000
/**
 * Log-outs that wait for the database. Beyond this number this process still knows them, but does not store them later.
 */
const MOST_UNSTORED = 10_000

/**
 * Follows the ended sessions in the database.
 * @param lookEveryMs interval between two reads of the database
 */
export function followEndedSessions(
  store: EndedSessionStore,
  now: () => number,
  lookEveryMs = LOOK_EVERY_MS,
): EndedSessions {
  const ended = new Map<string, number>()
  const unstored = new Map<string, EndedSession>()
  const stopping = new AbortController()
  let lookedAt: number | undefined

  async function reload(): Promise<void> {
    const at = now()
    const since = lookedAt === undefined ? undefined : at - lookedAt + OVERLAP_MS
    for (const { id, expiresAt } of await store.endedSessions(since)) ended.set(id, expiresAt)
    lookedAt = at
    for (const [id, expiresAt] of ended) if (expiresAt < at) ended.delete(id)
  }

  async function keep(session: EndedSession): Promise<void> {
    await store.endSession(session)
    unstored.delete(session.id)
  }

  async function storeRest(): Promise<void> {
    for (const session of unstored.values()) {
      if (session.expiresAt < now()) unstored.delete(session.id)
      else await keep(session)
    }
  }

  const looking = (async () => {
    while (!stopping.signal.aborted) {
      await storeRest().catch(() => {})
      // Sessions that are known stay known while the database is unreachable.
      await reload().catch(() => {})
      await sleep(lookEveryMs, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
    }
  })()

  return {
    has: (id) => ended.has(id) || (lookedAt === undefined ? undefined : false),
    async end(session) {
      ended.set(session.id, session.expiresAt)
      if (unstored.size < MOST_UNSTORED) unstored.set(session.id, session)
      await keep(session)
    },
    async stop() {
      stopping.abort()
      await looking
      await storeRest().catch(() => {})
    },
  }
}
