import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { rebuildReadModels } from '../../src/readmodels/rebuild.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { appendLives, queryLife, testQueryId, toLogEvents } from '../support/query-life.ts'
import { readRecordedLogs } from '../support/recorded-logs.ts'
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
    return { queryId, events: queryLife(queryId, { end, worker: index % 2 === 0 }) }
  })
}

async function rebuild(batch = 5000) {
  return rebuildReadModels({ log: bed.log, database: bed.config, clock: systemClock, batch })
}

async function indexes(): Promise<unknown> {
  return bed.query(
    `select tablename, indexname, indexdef from pg_indexes where schemaname = 'm' and indexname not like 'query_events%' order by 1, 2`,
  )
}

describe('A rebuild of the read models', () => {
  it.each([3, 50, 5000])('makes the same rows as the live projection in batches of %d', async (batch) => {
    await appendLives(bed.log, lives(30))
    const runner = await bed.startRunner()
    await runner.barrier(60_000)
    const live = await tableHashes(bed)
    const before = await indexes()
    const rebuilt = await rebuild(batch)
    expect(rebuilt.events).toBe((await bed.log.tip()).at[0]!.state.count)
    expect(await tableHashes(bed)).toEqual(live)
    expect(await indexes()).toEqual(before)
    expect(await bed.query(`select nspname from pg_namespace where nspname like 'm\\_%'`)).toEqual([])
  })

  it('repairs altered rows, while new queries are written and rows are read', async () => {
    await appendLives(bed.log, lives(20))
    const runner = await bed.startRunner()
    await runner.barrier(60_000)
    await bed.query(`update queries set state = 'WRONG', user_name = 'nobody'`)
    await bed.query('delete from operators')
    let done = false
    const reading = (async () => {
      let reads = 0
      for (; !done; reads++) expect((await bed.query('select count(*) from queries'))[0]!['count']).not.toBe('0')
      return reads
    })()
    const writing = appendLives(bed.log, lives(60, 100), 4)
    await rebuild(20)
    done = true
    expect(await reading).toBeGreaterThan(0)
    await writing
    expect(await runner.barrier(60_000)).toBe(true)
    const mended = await tableHashes(bed)
    expect(await bed.query(`select count(*) from queries where state = 'WRONG'`)).toEqual([{ count: '0' }])
    await runner.stop()
    await rebuild()
    expect(await tableHashes(bed)).toEqual(mended)
  })

  it('does not move the live projection: the next events are applied once', async () => {
    const queryId = testQueryId(900)
    const life = toLogEvents(queryLife(queryId))
    const runner = await bed.startRunner()
    await bed.log.append(queryId, 0, life.slice(0, 4))
    await runner.barrier(60_000)
    await rebuild()
    const position = await bed.log.append(queryId, 4, life.slice(4))
    expect(await runner.waitFor(position, 60_000)).toBe(true)
    expect(await bed.query('select state, last_sequence from queries')).toEqual([
      { state: 'FINISHED', last_sequence: '7' },
    ])
  })

  it('restores lost read models', async () => {
    await appendLives(bed.log, lives(12))
    const runner = await bed.startRunner()
    await runner.barrier(60_000)
    const live = await tableHashes(bed)
    await runner.stop()
    await bed.query('drop schema m cascade')
    await rebuild()
    expect(await tableHashes(bed)).toEqual(live)
  })

  it('refuses tables that were made from another log', async () => {
    await appendLives(bed.log, lives(3))
    const runner = await bed.startRunner()
    await runner.barrier(60_000)
    await runner.stop()
    await bed.query(
      `update checkpoints set checkpoint = regexp_replace(checkpoint, '"hash":"[0-9a-f]{4}', '"hash":"beef')`,
    )
    await expect(rebuild()).rejects.toThrow('another log')
    expect(await bed.query('select count(*) from queries')).toEqual([{ count: '3' }])
  })

  it('refuses to run twice at the same time', async () => {
    await appendLives(bed.log, lives(30))
    const results = await Promise.allSettled([rebuild(1), rebuild(1)])
    expect(results.map((result) => result.status).sort()).toEqual(['fulfilled', 'rejected'])
  })
})

it('The read models contain the final states of queries that earlier versions recorded', async () => {
  const logs = readRecordedLogs()
  const states = new Map<string, string>()
  for (const { events, state } of logs) {
    const { stream } = events[0]!
    // The data of an event has the version of its type, so that a log of an earlier version is read unchanged.
    const recorded = events.map(({ type, v, time, stored }) => ({
      type,
      v,
      time,
      data: JSON.parse(stored!) as unknown,
    }))
    await bed.log.append(stream, 0, recorded)
    states.set(stream, (state as { readonly kind: string }).kind)
  }
  const runner = await bed.startRunner()
  expect(await runner.barrier(60_000)).toBe(true)
  expect(await bed.query('select stream, type, error_message from dead_letters')).toEqual([])
  const rows = await bed.query<{ query_id: string; state: string }>('select query_id, state from queries')
  expect(new Map(rows.map((row) => [row.query_id, row.state]))).toEqual(states)
})
