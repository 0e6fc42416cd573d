import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { planReplay, type FingerprintSample, type ReplayPlan } from '../../src/replay/replay-plan.ts'
import type { ListedQuery } from '../../src/replay/replay-source.ts'
import { openScratch, type ScratchResults } from '../../src/replay/scratch-results.ts'
import { temporaryFolder } from '../support/quipu-process.ts'

let folder: ReturnType<typeof temporaryFolder>
let scratch: ScratchResults
beforeAll(async () => {
  folder = temporaryFolder()
  scratch = await openScratch(folder.path)
})
afterAll(async () => {
  scratch.close()
  await folder.remove()
})

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items
}

async function planned(
  listed: readonly ListedQuery[],
  sample?: FingerprintSample,
  done: readonly string[] = [],
): Promise<{ readonly ids: readonly string[]; readonly coverage: ReplayPlan['coverage'] }> {
  const { connection } = scratch
  await connection.run(`DROP TABLE IF EXISTS listed; DROP TABLE IF EXISTS done; DROP TABLE IF EXISTS sampled;
    DROP TABLE IF EXISTS planned`)
  const plan = await planReplay(connection, each(listed), each(done.map((queryId) => ({ queryId }))), sample)
  const ids: string[] = []
  for await (const { queryId } of plan.queries()) ids.push(queryId)
  expect(plan.size).toBe(ids.length)
  return { ids, coverage: plan.coverage }
}

const listed = (queryId: string, second: number, fingerprint?: string, cpuMs?: number): ListedQuery => ({
  queryId,
  createdAt: new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString(),
  fingerprint,
  cpuMs,
})

it('a plan without a sample has the oldest queries first, without those that are done', async () => {
  const { ids, coverage } = await planned([listed('c', 3), listed('a', 1), listed('b', 2)], undefined, ['b'])
  expect(ids).toEqual(['a', 'c'])
  expect(coverage).toBeUndefined()
})

it('a sample has the most expensive, the most recent and the median statement, expensive fingerprints first', async () => {
  const large = [10, 50, 20, 30, 40].map((cpu, i) => listed(`large${cpu}`, i, 'v1-large', cpu))
  const small = [1, 2].map((cpu, i) => listed(`small${cpu}`, i, 'v1-small', cpu))
  const all = [...small, ...large, listed('unknown', 9, undefined, 47)]
  const { ids, coverage } = await planned(all, { each: 3, most: undefined })
  expect(ids).toEqual(['large50', 'small2', 'large40', 'small1', 'large30'])
  expect(coverage).toMatchObject({ statements: 5, fingerprints: 2, allFingerprints: 2, share: 153 / 200 })
  expect((await planned(all, { each: 3, most: 1 })).coverage).toMatchObject({ fingerprints: 1, share: 150 / 200 })
  // A continued replay has the rest of the same sample.
  expect((await planned(all, { each: 3, most: undefined }, ['large50', 'large40'])).ids).toEqual([
    'small2',
    'small1',
    'large30',
  ])
})

it('the coverage of a sample never falls with more statements, and no other fingerprints cover more', async () => {
  const query = fc.record({
    fingerprint: fc.constantFrom(undefined, 'a', 'b', 'c', 'd', 'e'),
    cpuMs: fc.integer({ min: 0, max: 1000 }),
    second: fc.integer({ min: 0, max: 50 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(query, { maxLength: 25 }), fc.integer({ min: 1, max: 4 }), async (drawn, most) => {
      const queries = drawn.map(({ fingerprint, cpuMs, second }, i) => listed(`q${i}`, second, fingerprint, cpuMs))
      const total = queries.reduce((sum, { cpuMs = 0 }) => sum + cpuMs, 0)
      const costs = new Map<string, number>()
      for (const { fingerprint, cpuMs = 0 } of queries)
        if (fingerprint !== undefined) costs.set(fingerprint, (costs.get(fingerprint) ?? 0) + cpuMs)
      const best = [...costs.values()].toSorted((a, b) => b - a)
      const covered = (count: number): number =>
        total === 0 ? 1 : best.slice(0, count).reduce((sum, cost) => sum + cost, 0) / total
      let before = 0
      for (let limit = 1; limit <= costs.size + 2; limit++) {
        const { ids, coverage } = await planned(queries, { each: most, most: limit })
        expect(new Set(ids).size).toBe(ids.length)
        // Representatives first: no fingerprint has a second statement before each has its first.
        const prints = ids.map((id) => queries.find(({ queryId }) => queryId === id)!.fingerprint)
        expect(new Set(prints.slice(0, costs.size)).size).toBe(Math.min(ids.length, costs.size))
        expect(coverage!.share).toBeCloseTo(covered(limit), 9)
        expect(coverage!.share).toBeGreaterThanOrEqual(before)
        before = coverage!.share
      }
    }),
    { numRuns: 25 },
  )
})
