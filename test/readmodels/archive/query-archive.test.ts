import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { QueryRows } from '../../../src/events/projection.ts'
import { createParquetEngine, type ParquetEngine } from '../../../src/readmodels/archive/parquet-engine.ts'
import {
  archiveQueries,
  type QueryArchiveDeps,
  type QueryArchivePolicy,
} from '../../../src/readmodels/archive/query-archive.ts'
import { compareReadModels } from '../../../src/readmodels/audit/compare-read-models.ts'
import { readArchivedQueries } from '../../../src/readmodels/archive/query-periods.ts'
import { readFiles } from '../../../src/readmodels/history/read-archive.ts'
import { createHistoryMoments } from '../../../src/readmodels/history/read-history.ts'
import { historyStatement } from '../../../src/readmodels/history/statement.ts'
import type { StateTotals } from '../../../src/readmodels/queries/queries.ts'
import type { Prices } from '../../../src/readmodels/history/prices.ts'
import { sortNames } from '../../../src/readmodels/queries/query-order.ts'
import { createStoredQueries, type StoredQueries } from '../../../src/readmodels/queries/stored-queries.ts'
import { rebuildReadModels } from '../../../src/readmodels/rebuild.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import type { QueryId } from '../../../src/shared/ids.ts'
import { appendLives, queryLife, testQueryId } from '../../support/query-life.ts'
import { openReadModelBed, tableHashes, type ReadModelBed } from '../../support/read-models.ts'

const ENDED = 9
const OPEN = 10
const ids = Array.from({ length: ENDED }, (_, index) => testQueryId(index + 1))
const all = { before: '9999-01-01T00:00:00.000Z', keepQueries: undefined, leastQueries: 1, leastMs: 0 }
const keepFour = { ...all, before: undefined, keepQueries: 4 }
const PRICES: Prices = {
  currency: 'EUR',
  periods: [{ from: '2026-03-01T12:00:00Z', cpuSecond: 2, terabyteScanned: 0, clusterHour: 0, clusterHours: {} }],
}
const HARD_TEXT = `SELECT 'it''s "é😀" \\ 100%_' /* \u0001 */`

let bed: ReadModelBed
let folder: string
let engine: ParquetEngine
let stored: StoredQueries
const read: QueryRows = (text, values) => bed.query(text, [...values])

beforeEach(async () => {
  bed = await openReadModelBed()
  folder = join(mkdtempSync(join(tmpdir(), 'quipu-archive-')), 'queries')
  engine = createParquetEngine(folder)
  stored = createStoredQueries(read, { engine, folder, limitMs: 60_000 })
  await appendLives(bed.log, [
    ...ids.map((queryId, index) => ({
      queryId,
      events: queryLife(queryId, {
        user: ['alice', 'bob'][index % 2]!,
        startMillis: Date.parse('2026-03-01T10:00:00.000Z') + index * 3_600_000,
        end: (['finished', 'failed', 'killed'] as const)[index % 3]!,
        sql: `${HARD_TEXT} ${index}`,
        session: { groups: ['analysts', 'a"b'], clientTags: [index % 2 ? 'daily' : "d'"] },
      }),
    })),
    { queryId: testQueryId(OPEN), events: queryLife(testQueryId(OPEN), { end: 'open' }) },
  ])
  await project()
})
afterEach(async () => {
  await engine.close()
  await bed.close()
  rmSync(join(folder, '..'), { recursive: true, force: true })
})

async function project(): Promise<void> {
  const runner = await bed.startRunner()
  expect(await runner.barrier(60_000)).toBe(true)
  await runner.stop()
}

const archive = (policy: QueryArchivePolicy = all, over: Partial<QueryArchiveDeps> = {}) =>
  archiveQueries({ database: bed.config, engine, folder, ...over }, policy)

const forgetOnly = () => archiveQueries({ database: bed.config, engine, folder }, undefined)

async function count(table: string): Promise<number> {
  const [row] = await bed.query<{ count: string }>(`select count(*) from ${table}`)
  return Number(row!.count)
}

async function findings(): Promise<string[]> {
  const found: string[] = []
  await compareReadModels(bed.log, bed.config, { onFinding: ({ what }) => found.push(what), queriesFolder: folder })
  return found
}

async function streamOf(queryId: QueryId): Promise<unknown[]> {
  const events: unknown[] = []
  for await (const event of stored.stream(queryId)) events.push(event)
  return events
}

