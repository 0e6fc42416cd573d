import { expect, it } from 'vitest'
import type { Recorded } from '../../src/events/event-log.ts'
import { QueryFolds } from '../../src/readmodels/queries/projection.ts'
import { queryLife, testQueryId, toLogEvents } from '../support/query-life.ts'

const MB = 1 << 20

it.each(['finished', 'open'] as const)(
  'QueryFolds limits the memory of folds of %s queries, also with long texts',
  async (end) => {
    const folds = new QueryFolds()
    const most = { finished: 16, open: 64 }[end]
    const sql = `SELECT 1 /* ${'x'.repeat(MB)} */`
    for (let number = 1; number <= 100; number++) {
      const stream = testQueryId(number)
      const events = toLogEvents(queryLife(stream, { end, sql })).map(
        (event, index) =>
          ({
            ...event,
            stream,
            sequence: index + 1,
            enc: 'none',
            stored: JSON.stringify(event.data),
          }) as unknown as Recorded,
      )
      const batch = await folds.begin(events, async () => [])
      for (const event of events) batch.apply(event)
      batch.keep()
      expect(folds.bytes).toBeLessThanOrEqual(most * MB)
    }
    expect(folds.bytes).toBeGreaterThan((most / 2) * MB)
    folds.forget(testQueryId(100))
    folds.clear()
    expect(folds.bytes).toBe(0)
  },
)
