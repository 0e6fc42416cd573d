import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { beginning, LogUnavailable, type Event, type EventLog } from '../../src/events/event-log.ts'
import type { DeadLetter } from '../../src/events/projection.ts'
import { createReadModelsProjection } from '../../src/readmodels/projection.ts'
import { QueryFolds } from '../../src/readmodels/queries/projection.ts'
import { mendQuery } from '../../src/readmodels/mend-query.ts'
import { appendLives, queryLife, taskStats, testQueryId, toLogEvents } from '../support/query-life.ts'
import { openReadModelBed, tableHashes, type ReadModelBed } from '../support/read-models.ts'

let bed: ReadModelBed

beforeEach(async () => {
  bed = await openReadModelBed()
})
afterEach(() => bed.close())

function lives(count: number, from = 0) {
  return Array.from({ length: count }, (_, index) => {
    const queryId = testQueryId(from + index)
    const end = index % 5 === 0 ? 'failed' : index % 7 === 0 ? 'open' : 'finished'
    return { queryId, events: queryLife(queryId, { end, worker: index % 2 === 0, user: `user${index % 3}` }) }
  })
}

async function clearTables(): Promise<void> {
  await bed.query(
    'truncate queries, stages, tasks, operators, nodes, clusters, table_access, audit_log, query_events, checkpoints, dead_letters',
  )
}

describe('The batches of a projection', () => {
  it('make the same rows at any batch size', async () => {
    await appendLives(bed.log, lives(60))
    const hashes = []
    for (const maxBatch of [1, 7, 100, 2000]) {
      await clearTables()
      const runner = await bed.startRunner({ maxBatch, enough: Math.min(maxBatch, 500) })
      expect(await runner.barrier(60_000)).toBe(true)
      await runner.stop()
      hashes.push(await tableHashes(bed))
    }
    expect(hashes[0]!['queries']).toMatch(/^60 rows/)
    for (const hash of hashes.slice(1)) expect(hash).toEqual(hashes[0])
  })

  it('continue after a restart, with the folds of queries that were open', async () => {
    const [first] = lives(1, 100)
    const all = toLogEvents(queryLife(first!.queryId))
    for (const [index, event] of all.entries()) {
      await bed.log.append(first!.queryId, index, [event])
      const runner = await bed.startRunner()
      expect(await runner.barrier(60_000)).toBe(true)
      await runner.stop()
    }
    const stepwise = await tableHashes(bed)
    await clearTables()
    const runner = await bed.startRunner()
    await runner.barrier(60_000)
    expect(await tableHashes(bed)).toEqual(stepwise)
    expect(await bed.query('select state from queries')).toEqual([{ state: 'FINISHED' }])
  })

  it('make the same rows if folds were dropped from memory in between', async () => {
    await appendLives(bed.log, lives(40))
    const hashes = []
    for (const kept of [
      { open: { queries: 1, bytes: 1e9 }, ended: { queries: 0, bytes: 1e9 } },
      { open: { queries: 1000, bytes: 1 }, ended: { queries: 1000, bytes: 1000 } },
      { open: { queries: 1000, bytes: 1e9 }, ended: { queries: 1000, bytes: 1e9 } },
    ]) {
      await clearTables()
      const runner = await bed.startRunner({ maxBatch: 9, enough: 9 }, createReadModelsProjection(new QueryFolds(kept)))
      expect(await runner.barrier(60_000)).toBe(true)
      await runner.stop()
      hashes.push(await tableHashes(bed))
    }
    expect(hashes[0]).toEqual(hashes[1])
  })

  it('are applied once by two runners with the same checkpoint', async () => {
    const runners = [await bed.startRunner({ maxBatch: 13 }), await bed.startRunner({ maxBatch: 17 })]
    await appendLives(bed.log, lives(40))
    for (const runner of runners) expect(await runner.barrier(60_000)).toBe(true)
    for (const runner of runners) await runner.stop()
    const together = await tableHashes(bed)
    await clearTables()
    const alone = await bed.startRunner()
    await alone.barrier(60_000)
    expect(await tableHashes(bed)).toEqual(together)
  })
})