const NATION = { catalog: 'tpch', schema: 'tiny', table: 'nation' }

/** The totals by state; a state may have some in the tables and some in the files. */
function totalsByState(totals: readonly StateTotals[]): Record<string, number[]> {
  const sums: Record<string, number[]> = {}
  for (const { state, ...figures } of totals)
    sums[state] = Object.values(figures).map((figure, i) => figure + (sums[state]?.[i] ?? 0))
  return Object.fromEntries(Object.entries(sums).sort())
}

/** Returns the answers to several reads of queries. */
async function reported(): Promise<unknown> {
  return {
    all: await stored.list({}, 100, 4096),
    page: await stored.list({ states: ['FAILED'], equal: { user_name: 'bob' }, text: "IT''S" }, 2, 10),
    chosen: await stored.list(
      { equal: { source: 'quipu-test', resource_group: 'global' }, group: 'analysts', tag: 'daily', table: NATION },
      100,
      4096,
    ),
    others: await Promise.all(
      [{ group: 'analyst' }, { tag: "d'" }, { table: { ...NATION, table: 'region' } }, { equal: { app: 'x' } }].map(
        (filter) => stored.list(filter, 1, 10),
      ),
    ),
    until: await stored.list({ until: '2026-03-01T14:30:00.000Z' }, 100, 4096),
    totals: totalsByState(await stored.totals({}, PRICES)),
    totalsOfTable: totalsByState(await stored.totals({ table: NATION, until: '2026-03-01T14:30:00.000Z' }, PRICES)),
    since: await stored.list({ since: '2026-03-01T14:30:00.000Z', without: [ids[7]!] }, 100, 4096),
    seen: await stored.list({ seen: { users: ['alice'], poster: 'x', self: 'x' } }, 3, 4096),
    cursor: await stored.list({ cursor: { value: '2026-03-01T15:00:00.000Z', queryId: ids[5]! } }, 3, 4096),
    sorted: await Promise.all(
      sortNames.flatMap((by) => [true, false].map((descending) => stored.list({ order: { by, descending } }, 4, 10))),
    ),
    sortedAfter: await stored.list(
      { order: { by: 'rows', descending: false }, cursor: { value: 0, queryId: ids[3]! } },
      3,
      4096,
    ),
    streams: await Promise.all(ids.map(streamOf)),
    part: await stored.page(ids[0]!, 2, 3),
    then: await stored.page(ids[0]!, 0, 100, { time: '2026-03-01T10:00:00.050Z' }),
    first: await stored.page(ids[0]!, 0, 100, { sequence: 1 }),
    none: await stored.page(testQueryId(77), 0, 100),
  }
}

const pagesLost = {
  type: 'ResultPagesLost',
  v: 1,
  time: '2026-03-01T20:00:00.000Z',
  data: { tokens: [0], reason: 'gone' },
}

const periods = () => count('quipu_log.query_periods')

it('The query archive gives the same answers as the read models before, and an audit checks its files', async () => {
  const before = await reported()
  const made = await archive(keepFour)
  expect(made).toMatchObject([{ queries: ENDED - 4 }])
  expect(await count('queries')).toBe(5)
  expect(await count('tasks')).toBeGreaterThan(0)
  expect(await reported()).toEqual(before)
  expect(await findings()).toEqual([])
  await archive()
  expect([await count('queries'), await count('columns_read'), await periods()]).toEqual([1, 1, 2])
  expect(await reported()).toEqual(before)
  expect(await findings()).toEqual([])
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => statSync(join(folder, name)))
  expect(new Set(files.map(({ mode }) => (mode & 0o777).toString(8)))).toEqual(new Set(['700', '600']))
  await bed.query(
    `update quipu_log.query_periods set tables = jsonb_set(tables, '{tasks,sum}', '"1"') where number = 2`,
  )
  const [one] = await bed.query<{ folder: string }>('select folder from quipu_log.query_periods where number = 1')
  appendFileSync(join(folder, one!.folder, 'stages.parquet'), 'x')
  expect(await findings()).toEqual([
    expect.stringMatching(/stages.parquet was changed after it was written/),
    expect.stringMatching(/^tasks has other rows/),
  ])
})

