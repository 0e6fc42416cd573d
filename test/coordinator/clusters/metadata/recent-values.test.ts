import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readingFor } from '../../../../src/coordinator/clusters/metadata/current-statement.ts'
import { NotWanted } from '../../../../src/coordinator/clusters/metadata/read-queue.ts'
import { createRecentValues } from '../../../../src/coordinator/clusters/metadata/recent-values.ts'

it('recent values take bounded memory: the values that were used longest ago are forgotten', async () => {
  const weights = fc.constantFrom(0, 1_000, 90_000, 150_000, 500_000)
  const uses = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), weights), { maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(uses, async (all) => {
      const values = createRecentValues<number>({ weightOf: (value) => value, mostBytes: 200_000, now: () => 0 })
      /** The model: in the order of use, the last at the end. */
      let kept: { readonly schema: string; readonly weight: number }[] = []
      for (const [schema, weight] of all) {
        let isRead = false
        const value = await values.get({ catalog: 'hive', schema }, async () => {
          isRead = true
          return weight
        })
        const known = kept.find((one) => one.schema === schema)
        expect({ isRead, value }).toEqual({ isRead: known === undefined, value: known?.weight ?? weight })
        kept = [...kept.filter((one) => one !== known), known ?? { schema, weight }]
        while (kept.length > 1 && kept.reduce((sum, one) => sum + one.weight, 0) > 199_000) kept.shift()
      }
    }),
  )
})

it('recent values with long names in their scope take the memory of the names', async () => {
  const values = createRecentValues<number>({ weightOf: () => 0, mostBytes: 100_000, now: () => 0 })
  const named = (letter: string) => ({ catalog: 'hive', table: letter.repeat(20_000) })
  for (const letter of ['a', 'b', 'c']) await values.get(named(letter), async () => 1)
  expect(['a', 'b', 'c'].map((letter) => values.fresh(named(letter)))).toEqual([undefined, 1, 1])
})

it('recent values that are too old to be given are forgotten', async () => {
  let clock = 0
  const values = createRecentValues<string>({ weightOf: () => 0, mostBytes: 1_000_000, now: () => clock })
  await values.get({ catalog: 'old' }, async () => 'old')
  clock = 600_000
  await values.get({ catalog: 'new' }, async () => 'new')
  const never = (): Promise<string> => new Promise(() => {})
  expect(values.last({ catalog: 'old' }, never)).toBeUndefined()
  expect(values.last({ catalog: 'new' }, never)).toBe('new')
})

it('a read of a recent value is no longer wanted once all statements that wait for it have ended', async () => {
  const values = createRecentValues<string>({ weightOf: () => 0, mostBytes: 1_000_000, now: () => 0 })
  const statements = [new AbortController(), new AbortController()]
  let reads = 0
  const read = (unwanted: AbortSignal): Promise<string> => {
    reads++
    return new Promise((_resolve, reject) => unwanted.addEventListener('abort', () => reject(new NotWanted())))
  }
  const waits = statements.map(({ signal }) => readingFor(signal, () => values.get({ catalog: 'hive' }, read)))
  statements[0]!.abort()
  const states = await Promise.race([Promise.all(waits), new Promise((resolve) => setImmediate(resolve, 'waits'))])
  expect({ states, reads }).toEqual({ states: 'waits', reads: 1 })
  statements[1]!.abort()
  // A statement that comes before the read has ended gets a read of its own.
  const later = values.get({ catalog: 'hive' }, async () => 'read')
  expect(await Promise.allSettled(waits)).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }])
  expect(await later).toBe('read')
})
