import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { makeAnchor, type Anchor, type AnchorKey } from '../../../src/events/audit/anchor.ts'
import type { Checkpoint, EventHistory, LogEnd } from '../../../src/events/event-log.ts'
import { nextPeriodEnd, type ArchivePolicy, type PeriodsEnd } from '../../../src/readmodels/archive/period-end.ts'

const newKey = (): AnchorKey => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  return { private: privateKey, public: publicKey }
}
const key = newKey()
const DAY_MS = 24 * 3_600_000
const BEGAN = Date.parse('2026-01-01T00:00:00.000Z')
const dayOf = (day: number): string => new Date(BEGAN + day * DAY_MS).toISOString()

function at(offset: number): Checkpoint {
  const state = { epoch: 1, writer: 'w', number: offset, count: offset, hash: 'x' }
  return { logId: 'here', at: [{ offset: BigInt(offset), state }] }
}

/** One anchor per day, each 100 records after the previous one. */
const anchors: { readonly anchor: Anchor; readonly time: string }[] = []
for (let day = 1; day <= 1200; day++)
  anchors.push({ anchor: makeAnchor(at(day * 100), new Map(), anchors.at(-1)?.anchor, key), time: dayOf(day) })

const query = async (_: string, [number, limit]: readonly unknown[]): Promise<readonly Record<string, unknown>[]> =>
  anchors
    .filter(({ anchor }) => anchor.number > Number(number))
    .slice(0, Number(limit))
    .map(({ anchor, time }) => ({ details: anchor, at: new Date(time) }))
const log = { tip: async () => at(120_050) } as unknown as EventHistory & LogEnd

const old = { before: dayOf(30), keepRecords: undefined, mostRecords: 1000n, leastRecords: 1000n, leastMs: 7 * DAY_MS }
const endOf = (number: number): PeriodsEnd => {
  const { anchor, time } = anchors[number - 1]!
  return { anchor: number, time, at: at(Number(anchor.at[0]!.offset)).at }
}
const chosen = async (
  end: PeriodsEnd | undefined,
  needed = 1_000_000n,
  policy: ArchivePolicy = old,
  by = key,
): Promise<number | undefined> => (await nextPeriodEnd({ log, query, key: by.public }, end, [needed], policy))?.number

describe('The end of the next period', () => {
  it('is the last anchor that is old enough, within the maximum size, and before needed records', async () => {
    expect(await chosen(undefined)).toBe(10)
    expect(await chosen(endOf(10))).toBe(20)
    expect(await chosen(endOf(20))).toBe(29)
    expect(await chosen(undefined, 450n)).toBe(4)
    expect(await chosen(undefined, 500n)).toBe(5)
    expect(await chosen(undefined, 99n)).toBeUndefined()
  })

  it('is undefined until there are enough records for a period', async () => {
    expect(await chosen(endOf(25))).toBeUndefined()
    expect(await chosen(endOf(22))).toBe(29)
    expect(await chosen(endOf(25), 1_000_000n, { ...old, leastRecords: 300n })).toBe(29)
    expect(await chosen(endOf(29))).toBeUndefined()
  })

  it('keeps the requested number of records in the log', async () => {
    const kept = { ...old, before: undefined, keepRecords: 20_000n, mostRecords: 1_000_000n, leastRecords: 2000n }
    expect(await chosen(undefined, 1_000_000n, kept)).toBe(1000)
    expect(await chosen(endOf(981), 1_000_000n, kept)).toBe(1000)
    expect(await chosen(endOf(994), 1_000_000n, kept)).toBeUndefined()
    expect(await chosen(undefined, 1_000_000n, { ...kept, keepRecords: 200_000n })).toBeUndefined()
    // One of the two limits is enough.
    expect(await chosen(undefined, 1_000_000n, { ...kept, keepRecords: 200_000n, before: dayOf(5) })).toBe(4)
  })

  it('exceeds the maximum size if a single anchor does', async () => {
    expect(await chosen(undefined, 1_000_000n, { ...old, mostRecords: 10n })).toBe(1)
  })

  it('is an anchor that is signed by the given key', async () => {
    expect(await chosen(undefined, 1_000_000n, old, newKey())).toBeUndefined()
  })
})
