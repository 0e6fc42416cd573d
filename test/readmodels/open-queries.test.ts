import { afterEach, beforeEach, expect, it } from 'vitest'
import { findOpenQueries } from '../../src/readmodels/queries/open-queries.ts'
import { readQuery } from '../../src/coordinator/query/stream/read-query.ts'
import { taskStats, appendLives, queryLife, testQueryId, toLogEvents } from '../support/query-life.ts'
import { openReadModelBed, type ReadModelBed } from '../support/read-models.ts'

let bed: ReadModelBed
beforeEach(async () => {
  bed = await openReadModelBed()
})
afterEach(() => bed.close())

const id = testQueryId
const open = (queryId: string, ended = false) => ({
  queryId,
  events: queryLife(queryId, { end: ended ? 'finished' : 'open' }),
})
const rowsOf = (text: string, values: readonly unknown[]) => bed.query(text, [...values])

async function found() {
  const { open: left, readMany } = await findOpenQueries(bed.log, rowsOf)
  return { left, folds: await readMany(left) }
}

it.each([0, 3, 1000])(
  '`findOpenQueries` finds the open queries of the log at any progress of the projection: %d queries projected',
  async (projected) => {
    const lives = Array.from({ length: 20 }, (_, index) => open(id(index), index % 3 === 0))
    await appendLives(bed.log, lives.slice(0, projected))
    const runner = await bed.startRunner()
    expect(await runner.barrier(60_000)).toBe(true)
    await runner.stop()
    await appendLives(bed.log, lives.slice(projected))
    // Since the projection stopped, one open query has ended and another one has new events.
    const [ended, goesOn] = [queryLife(id(1)), queryLife(id(2))].map((life) => toLogEvents(life)) as [never[], never[]]
    const before = open(id(1)).events.length
    await bed.log.append(id(1), before, ended.slice(before))
    await bed.log.append(id(2), before, goesOn.slice(before, before + 1))
    const { left, folds } = await found()
    expect(left).toEqual(
      Array.from({ length: 20 }, (_, index) => index)
        .filter((index) => index % 3 !== 0 && index !== 1)
        .map((index) => id(index)),
    )
    for (const queryId of left) expect(folds.get(queryId)).toEqual(await readQuery(bed.log, queryId))
  },
)

it('`findOpenQueries` finds open queries with dead letters, but not those that a parked event ends', async () => {
  const spoilt = (queryId: string, type: string) =>
    toLogEvents(queryLife(queryId)).map((event) =>
      event.type === type
        ? { ...event, data: { ...(event.data as object), stats: taskStats({ outputBytes: 1e300 }), session: 7 } }
        : event,
    )
  // The first event is a dead letter, so the query has no row.
  await bed.log.append(id(1), 0, spoilt(id(1), 'QueryCreated').slice(0, 3))
  // The query ended, but the projection could not apply its end.
  await bed.log.append(id(2), 0, spoilt(id(2), 'TaskFinished'))
  await bed.log.append(id(3), 0, spoilt(id(3), 'TaskFinished').slice(0, 5))
  await bed.log.append(id(4), 0, spoilt(id(4), 'QueryCreated'))
  const runner = await bed.startRunner()
  expect(await runner.barrier(60_000)).toBe(true)
  expect(runner.deadLetters).toBe(4)
  const { left, folds } = await found()
  expect([...left].sort()).toEqual([id(1), id(3)])
  // The bad figure fits the type of the event, but no column. The fold of the other query must be read from the log.
  expect([...folds]).toEqual([[id(3), await readQuery(bed.log, id(3))]])
})