it('The query archiving keeps queries with records after `writtenBefore` in the read models', async () => {
  const [last] = await bed.query<{ time: Date }>('select max("time") as time from query_events')
  const writtenBefore = new Date(last!.time.getTime() + 1).toISOString()
  // One query has a later event; another one had not ended.
  await bed.query('update query_events set "time" = $2 where stream = $1 and sequence = 7', [ids[0], writtenBefore])
  await bed.query('update queries set ended_at = $2 where query_id = $1', [ids[1], writtenBefore])
  expect(await archive({ ...all, writtenBefore })).toMatchObject([{ queries: ENDED - 2, first_id: ids[2] }])
  expect(await archive({ ...all, writtenBefore })).toEqual([])
})

it('The query archiving changes nothing if it is interrupted at any step, and can be repeated', async () => {
  const [before, hashes] = [await reported(), await tableHashes(bed)]
  let failures = 0
  for (let step = 0; ; step++) {
    let left = step
    const asked = (): void => {
      if (left-- === 0) throw new Error('cut off')
    }
    const cut: ParquetEngine = {
      ...engine,
      async run(text, values) {
        asked()
        await engine.run(text, values)
        asked()
      },
      async *rows(text, values) {
        asked()
        yield* engine.rows(text, values)
      },
    }
    const failed = await archive(all, { engine: cut }).then(
      () => false,
      () => true,
    )
    if (!failed) break
    failures++
    expect(await tableHashes(bed)).toEqual(hashes)
  }
  expect(failures).toBeGreaterThan(15)
  expect(await reported()).toEqual(before)
  expect(await findings()).toEqual([])
  // The leftover of a killed process.
  mkdirSync(join(folder, '.copy-left'))
  await archive()
  expect(readdirSync(folder)).toHaveLength(1)
  renameSync(folder, `${folder}-away`)
  await expect(archive()).rejects.toThrow('this folder is missing')
  await expect(stored.page(ids[0]!, 0, 10)).rejects.toThrow()
  expect(existsSync(folder)).toBe(false)
  renameSync(`${folder}-away`, folder)
  expect(await reported()).toEqual(before)
})

it('The query archiving deletes no rows that changed after the copy, and fails without disk space', async () => {
  await forgetOnly()
  expect(existsSync(folder)).toBe(false)
  await expect(archive(all, { hasRoom: async () => false })).rejects.toThrow('no space')
  const changing: ParquetEngine = {
    ...engine,
    async run(text, values) {
      await bed.query(`update tasks set node_url = node_url || 'x' where query_id = $1`, [ids[3]!])
      await engine.run(text, values)
    },
  }
  const hashes = await tableHashes(bed)
  await expect(archive(all, { engine: changing })).rejects.toThrow('Archiving tasks')
  expect({ ...(await tableHashes(bed)), tasks: '' }).toEqual({ ...hashes, tasks: '' })
  expect([await periods(), await count('queries')]).toEqual([0, ENDED + 1])
})

it('The query archiving keeps queries that may get events, and late events of archived ones make no rows', async () => {
  const runner = await bed.startRunner()
  expect(await runner.barrier(60_000)).toBe(true)
  // The projection keeps the fold of this query in memory.
  const [late] = await bed.query<{ id: QueryId }>('select query_id as id from queries order by ended_at limit 1')
  const lose = async () => bed.log.append(late!.id, (await streamOf(late!.id)).length, [pagesLost])
  await lose()
  await runner.barrier(60_000)
  const [border] = await bed.query<{ at: Date }>(
    'select distinct ended_at as at from queries where ended_at is not null order by 1 offset 1 limit 1',
  )
  const made = await archive({ ...all, settledBefore: border!.at.toISOString() })
  const left = ENDED + 1 - made[0]!.queries
  expect(left).toBeGreaterThan(1)
  await lose()
  expect(await runner.barrier(60_000)).toBe(true)
  await runner.stop()
  expect([await count('queries'), await count('stages')]).toEqual([left, 2 * left])
  expect((await streamOf(late!.id)).slice(-2)).toMatchObject([{ type: 'ResultPagesLost' }, { type: 'ResultPagesLost' }])
})

