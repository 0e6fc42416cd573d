import { afterAll, beforeAll, expect, it } from 'vitest'
import { memoryOf } from '../../../src/events/envelope.ts'
import { beginning, type Recorded } from '../../../src/events/event-log.ts'
import { createPostgresEventLog } from '../../../src/events/postgres/postgres-event-log.ts'
import { openReadModelBed, type ReadModelBed } from '../../support/read-models.ts'

/* The log stores these events at a thousandth of their size: a reader must not load all of them into memory at once. */

const MB = 1 << 20
const COUNT = 60
let bed: ReadModelBed

beforeAll(async () => {
  bed = await openReadModelBed()
  for (let index = 0; index < COUNT; index++) {
    const time = '2026-03-01T10:00:00.000Z'
    await bed.log.append(`packed-${index}`, 0, [{ type: 'Packed', v: 1, time, data: { text: 'x'.repeat(MB) } }])
  }
})
afterAll(() => bed.close())

const bytesOf = (events: readonly Recorded[]): number => events.reduce((sum, event) => sum + memoryOf(event), 0)

it('A subscription delivers all highly compressed events, in small batches', async () => {
  // A log object of its own, with no events in memory yet.
  const log = createPostgresEventLog(bed.config)
  try {
    await log.open()
    const batches: number[] = []
    let seen = 0
    let all = (): void => {}
    const done = new Promise<void>((resolve) => (all = resolve))
    const subscription = log.subscribe(beginning(), async (batch) => {
      batches.push(bytesOf(batch))
      seen += batch.filter(({ type }) => type === 'Packed').length
      if (seen === COUNT) all()
    })
    await done
    await subscription.stop()
    expect(Math.max(...batches)).toBeLessThan(10 * MB)
    const { events, next } = await log.read(beginning(), 100_000)
    expect(bytesOf(events)).toBeLessThan(50 * MB)
    expect(events.length).toBeLessThan(COUNT)
    expect((await log.read(next, 100_000)).events.length).toBeGreaterThan(0)
  } finally {
    await log.close()
  }
})
