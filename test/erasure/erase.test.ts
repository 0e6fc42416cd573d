import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig, type Config } from '../../src/config/load-config.ts'
import { startAnchorer, type Anchorer } from '../../src/coordinator/system/anchorer.ts'
import { createSystemJournal, type SystemJournal } from '../../src/coordinator/system/system-journal.ts'
import { carryOut, type EraseDeps } from '../../src/erasure/erase.ts'
import type { ErasureResult } from '../../src/erasure/erasure-store.ts'
import { previewErasure } from '../../src/erasure/preview.ts'
import { searchFor, type Subject } from '../../src/erasure/subject.ts'
import type { Finding } from '../../src/events/audit/finding.ts'
import { beginning, type Recorded } from '../../src/events/event-log.ts'
import { PostgresRecordStore } from '../../src/events/postgres/postgres-record-store.ts'
import type { ProjectionRunner } from '../../src/events/projection-runner.ts'
import { archiveLog } from '../../src/processes/event-log/archive-log.ts'
import { archivesOf } from '../../src/processes/event-log/archives-of.ts'
import { openErasing, type Erasing } from '../../src/processes/event-log/erasing.ts'
import { queryArchiveFolder } from '../../src/processes/event-log/query-archive-of.ts'
import { createParquetEngine } from '../../src/readmodels/archive/parquet-engine.ts'
import { archiveQueries } from '../../src/readmodels/archive/query-archive.ts'
import { verifyLog } from '../../src/readmodels/audit/verify-log.ts'
import { rebuildReadModels } from '../../src/readmodels/rebuild.ts'
import { systemClock } from '../../src/shared/clock.ts'
import { FULL_TESTS } from '../support/full-tests.ts'
import { leaksOfTables } from '../support/leaks.ts'
import { appendLives, queryLife, testQueryId, toLogEvents, type QueryLifeOptions } from '../support/query-life.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { openReadModelBed, type ReadModelBed } from '../support/read-models.ts'

const VALUE = 'eva.lund@example.com'
const WORDS = /eva\.lund/g
const KEPT = 'zerlina'
const FAR = '9999-01-01T00:00:00.000Z'

let bed: ReadModelBed
let root: string
let config: Config
let runner: ProjectionRunner
let journal: SystemJournal
let erasing: Erasing
let anchorer: Anchorer
let anchors = 0
const { privateKey, publicKey } = generateKeyPairSync('ed25519')

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'quipu-erasure-'))
  config = loadConfig(['--data-dir', root, '--archive-folder', join(root, 'archive')], {})
  bed = await openReadModelBed(undefined, { archiveOf: archivesOf(config), now: Date.now })
  journal = createSystemJournal(bed.log, systemClock)
  anchors = 0
  anchorer = startAnchorer({
    log: bed.log,
    partitions: 1,
    journal,
    key: { private: privateKey, public: publicKey },
    previous: undefined,
    everyMs: 60_000,
    everyEvents: 7,
    onAnchored: () => anchors++,
    onEnd: () => {},
  })
  runner = await bed.startRunner()
  erasing = openErasing({ config, secret: 'a secret of the tests', connection: bed.config, log: bed.log })
})
afterEach(async () => {
  await anchorer.stop()
  await erasing.close()
  await bed.close()
  rmSync(root, { recursive: true, force: true })
})

async function projected(): Promise<void> {
  expect(await runner.barrier(60_000)).toBe(true)
}

async function query(number: number, options: QueryLifeOptions = {}): Promise<string> {
  const queryId = testQueryId(number)
  const before = anchors
  await appendLives(bed.log, [{ queryId, events: queryLife(queryId, options) }])
  await waitUntil('an anchor is made', () => anchors > before)
  return queryId
}

const depsOf = (over: Partial<EraseDeps> = {}): EraseDeps => ({
  ...erasing.deps({ journal, projected }),
  waitMs: 0,
  ...over,
})

async function request(subject: Subject, mentions = false): Promise<string> {
  const id = crypto.randomUUID()
  await erasing.store.add(id, { subject, mentions, reason: 'Article 17' }, { by: 'officer' })
  return id
}

async function erase(subject: Subject, mentions = false): Promise<ErasureResult> {
  return carryOut(depsOf(), await request(subject, mentions))
}

async function audit(): Promise<Finding[]> {
  const archiveOf = archivesOf(config)
  const store = new PostgresRecordStore(bed.config, { archiveOf })
  const findings: Finding[] = []
  try {
    const { partitions } = await store.open()
    await verifyLog({
      store,
      partitions,
      database: bed.config,
      compareWith: bed.log,
      archiveOf,
      queriesFolderOf: (logId) => queryArchiveFolder(config, logId),
      onFinding: (finding) => findings.push(finding),
    })
    return findings
  } finally {
    await store.close()
  }
}