describe('The wait for own writes', () => {
  it('ends after the rows of the position are committed', async () => {
    // The linger is longer than the test: only the wait can end it.
    const runner = await bed.startRunner({ lingerMs: 60_000, enough: 100_000 })
    const queryId = testQueryId(1)
    const position = await bed.log.append(queryId, 0, toLogEvents(queryLife(queryId, { end: 'open' })))
    expect(await runner.waitFor(position, 60_000)).toBe(true)
    expect(await bed.query('select query_id from queries')).toEqual([{ query_id: queryId }])
  })

  it('ends for each of many callers when their own write is committed', async () => {
    const runner = await bed.startRunner({ maxBatch: 3, enough: 3 })
    const seen = await Promise.all(
      lives(20).map(async ({ queryId, events }) => {
        const position = await bed.log.append(queryId, 0, toLogEvents(events))
        await runner.waitFor(position, 60_000)
        return (await bed.query('select last_sequence from queries where query_id = $1', [queryId]))[0]![
          'last_sequence'
        ]
      }),
    )
    expect(seen).toEqual(lives(20).map(({ events }) => String(events.length)))
  })

  it('ends with false at its timeout', async () => {
    const runner = await bed.startRunner()
    expect(await runner.waitFor({ partition: 0, offset: 1_000_000n }, 20)).toBe(false)
  })

  it('ends at once if the position is already committed', async () => {
    const runner = await bed.startRunner()
    await runner.barrier(60_000)
    expect(await runner.waitFor(beginning(), 0)).toBe(true)
    expect(await runner.barrier(60_000)).toBe(true)
  })

  it('covers the writes of another process with a barrier', async () => {
    const runner = await bed.startRunner({ lingerMs: 60_000, enough: 100_000 })
    const queryId = testQueryId(2)
    await bed.log.append(queryId, 0, toLogEvents(queryLife(queryId, { end: 'open' })))
    const answers = await Promise.all([runner.barrier(60_000), runner.barrier(60_000), runner.barrier(60_000)])
    expect(answers).toEqual([true, true, true])
    expect(await bed.query('select count(*) from queries')).toEqual([{ count: '1' }])
  })

  it('ends with false for a barrier if the log cannot report its tip', async () => {
    const log: EventLog = {
      open: () => bed.log.open(),
      claim: (as) => bed.log.claim(as),
      append: (...one) => bed.log.append(...one),
      read: (...one) => bed.log.read(...one),
      readStream: (...one) => bed.log.readStream(...one),
      keepPages: (...one) => bed.log.keepPages(...one),
      readPage: (...one) => bed.log.readPage(...one),
      forgettable: (stream) => bed.log.forgettable(stream),
      forget: (...one) => bed.log.forget(...one),
      subscribe: (...one) => bed.log.subscribe(...one),
      start: () => bed.log.start(),
      tip: async () => {
        throw new LogUnavailable('away')
      },
      fenced: bed.log.fenced,
      close: async () => {},
    }
    const runner = await bed.startRunner({ log, lingerMs: 60_000, enough: 100_000 })
    const queryId = testQueryId(3)
    const position = await bed.log.append(queryId, 0, toLogEvents(queryLife(queryId, { end: 'open' })))
    expect(await runner.barrier(1000)).toBe(false)
    expect(await runner.waitFor(position, 60_000)).toBe(true)
    expect(await runner.lag()).toEqual({ events: 0, oldestMillis: 0 })
  })

  it('comes with calls of the commit listeners, and the lag goes down to zero', async () => {
    const runner = await bed.startRunner()
    const counts: number[] = []
    const end = runner.onCommitted((committed) => counts.push(committed.at[0]!.state.count))
    await appendLives(bed.log, lives(5))
    await runner.barrier(60_000)
    end()
    expect(counts.at(-1)).toBe((await bed.log.tip()).at[0]!.state.count)
    expect([...counts].sort((a, b) => a - b)).toEqual(counts)
    expect(await runner.lag()).toEqual({ events: 0, oldestMillis: 0 })
  })
})

