import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  followEndedSessions,
  type EndedSession,
  type EndedSessions,
  type EndedSessionStore,
} from '../../../src/security/authentication/ended-sessions.ts'

/** A store whose database can be made unreachable. */
function createStore(): EndedSessionStore & { away: boolean; readonly stored: Map<string, EndedSession> } {
  const stored = new Map<string, EndedSession>()
  const store = {
    away: false,
    stored,
    async endedSessions() {
      if (store.away) throw new Error('away')
      return [...stored.values()]
    },
    async endSession(ended: EndedSession) {
      if (store.away) throw new Error('away')
      stored.set(ended.id, ended)
    },
  }
  return store
}

const HOUR = 3_600_000

describe('Ended sessions while the database does not answer', () => {
  const followed: EndedSessions[] = []
  afterEach(() => Promise.all(followed.splice(0).map((ended) => ended.stop())))

  async function follow(store: EndedSessionStore, now = Date.now): Promise<EndedSessions> {
    const ended = followEndedSessions(store, now, 5)
    followed.push(ended)
    await vi.waitFor(() => expect(ended.has('any')).toBe(false))
    return ended
  }

  it('end at once in this process, and in other processes when the database is back', async () => {
    const store = createStore()
    const [here, elsewhere] = [await follow(store), await follow(store)]
    store.away = true
    await expect(here.end({ id: 'one', expiresAt: Date.now() + HOUR })).rejects.toThrow('away')
    expect([here.has('one'), elsewhere.has('one')]).toEqual([true, false])
    store.away = false
    await vi.waitFor(() => expect([here.has('one'), elsewhere.has('one')]).toEqual([true, true]))
  })

  it('are stored when the process stops', async () => {
    const store = createStore()
    const here = await follow(store)
    store.away = true
    await expect(here.end({ id: 'one', expiresAt: Date.now() + HOUR })).rejects.toThrow('away')
    store.away = false
    await here.stop()
    expect([...store.stored.keys()]).toEqual(['one'])
  })

  it('are forgotten without storing when the session has expired', async () => {
    const store = createStore()
    let at = 0
    const here = await follow(store, () => at)
    store.away = true
    await expect(here.end({ id: 'one', expiresAt: 1000 })).rejects.toThrow('away')
    at = 2000
    store.away = false
    await vi.waitFor(() => expect(here.has('one')).toBe(false))
    expect(store.stored.size).toBe(0)
  })
})