/** Moves all records so far to the archive. */
async function archiveRecords(): Promise<void> {
  await projected()
  const archive = archivesOf(config)((await bed.log.tip()).logId)
  const store = new PostgresRecordStore(bed.config, { archiveOf: archivesOf(config) })
  await store.open()
  const policy = { before: FAR, keepRecords: undefined, mostRecords: 1_000_000n, leastRecords: 1n, leastMs: 0 }
  const { archived } = await archiveLog(
    {
      log: bed.log,
      epoch: 1,
      journal,
      store,
      dropper: store.dropper,
      archive,
      query: (text, values) => bed.query(text, [...values]),
      key: publicKey,
    },
    policy,
  )
  expect(archived.length).toBeGreaterThan(0)
  await store.close()
  await projected()
}

/** Moves the rows of all ended queries to Parquet files. */
async function archiveRows(): Promise<void> {
  const folder = queryArchiveFolder(config, (await bed.log.tip()).logId)
  const engine = createParquetEngine(folder)
  const policy = { before: FAR, keepQueries: undefined, leastQueries: 1, leastMs: 0 }
  expect(await archiveQueries({ database: bed.config, engine, folder }, policy)).toHaveLength(1)
  await engine.close()
}

/** The files below the folder that contain the value, unpacked where they are packed. */
function leakingFiles(folder = root): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return leakingFiles(path)
    const bytes = readFileSync(path)
    return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('latin1').match(WORDS) ? [path] : []
  })
}

/** The types of the events that contain the value, also of archived ones. */
async function leaksInEvents(): Promise<readonly string[]> {
  return (await eventsOf()).filter(({ data }) => JSON.stringify(data).match(WORDS)).map(({ type }) => type)
}

async function eventsOf(type?: string): Promise<readonly Recorded[]> {
  const found: Recorded[] = []
  for (let from = beginning(); ;) {
    const { events, next } = await bed.log.read(from, 1000)
    if (events.length === 0) return found
    found.push(...events.filter((event) => type === undefined || event.type === type))
    from = next
  }
}

const minute = '2026-11-27T10:00'

describe('The erasure of a value', () => {
  it('removes it from log, read models and archives; the proof finds nothing, and audit and rebuild find no fault', async () => {
    await query(0, { sql: `SELECT * FROM customers WHERE email = '${VALUE}'` })
    await query(1, { sql: `-- {"app": "x", "user": "${VALUE}"}\nSELECT 1` })
    await query(2, { sql: `SELECT '${KEPT}'`, user: 'bob' })
    await archiveRecords()
    await query(3, { session: { preparedStatements: { p: `SELECT '${VALUE}'` } } })
    await query(4, { session: { properties: { query_label: VALUE } } })
    await projected()
    await archiveRows()
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
    await projected()
    expect(await leaksInEvents()).not.toEqual([])
    expect(leakingFiles().map((path) => path.slice(path.lastIndexOf('.')))).toEqual(
      expect.arrayContaining(['.gz', '.parquet']),
    )

    const scope = { search: searchFor({ value: VALUE }), mentions: false }
    expect(await previewErasure(erasing.logs, scope)).toEqual({
      queries: 7,
      records: { AccessDenied: 1, ActStarted: 1 },
      kept: {},
      mentions: 0,
    })
    const result = await erase({ value: VALUE })
    expect(result).toMatchObject({ queries: 7, records: 2, waiting: [], remains: [] })
    expect(result.searched).toBeGreaterThan(20)
    await runner.stop()
    expect(await leaksInEvents()).toEqual([])
    expect(await leaksOfTables(bed.database.url, WORDS)).toEqual([])
    expect(leakingFiles()).toEqual([])
    expect(statSync(root).isDirectory()).toBe(true)
    expect(await audit()).toEqual([])
    await rebuildReadModels({ log: bed.log, database: bed.config, clock: systemClock })
    expect(await leaksOfTables(bed.database.url, WORDS)).toEqual([])
    expect(await bed.query('select query_id, sql_text from queries')).toEqual([
      { query_id: testQueryId(2), sql_text: `SELECT '${KEPT}'` },
    ])
    const [started] = await eventsOf('ErasureStarted')
    expect(started?.data).toMatchObject({ kind: 'value', reason: 'Article 17', by: 'officer' })
    expect((await eventsOf('ErasureEnded')).map(({ data }) => data)).toMatchObject([
      { queries: 7, records: 2, remains: [] },
    ])
  })
})

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
    await projected()

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
    expect((await eventsOf('DataForgotten')).map(({ data }) => (data as { stream: string }).stream).toSorted()).toEqual(
      [...own, 'system'].toSorted(),
    )
    expect(await bed.query(`select user_name from audit_log where kind = 'LoggedIn'`)).toEqual([{ user_name: 'bob' }])

    const again = await erase({ user: 'eva' }, true)
    expect(again).toMatchObject({ queries: 2, records: 1 })
    expect(again.remains.map(({ location }) => location)).toEqual([
      'event log, kept records',
      'table m.audit_log',
      'table m.query_events',
      'table quipu_log.events',
    ])
    await runner.stop()
    expect(await audit()).toEqual([])
    expect(await bed.query('select query_id from queries')).toEqual([{ query_id: other }])
  })
})

class Killed extends Error {}

