import { afterAll, beforeAll, expect, it } from 'vitest'
import type { QueryRows } from '../../../src/events/projection.ts'
import { createRecentQueries } from '../../../src/protocol/task/recent-queries.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { queryLife, testQueryId, toLogEvents } from '../../support/query-life.ts'
import { openReadModelBed, storedIn, type ReadModelBed } from '../../support/read-models.ts'

const ENDED = 130

let bed: ReadModelBed
beforeAll(async () => {
  bed = await openReadModelBed()
})
afterAll(() => bed.close())

it('the list of recent queries names each ended query once and needs few reads of the database', async () => {
  const runner = await bed.startRunner({ lingerMs: 0 })
  const ids = Array.from({ length: ENDED }, (_, index) => testQueryId(index + 1))
  for (const id of ids) {
    const life = queryLife(id, { startMillis: Date.now() - 1000 })
    await bed.log.append(id, 0, toLogEvents(life))
  }
  expect(await runner.barrier(60_000)).toBe(true)
  let questions = 0
  const read: QueryRows = (text, values) => {
    questions++
    return bed.query(text, [...values])
  }
  const recent = createRecentQueries({
    live: { get: () => undefined, list: () => [] },
    read,
    stored: storedIn(read),
    projection: runner,
    clock: systemClock,
    ownWritesWaitMs: 10_000,
  })
  const found: string[] = []
  for await (const { query } of recent.recent()) found.push(query.queryId)
  expect(found.toSorted()).toEqual(ids.toSorted())
  expect(questions).toBeLessThan(10)
})
