import { setTimeout as sleep } from 'node:timers/promises'

/** Sessions that were ended before their time, as the coordinators of a cluster tell each other of them. */
export interface EndedSessionStore {
  /** Those that ended within so many milliseconds, and whose own time is not over; all of them without a number. */
  endedSessions(withinMs?: number): Promise<readonly EndedSession[]>
  endSession(ended: EndedSession): Promise<void>
}

export interface EndedSession {
  readonly id: string
  readonly expiresAt: number
}

/** What this process knows of them, in memory. */
export interface EndedSessions {
  /** Undefined until the first look: nobody can say yet. */
  has(id: string): boolean | undefined
  /** At once here, within two seconds elsewhere. @throws when it cannot be kept */
  end(session: EndedSession): Promise<void>
  stop(): Promise<void>
}

/** The others learn of a log-out within so long, and the time of a question. */
const LOOK_EVERY_MS = 2000
/** A statement that ends a session may be so slow: what is looked at overlaps. */
const OVERLAP_MS = 60_000

export function followEndedSessions(store: EndedSessionStore, now: () => number): EndedSessions {
  const ended = new Map<string, number>()
  const stopping = new AbortController()
  let lookedAt: number | undefined

  async function look(): Promise<void> {
    const at = now()
    const since = lookedAt === undefined ? undefined : at - lookedAt + OVERLAP_MS
    for (const { id, expiresAt } of await store.endedSessions(since)) ended.set(id, expiresAt)
    lookedAt = at
    for (const [id, expiresAt] of ended) if (expiresAt < at) ended.delete(id)
  }

  const looking = (async () => {
    while (!stopping.signal.aborted) {
      // What is known stays known while the database is away.
      await look().catch(() => {})
      await sleep(LOOK_EVERY_MS, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
    }
  })()

  return {
    has: (id) => ended.has(id) || (lookedAt === undefined ? undefined : false),
    async end(session) {
      ended.set(session.id, session.expiresAt)
      await store.endSession(session)
    },
    async stop() {
      stopping.abort()
      await looking
    },
  }
}