/** Makes the functions that throw once, before or after their work. */
function killing(point: string) {
  let armed = true
  return async <T>(here: string, work: () => Promise<T>): Promise<T> => {
    if (armed && point === `before ${here}`) {
      armed = false
      throw new Killed(point)
    }
    const done = await work()
    if (armed && point === `after ${here}`) {
      armed = false
      throw new Killed(point)
    }
    return done
  }
}

describe('An erasure whose process is killed', () => {
  it.each([
    'after DataForgotten',
    'after ErasureEnded',
    ...(FULL_TESTS
      ? [
          'after ErasureStarted',
          'after the data of a query is gone',
          'after a step',
          'before the proof',
          'before ErasureEnded',
        ]
      : []),
  ])('%s is completed by the next writer, and each query is recorded once', async (point) => {
    const queries = [0, 1, 2].map(testQueryId)
    await appendLives(
      bed.log,
      queries.map((queryId) => ({ queryId, events: queryLife(queryId, { sql: `SELECT '${VALUE}'` }) })),
    )
    await journal.record('AccessDenied', { user: 'bob', action: 'view', object: VALUE, count: 1, minute })
    await projected()
    const id = await request({ value: VALUE })
    const at = killing(point)
    const dying: SystemJournal = {
      ...journal,
      record: (type, data) => at(type, () => journal.record(type, data as never)),
    }
    const deps = erasing.deps({ journal: dying, projected })
    const dyingDeps: EraseDeps = {
      ...deps,
      prove: (subject, erasureId) => at('the proof', () => deps.prove(subject, erasureId)),
      writer: {
        ...deps.writer,
        forgetQuery: (...args) => at('the data of a query is gone', () => deps.writer.forgetQuery(...args)),
      },
      onStep: () => {},
      store: {
        get: (...args) => deps.store.get(...args),
        subjectOf: (...args) => deps.store.subjectOf(...args),
        begin: (...args) => deps.store.begin(...args),
        reach: (...args) => at('a step', () => deps.store.reach(...args)),
        end: (...args) => deps.store.end(...args),
      },
    }
    await expect(carryOut(dyingDeps, id)).rejects.toThrow(Killed)
    expect((await erasing.store.open()).map((one) => one.id)).toEqual([id])
    const result = await carryOut(depsOf(), id)
    expect(result).toMatchObject({ queries: 3, records: 1, waiting: [], remains: [] })
    expect(await erasing.store.open()).toEqual([])
    const forgotten = (await eventsOf('DataForgotten')).map(({ data }) => (data as { stream: string }).stream)
    expect(forgotten.filter((stream) => stream !== 'system').toSorted()).toEqual(queries)
    for (const type of ['ErasureStarted', 'ErasureEnded']) expect(await eventsOf(type)).toHaveLength(1)
    expect(await leaksOfTables(bed.database.url, WORDS)).toEqual([])
    expect(await audit()).toEqual([])
  })
})

it('An erasure leaves an open query, names it, and removes it once it has ended', async () => {
  const open = testQueryId(0)
  const life = toLogEvents(queryLife(open, { sql: `SELECT '${VALUE}'` }))
  await bed.log.append(open, 0, life.slice(0, 3))
  await projected()
  const result = await erase({ value: VALUE })
  expect(result).toMatchObject({ queries: 0, waiting: [open] })
  expect(result.remains.map(({ location }) => location)).toContain('event log')
  await bed.log.append(open, 3, life.slice(3))
  await projected()
  expect(await erase({ value: VALUE })).toMatchObject({ queries: 1, waiting: [], remains: [] })
})

it('The events and the table of an erasure do not contain the value', async () => {
  await query(0, { sql: `SELECT '${VALUE}'` })
  await projected()
  const id = await request({ value: VALUE })
  expect(await bed.query(`select from quipu_log.erasures e where e::text like '%eva%'`)).toEqual([])
  await carryOut(depsOf(), id)
  expect(await bed.query(`select id from quipu_log.erasures where sealed is null`)).toEqual([{ id }])
})

it('An erasure finds spellings of programs, also in read models and archives', async () => {
  const person = 'éva lund'
  await query(0, { user: 'service', sql: String.raw`/* {"app": "dbt", "user": "\u00e9va lund"} */ SELECT 1` })
  await query(1, { user: 'service', sql: `SELECT 1 /* app='shop',user='%C3%A9va%20lund' */` })
  await query(2, { user: person.normalize('NFD') })
  await query(3, { user: 'bob' })
  await projected()
  await archiveRows()
  expect(await erase({ user: person })).toMatchObject({ queries: 3, waiting: [], remains: [] })
  expect(await erase({ value: 'no such\u0000value' })).toMatchObject({ queries: 0, remains: [] })
})

it('The proof searches tables of any width', async () => {
  const columns = Array.from({ length: 120 }, (_, index) => `c${index} text`)
  await bed.query(`create table wide (${columns.join(', ')})`)
  await bed.query(`insert into wide (c0, c119) values (null, '${VALUE}')`)
  const { remains } = await erase({ value: VALUE })
  expect(remains.map(({ location, found }) => ({ location, found }))).toEqual([
    { location: expect.stringContaining('wide'), found: 1 },
  ])
})