it('The query archive writes long rows in row groups of limited size', async () => {
  const [written] = await bed.query<{ rows: string }>(
    `with long as (update query_events set data = data || repeat('"é', 250000) where sequence <= 4
       and stream in (select query_id from queries where ended_at is not null) returning 1)
     select count(*) as rows from long`,
  )
  await archive()
  const [period] = readdirSync(folder)
  const file = join(folder, period!, 'query_events.parquet')
  const text = `select max(bytes)::double, sum(rows)::double from (select sum(total_uncompressed_size) as bytes,
    any_value(row_group_num_rows) as rows from parquet_metadata($1) group by row_group_id)`
  const found: number[][] = []
  for await (const groups of engine.rows(text, [file])) found.push(...groups.map((group) => group.map(Number)))
  const [bytes, rows] = found[0]!
  expect(bytes).toBeLessThan(20 << 20)
  expect(rows).toBeGreaterThan(Number(written!.rows))
})

it('The query archiving runs once for two concurrent calls, and a concurrent reader sees each query once', async () => {
  const before = await reported()
  const pool = new pg.Pool({ ...bed.config, options: '-c search_path=m,public' })
  const moment = await createHistoryMoments(pool)()
  const done = await Promise.all([archive(keepFour), archive(keepFour)])
  expect(done.flat()).toMatchObject([{ queries: ENDED - 4 }])
  expect(moment.archived.periods).toEqual([])
  const ofThen: unknown[] = []
  const statement = historyStatement('queries', { terms: [] }, ['query_id'], { sight: undefined })
  for await (const rows of moment.pages(statement, 3)) ofThen.push(...rows)
  expect(ofThen).toHaveLength(ENDED + 1)
  await moment.end()
  await pool.end()
  // A period is archived between the read of the read models and the read of the files.
  let archived: Promise<unknown> | undefined
  const late = createStoredQueries(
    async (text, values) => {
      const rows = await read(text, values)
      await (archived ??= archive())
      return rows
    },
    { engine, folder, limitMs: 60_000 },
  )
  expect(await late.list({}, 100, 4096)).toEqual((before as { all: unknown }).all)
})

it('The query archive reads files of an earlier version, which lack later columns', async () => {
  await archive()
  const { periods: archived } = await readArchivedQueries(read)
  const rows = async () => {
    const statement = {
      text: 'select query_id, route, cluster, routing_rule from queries order by query_id',
      values: [],
      reads: new Set(['queries'] as const),
    }
    const found: unknown[] = []
    for await (const some of readFiles({ engine, folder, limitMs: 60_000 }, statement, archived, []))
      found.push(...some)
    return found
  }
  const before = await rows()
  expect(before).toHaveLength(ENDED)
  const file = join(folder, archived[0]!.folder, 'queries.parquet')
  await engine.run(
    'copy (select * exclude (cluster, remote_query_id, routing_rule) from read_parquet($1)) to $2 (format parquet)',
    [file, `${file}.new`],
  )
  renameSync(`${file}.new`, file)
  expect(await rows()).toEqual(before)
})

it('The query archive forgets a query at once, rewrites its files, and is emptied by a rebuild', async () => {
  await archive()
  const [gone, kept] = [ids[1]!, ids[2]!]
  const keptBefore = await streamOf(kept)
  const events = await bed.log.forgettable(gone)
  await bed.log.append('system', 1, [
    {
      type: 'DataForgotten',
      v: 2,
      time: '2026-03-02T10:00:00.000Z',
      data: { stream: gone, sequences: events.map(({ sequence }) => sequence), by: 'eve' },
    },
  ])
  await bed.log.forget(
    gone,
    events.map(({ sequence }) => sequence),
  )
  await project()
  const [file] = readdirSync(folder)
  const check = async (): Promise<void> => {
    expect(await streamOf(gone)).toEqual(
      events.map(({ sequence }) => expect.objectContaining({ sequence, forgotten: true })),
    )
    expect((await stored.list({}, 100, 10)).map((row) => row.query_id)).not.toContain(gone)
    expect(await streamOf(kept)).toEqual(keptBefore)
  }
  await check()
  await forgetOnly()
  await check()
  expect(readdirSync(folder)).toHaveLength(1)
  expect(readdirSync(folder)).not.toEqual([file])
  expect(await findings()).toEqual([])
  await rebuildReadModels({ log: bed.log, database: bed.config, clock: systemClock })
  expect([await periods(), await count('queries')]).toEqual([0, ENDED])
  await check()
  expect(await findings()).toEqual([])
  await archive()
  expect([await periods(), await count('queries')]).toEqual([1, 1])
  await check()
})