describe('An event that a projection cannot apply', () => {
  const bad = testQueryId(777)

  /** Postgres refuses the figure, because it is not a bigint. */
  function refusedLife(): Event[] {
    const events = toLogEvents(queryLife(bad))
    return events.map((event) => {
      if (event.type !== 'TaskFinished') return event
      const data = event.data as { stage: number }
      return data.stage === 1 ? { ...event, data: { ...data, stats: taskStats({ outputBytes: 1e300 }) } } : event
    })
  }

  async function projectWithNeighbours(life: readonly Event[], maxBatch = 2000): Promise<DeadLetter[]> {
    await bed.log.append(bad, 0, life.slice(0, 2))
    await appendLives(bed.log, lives(15))
    await bed.log.append(bad, 2, life.slice(2))
    await appendLives(bed.log, lives(15, 20))
    const letters: DeadLetter[] = []
    const runner = await bed.startRunner({
      maxBatch,
      onTrouble: (trouble) => {
        if (trouble.kind === 'dead_letter') letters.push(trouble.letter)
      },
    })
    expect(await runner.barrier(60_000)).toBe(true)
    expect(runner.deadLetters).toBe(1)
    return letters
  }

  it.each([2000, 10, 1])(
    'is found in its batch of %d and becomes a dead letter if Postgres refuses it',
    async (maxBatch) => {
      const life = refusedLife()
      const letters = await projectWithNeighbours(life, maxBatch)
      expect(letters.map(({ kind, event }) => [kind, event.sequence])).toEqual([
        ['failed', 4],
        ['parked', 5],
        ['parked', 6],
        ['parked', 7],
      ])
      expect(
        await bed.query('select stream, sequence, kind, type, sqlstate from dead_letters order by sequence limit 2'),
      ).toEqual([
        { stream: bad, sequence: '4', kind: 'failed', type: 'TaskFinished', sqlstate: '22P02' },
        { stream: bad, sequence: '5', kind: 'parked', type: 'TaskFinished', sqlstate: null },
      ])
      expect(
        await bed.query('select state, incomplete, last_sequence from queries where query_id = $1', [bad]),
      ).toEqual([{ state: 'STARTING', incomplete: true, last_sequence: '3' }])
      expect(await bed.query('select count(*) from queries where not incomplete')).toEqual([{ count: '30' }])
      expect(await bed.query('select count(*) from query_events where stream = $1', [bad])).toEqual([{ count: '7' }])
    },
  )

  it('becomes a dead letter because of its data, and the rest of its batch is applied', async () => {
    const life = toLogEvents(queryLife(bad)).map((event) =>
      event.type === 'TaskCreated' ? { ...event, data: { nothing: 'of the kind' } } : event,
    )
    const letters = await projectWithNeighbours(life)
    expect(letters.map(({ kind, event }) => [kind, event.sequence])).toEqual([
      ['failed', 3],
      ['parked', 4],
      ['parked', 5],
      ['parked', 6],
      ['parked', 7],
    ])
    expect(await bed.query('select state, incomplete from queries where query_id = $1', [bad])).toEqual([
      { state: 'STARTING', incomplete: true },
    ])
  })

  it('does not stop later events if it is in the stream `system`', async () => {
    const time = new Date().toISOString()
    await bed.log.append('system', 1, [
      { type: 'QueryKilled', v: 1, time, data: { wrong: true } },
      { type: 'QueryKilled', v: 1, time, data: { queryId: 'q', by: 'root' } },
    ])
    const runner = await bed.startRunner()
    await runner.barrier(60_000)
    expect(await bed.query(`select user_name from audit_log where kind = 'QueryKilled'`)).toEqual([
      { user_name: 'root' },
    ])
    expect(runner.deadLetters).toBe(1)
  })

  it('can be mended while the projection runs, and then later events of the query are applied', async () => {
    await bed.query('alter table tasks add constraint odd check (output_rows <> 4242)')
    const life = toLogEvents(queryLife(bad)).map((event) => {
      const data = event.data as { stage: number }
      return event.type === 'TaskFinished' && data.stage === 1
        ? { ...event, data: { ...data, stats: taskStats({ outputPositions: 4242 }) } }
        : event
    })
    const runner = await bed.startRunner()
    await bed.log.append(bad, 0, life.slice(0, 5))
    await runner.barrier(60_000)
    expect(runner.deadLetters).toBe(1)
    await expect(mendQuery(bed.config, bad)).rejects.toThrow('odd')
    expect(await bed.query('select incomplete from queries')).toEqual([{ incomplete: true }])

    await bed.query('alter table tasks drop constraint odd')
    expect(await mendQuery(bed.config, bad)).toEqual({ events: 5, deadLetters: 2 })
    const position = await bed.log.append(bad, 5, life.slice(5))
    expect(await runner.waitFor(position, 60_000)).toBe(true)
    expect(runner.deadLetters).toBe(0)
    expect(await bed.query('select state, incomplete, last_sequence from queries')).toEqual([
      { state: 'FINISHED', incomplete: false, last_sequence: '7' },
    ])
    expect(await bed.query('select output_rows from tasks order by task_id')).toEqual([
      { output_rows: '23' },
      { output_rows: '4242' },
    ])
  })
})
