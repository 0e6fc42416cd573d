import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createFollowerSightings, type FollowerSightings } from '../../../src/processes/health/follower-sightings.ts'
import type { SightingReport } from '../../../src/protocol/relay/sighting-report.ts'
import type { Logger } from '../../../src/telemetry/logger.ts'

const logger = { warn: () => {}, info: () => {} } as unknown as Logger
let sent: SightingReport[]
let answers: boolean
let learned: unknown[]
let sightings: FollowerSightings
beforeEach(() => {
  vi.useFakeTimers()
  sent = []
  answers = true
  learned = []
  sightings = createFollowerSightings({
    logger,
    post: async (report) => {
      if (!answers) throw new Error('nobody writes')
      sent.push(report)
      return { remembered: report.failures.map(([key, times]) => [key, times * 10_000]) }
    },
    mergeFailures: (remembered) => learned.push(...remembered),
  })
})
afterEach(async () => {
  vi.useRealTimers()
})

const KEY = `user-${'a'.repeat(43)}`
const refuse = (user: string): void => sightings.refusals.authenticationFailed({ user, method: 'password' })

it('a follower sends its sightings together after a second, and merges the failures that the writer returns', async () => {
  refuse('alice')
  refuse('alice')
  sightings.failures.failed([KEY])
  sightings.failures.forgiven(KEY)
  sightings.failures.failed([KEY])
  expect(sent).toEqual([])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(sent).toMatchObject([{ sightings: [{ count: 2 }], failures: [[KEY, 1]], forgiven: [KEY] }])
  expect(learned).toEqual([[KEY, 10_000]])
  await vi.advanceTimersByTimeAsync(60_000)
  expect(sent.length).toBe(1)
})

it('a follower keeps sightings within bounds while there is no writer, and then loses none of these', async () => {
  answers = false
  for (let user = 0; user < 5_000; user++) refuse(`u${user}`)
  for (let index = 0; index < 20_000; index++) sightings.failures.failed([`user-${String(index).padStart(43, 'x')}`])
  await vi.advanceTimersByTimeAsync(30_000)
  answers = true
  await vi.advanceTimersByTimeAsync(30_000)
  const counts = sent.flatMap((report) => report.sightings.map(({ count }) => count))
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(5_000)
  expect(counts.length).toBeLessThanOrEqual(1_001)
  expect(sent.flatMap(({ failures }) => failures).length).toBe(10_000)
  for (const report of sent) expect(JSON.stringify(report).length).toBeLessThan(1024 * 1024)
})

it('a follower sends its remaining sightings when it stops', async () => {
  refuse('alice')
  await Promise.all([sightings.refusals.stop(), vi.advanceTimersByTimeAsync(2_000)])
  expect(sent.length).toBe(1)
})
