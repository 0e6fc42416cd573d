import { randomBytes } from 'node:crypto'
import { cpSync, mkdtempSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { restoreCommand } from '../../src/cli/restore-command.ts'
import { carryOut } from '../../src/erasure/erase.ts'
import { previewErasure } from '../../src/erasure/preview.ts'
import { searchFor } from '../../src/erasure/subject.ts'
import type { Recorded } from '../../src/events/event-log.ts'
import { createParquetEngine } from '../../src/readmodels/archive/parquet-engine.ts'
import { rebuildReadModels } from '../../src/readmodels/rebuild.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { openErasureBed, type ErasureBed } from '../support/erasure-bed.ts'
import { FULL_TESTS } from '../support/full-tests.ts'
import { leaksOfTables } from '../support/leaks.ts'
import { createDatabase } from '../support/postgres.ts'
import { queryLife, testQueryId, toLogEvents } from '../support/query-life.ts'

const VALUE = 'eva.lund@example.com'
const WORDS = /eva\.lund/g
const KEPT = 'zerlina'

let erasures: ErasureBed
let bed: ErasureBed['bed']
let journal: ErasureBed['journal']
let query: ErasureBed['query']
let erase: ErasureBed['erase']

beforeEach(async () => {
  erasures = await openErasureBed()
  ;({ bed, journal, query, erase } = erasures)
})
afterEach(() => erasures.close())

/** The types of the events that contain the value, also of archived ones. */
async function leaksInEvents(): Promise<readonly string[]> {
  return (await erasures.events()).filter(({ data }) => JSON.stringify(data).match(WORDS)).map(({ type }) => type)
}

const minute = '2026-11-27T10:00'

describe('The erasure of a value', () => {
  it('removes it from log, read models and archives; the proof finds nothing, and audit and rebuild find no fault', async () => {
    await query(0, { sql: `SELECT * FROM customers WHERE email = '${VALUE}'` })
    await query(1, { sql: `-- {"app": "x", "user": "${VALUE}"}\nSELECT 1` })
    await query(2, { sql: `SELECT '${KEPT}'`, user: 'bob' })
    await erasures.archiveRecords()
    await query(3, { session: { preparedStatements: { p: `SELECT '${VALUE}'` } } })
    await query(4, { session: { properties: { query_label: VALUE } } })
    await erasures.projected()
    await erasures.archiveRows()
    await query(5, { sql: `SELECT '${'x'.repeat(20_000)}', '${VALUE}'` })
    const page = testQueryId(6)
    await bed.log.append(page, 0, toLogEvents(queryLife(page)), [{ token: 0, bytes: Buffer.from(`[["${VALUE}"]]`) }])
    const failed = testQueryId(7)
    const life = toLogEvents(queryLife(failed, { end: 'failed' }))
    await bed.log.append(
      failed,
      0,
      life.map(
        (event) => JSON.parse(JSON.stringify(event).replaceAll('Division by zero', `Bad: ${VALUE}`)) as typeof event,
      ),
    )
    await journal.record('AccessDenied', { user: 'bob', action: 'view', object: VALUE, count: 1, minute })
    await journal.record('ActStarted', {
      actId: 'an-act',
      act: 'kill',
      by: 'root',
      reason: `asked by ${VALUE}`,
      filter: { q: VALUE },
      before: '2026-01-01T00:00:00.000Z',
      matched: 0,
      queries: [],
    })
    await erasures.projected()
    expect(await leaksInEvents()).not.toEqual([])
    expect(erasures.filesWith(WORDS).map((path) => path.slice(path.lastIndexOf('.')))).toEqual(
      expect.arrayContaining(['.gz', '.parquet']),
    )

    const scope = { search: searchFor({ value: VALUE }), mentions: false }
    expect(await previewErasure(erasures.erasing.logs, scope)).toEqual({
      queries: 7,
      records: { AccessDenied: 1, ActStarted: 1 },
      kept: {},
      mentions: 0,
    })
    const result = await erase({ value: VALUE })
    expect(result).toMatchObject({ queries: 7, records: 2, waiting: [], remains: [] })
    expect(result.searched).toBeGreaterThan(20)
    // An anchor after the erasure, where the archive ends.
    await query(8, { sql: `SELECT '${KEPT}'`, user: 'bob' })
    await erasures.archiveRecords()
    await mustRestore()
    await erasures.runner.stop()
    expect(await leaksInEvents()).toEqual([])
    expect(await leaksOfTables(bed.database.url, WORDS)).toEqual([])
    expect(erasures.filesWith(WORDS)).toEqual([])
    expect(statSync(erasures.root).isDirectory()).toBe(true)
    expect(await erasures.audit()).toEqual([])
    await rebuildReadModels({ log: bed.log, database: bed.config, clock: systemClock })
    expect(await leaksOfTables(bed.database.url, WORDS)).toEqual([])
    expect(await bed.query('select query_id, sql_text from queries order by 1')).toEqual(keptRows)
    const [started] = await erasures.events('ErasureStarted')
    expect(started?.data).toMatchObject({ kind: 'value', reason: 'Article 17', by: 'officer' })
    expect((await erasures.events('ErasureEnded')).map(({ data }) => data)).toMatchObject([
      { queries: 7, records: 2, remains: [] },
    ])
  })
})

/** The rows of the queries that the first test keeps. */
const keptRows = [2, 8].map((number) => ({ query_id: testQueryId(number), sql_text: `SELECT '${KEPT}'` }))

/** Restores the archive into another database: nothing erased is there, and everything of others. */
async function mustRestore(): Promise<void> {
  const database = await createDatabase()
  const folder = ['--data-dir', erasures.root, '--archive-folder', join(erasures.root, 'archive')]
  const written = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  expect(await restoreCommand(['--into', database.url, ...folder], {})).toBe(0)
  written.mockRestore()
  const root = mkdtempSync(join(tmpdir(), 'quipu-restored-'))
  cpSync(join(erasures.root, 'archive'), join(root, 'archive'), { recursive: true })
  const restored = await openErasureBed({ filled: { database, root } })
  try {
    await restored.projected()
    const ofOthers = async (bed: ErasureBed) => (await bed.events()).filter(({ stream }) => stream === testQueryId(2))
    const comparable = (events: readonly Recorded[]) => events.map(({ position: _, ...event }) => event)
    expect(comparable(await ofOthers(restored))).toEqual(comparable(await ofOthers(erasures)))
    const rows = 'select query_id, sql_text from queries order by 1'
    expect(await restored.bed.query(rows)).toEqual(keptRows)
    await restored.runner.stop()
    expect(await leaksOfTables(database.url, WORDS)).toEqual([])
    // The archive ends at an anchor, which may lie between two events of the last query.
    expect((await restored.audit()).filter(({ kind }) => kind !== 'query-without-end')).toEqual([])
  } finally {
    await restored.close()
  }
}

describe('The erasure of a user', () => {
  it('removes their queries and records, keeps those of others, and says what still names them', async () => {
    const own = [
      await query(0, { user: 'eva' }),
      await query(1, { user: 'service', session: { originalUser: 'eva' } }),
      await query(2, { user: 'service', sql: '/* {"app": "redash", "user": "eva"} */ SELECT 1' }),
    ]
    const mentioned = await query(3, { user: 'bob', sql: `SELECT 'eva'` })
    const other = await query(4, { user: 'bob', sql: `SELECT evaluated FROM medieval` })
    // Another user. The name begins with the erased name, so it counts as a mention.
    const longer = await query(5, { user: 'eva.lund' })
    await journal.record('LoggedIn', {
      user: 'eva',
      principal: 'CN=eva',
      method: 'password',
      groups: [],
      count: 1,
      minute,
    })
    await journal.record('LoggedIn', {
      user: 'bob',
      principal: 'bob',
      method: 'password',
      groups: [],
      count: 1,
      minute,
    })
    await journal.record('AccessDenied', { user: 'bob', action: 'view', object: 'query of eva', count: 1, minute })
    await journal.record('LogDropped', { number: 1, from: ['0'], to: [], by: 'eva' })
    await erasures.projected()

    const result = await erase({ user: 'eva' })
    expect(result).toMatchObject({ queries: 3, records: 1, waiting: [] })
    expect(result.remains.find(({ location }) => location === 'event log')).toBeUndefined()
    expect(result.remains).toEqual(
      expect.arrayContaining([
        {
          location: 'event log, kept records',
          found: 2,
          why: expect.stringMatching(/\(1 AccessDenied: system\/\d+; 1 LogDropped: system\/\d+\)$/),
        },
        { location: 'event log, mentions', found: 2, why: expect.stringContaining('--mentions') },
      ]),
    )
    expect(await bed.query('select query_id from queries order by 1')).toEqual(
      [mentioned, other, longer].map((query_id) => ({ query_id })),
    )
    expect(
      (await erasures.events('DataForgotten')).map(({ data }) => (data as { stream: string }).stream).toSorted(),
    ).toEqual([...own, 'system'].toSorted())
    expect(await bed.query(`select user_name from audit_log where kind = 'LoggedIn'`)).toEqual([{ user_name: 'bob' }])

    const again = await erase({ user: 'eva' }, true)
    expect(again).toMatchObject({ queries: 2, records: 1 })
    expect(again.remains.map(({ location }) => location)).toEqual([
      'event log, kept records',
      'table m.audit_log',
      'table m.query_events',
      'table quipu_log.events',
    ])
    await erasures.runner.stop()
    expect(await erasures.audit()).toEqual([])
    expect(await bed.query('select query_id from queries')).toEqual([{ query_id: other }])
  })
})

it('An erasure leaves an open query, names it, and removes it once it has ended', async () => {
  const open = testQueryId(0)
  const life = toLogEvents(queryLife(open, { sql: `SELECT '${VALUE}'` }))
  await bed.log.append(open, 0, life.slice(0, 3))
  await erasures.projected()
  const result = await erase({ value: VALUE })
  expect(result).toMatchObject({ queries: 0, waiting: [open] })
  expect(result.remains.map(({ location }) => location)).toContain('event log')
  await bed.log.append(open, 3, life.slice(3))
  await erasures.projected()
  expect(await erase({ value: VALUE })).toMatchObject({ queries: 1, waiting: [], remains: [] })
})

it('The events and the table of an erasure do not contain the value', async () => {
  await query(0, { sql: `SELECT '${VALUE}'` })
  await erasures.projected()
  const id = await erasures.request({ value: VALUE })
  expect(await bed.query(`select from quipu_log.erasures e where e::text like '%eva%'`)).toEqual([])
  await carryOut(erasures.deps(), id)
  expect(await bed.query(`select id from quipu_log.erasures where sealed is null`)).toEqual([{ id }])
})

it('An erasure finds spellings of programs, also in read models and archives', async () => {
  const person = 'éva lund'
  await query(0, { user: 'service', sql: String.raw`/* {"app": "dbt", "user": "\u00e9va lund"} */ SELECT 1` })
  await query(1, { user: 'service', sql: `SELECT 1 /* app='shop',user='%C3%A9va%20lund' */` })
  await query(2, { user: person.normalize('NFD') })
  await query(3, { user: 'bob' })
  await erasures.projected()
  await erasures.archiveRows()
  expect(await erase({ user: person })).toMatchObject({ queries: 3, waiting: [], remains: [] })
  expect(await erase({ value: 'no such\u0000value' })).toMatchObject({ queries: 0, remains: [] })
})

it('The proof searches tables of any width', async () => {
  const columns = Array.from({ length: 120 }, (_, index) => `c${index} text`)
  await bed.query(`create table wide (${columns.join(', ')})`)
  await bed.query(`insert into wide (c0, c119) values (null, '${VALUE}')`)
  for (const coded of ['eva%2Elund@example.com', String.raw`\u0065va.lund@example.com`, '50% of \\users'])
    await bed.query('insert into wide (c119) values ($1)', [coded])
  const { remains } = await erase({ value: VALUE })
  expect(remains.map(({ location, found }) => ({ location, found }))).toEqual([
    { location: expect.stringContaining('wide'), found: 3 },
  ])
})

it('An erasure rewrites archives without a change of unusual characters and long texts of other queries', async () => {
  const texts = {
    'other line ends': `'\u2028\u2029\u0085\r\n\v\f'`,
    'half of a pair': `'\ud83d' || '\udca7'`,
    'the character 0': `'\u0000'`,
    'codes of JSON': String.raw`'\u2028 \ud83d \u0000 \n \\n'`,
    megabytes: `'${randomBytes((FULL_TESTS ? 5 : 1) << 20).toString('hex')}'`,
  }
  const kept: string[] = []
  for (const [index, text] of Object.values(texts).entries()) {
    kept.push(await query(2 * index, { sql: `SELECT ${text}` }))
    await query(2 * index + 1, { sql: `SELECT ${text}, '${VALUE}'` })
  }
  await erasures.archiveRecords()
  await erasures.archiveRows()
  const keptEvents = async () => (await erasures.events()).filter(({ stream }) => kept.includes(stream))
  const [events, rows] = [await keptEvents(), await rowsInFiles(kept)]
  expect(events).toHaveLength(7 * kept.length)
  expect(rows).toHaveLength(8 * kept.length)
  expect(await erase({ value: VALUE })).toMatchObject({ queries: kept.length, waiting: [], remains: [] })
  expect(await keptEvents()).toEqual(events)
  expect(await rowsInFiles(kept)).toEqual(rows)
  expect(await erasures.audit()).toEqual([])
})

/** The rows of queries, and of their events, in the Parquet files. */
async function rowsInFiles(ids: readonly string[]): Promise<readonly string[]> {
  const folder = join(erasures.root, 'archive', (await bed.log.tip()).logId, 'queries')
  const engine = createParquetEngine(folder)
  const rows: string[] = []
  try {
    for (const [file, id] of [
      ['queries', 'query_id'],
      ['query_events', 'stream'],
    ] as const) {
      const text = `select to_json(t)::varchar from read_parquet($1) t where list_contains($2::varchar[], ${id}) order by 1`
      for await (const part of engine.rows(text, [join(folder, '*', `${file}.parquet`), ids]))
        rows.push(...part.map(([row]) => String(row)))
    }
    return rows
  } finally {
    await engine.close()
  }
}

it('An erasure for a value that other values contain, and for a value beside another, leaves what is asked for later', async () => {
  const both = await query(0, { sql: `SELECT '${VALUE}', 'olga.berg@example.com'` })
  const longer = await query(1, { sql: `SELECT 'x${VALUE}.org'` })
  const other = await query(2, { sql: `SELECT 'olga.berg@example.com'` })
  await erasures.projected()
  expect(await erase({ value: VALUE })).toMatchObject({ queries: 2, remains: [] })
  expect(await bed.query('select query_id from queries')).toEqual([{ query_id: other }])
  expect(await erase({ value: 'olga.berg@example.com' })).toMatchObject({ queries: 1, remains: [] })
  expect(await erase({ value: VALUE })).toMatchObject({ queries: 0, remains: [] })
  const streams = (await erasures.events('DataForgotten')).map(({ data }) => (data as { stream: string }).stream)
  expect(streams.toSorted()).toEqual([both, longer, other].toSorted())
  await erasures.runner.stop()
  expect(await erasures.audit()).toEqual([])
})

it('Two erasures at once, by user and by value, both remove all that they find', async () => {
  const mine = await query(0, { user: 'eva' })
  const shared = await query(1, { user: 'eva', sql: `SELECT '${VALUE}'` })
  const theirs = await query(2, { user: 'bob', sql: `SELECT '${VALUE}'` })
  const kept = await query(3, { user: 'bob', sql: `SELECT '${KEPT}'` })
  await journal.record('AccessDenied', { user: 'eva', action: 'view', object: VALUE, count: 1, minute })
  await erasures.archiveRecords()
  const results = await Promise.all([erase({ user: 'eva' }), erase({ value: VALUE }), erase({ value: VALUE })])
  for (const result of results) expect(result.waiting).toEqual([])
  expect(results[1]!.remains).toEqual([])
  const streams = (await erasures.events('DataForgotten')).map(({ data }) => (data as { stream: string }).stream)
  expect([...new Set(streams)].toSorted()).toEqual([mine, shared, theirs, 'system'].toSorted())
  expect(await bed.query('select query_id from queries')).toEqual([{ query_id: kept }])
  await erasures.runner.stop()
  expect(await leaksInEvents()).toEqual([])
  expect(await leaksOfTables(bed.database.url, WORDS)).toEqual([])
  expect(erasures.filesWith(WORDS)).toEqual([])
  expect(await erasures.audit()).toEqual([])
})
