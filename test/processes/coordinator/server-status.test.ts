import { describe, expect, it } from 'vitest'
import { statusOf, type StatusDeps } from '../../../src/processes/health/server-status.ts'

const lag = { events: 3, oldestMillis: 40 }
const parts = (given: Partial<StatusDeps> = {}): StatusDeps => ({
  health: { log: 'up', database: 'up' },
  projection: { lag: async () => lag, condition: { kind: 'following' } },
  restarts: () => [
    { process: 'coordinator', reason: 'exit', count: 2 },
    { process: 'coordinator', reason: 'hang', count: 1 },
    { process: 'worker', reason: 'exit', count: 7 },
  ],
  workers: { nodes: () => [{ state: 'active' }, { state: 'suspect' }, { state: 'active' }] as never },
  writing: { deadLetters: () => 5, openQueries: () => 6 },
  ...given,
})

describe('The status of a coordinator', () => {
  it('combines the values of its parts', async () => {
    expect(await statusOf(parts())).toEqual({
      log: 'up',
      database: 'up',
      lag,
      projection: { state: 'following' },
      deadLetters: 5,
      restarts: 3,
      workers: { active: 2, suspect: 1, failed: 0 },
      openQueries: 6,
    })
  })

  it('has zero dead letters and open queries on a follower, which does not know them', async () => {
    const status = await statusOf(parts({ writing: undefined, projection: { lag: async () => lag } }))
    expect(status).toMatchObject({ deadLetters: 0, openQueries: 0, lag })
    expect(status).not.toHaveProperty('projection')
  })

  it('leaves out the lag when the log is down and the lag is unknown', async () => {
    const health = { log: 'down', database: 'up' } as const
    const never = { lag: () => new Promise<never>(() => {}) }
    const refused = { lag: () => Promise.reject(new Error('away')) }
    for (const projection of [never, refused]) {
      const status = await statusOf(parts({ health, projection, lagWaitMs: 1 }))
      expect(status).toMatchObject({ log: 'down' })
      expect(status).not.toHaveProperty('lag')
    }
  })

  it('has the time and the reason when a projection has stopped', async () => {
    const condition = { kind: 'stopped', since: '2026-01-01T00:00:00.000Z', reason: 'another log' } as const
    expect(await statusOf(parts({ projection: { lag: async () => lag, condition } }))).toMatchObject({
      projection: { state: 'stopped', since: condition.since, reason: 'another log' },
    })
  })
})
