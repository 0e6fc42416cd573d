import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCatalogs } from '../../../src/connectors/spi/catalog-files.ts'
import type { Asker, Connector } from '../../../src/connectors/spi/connector.ts'
import type { ScanQuestion } from '../../../src/connectors/spi/scan-question.ts'
import type { HistorySource } from '../../../src/connectors/system/history-schema.ts'
import { withSystemCatalog } from '../../../src/connectors/system/system-connector.ts'
import { createMetadataPort } from '../../../src/coordinator/dispatch/catalog-metadata.ts'
import { scanText } from '../../../src/execution/engine/scan-text.ts'
import { createHistorySource } from '../../../src/protocol/query/history-sources.ts'
import { createHistoryReadQueue } from '../../../src/protocol/query/history-read-queue.ts'
import { archiveQueries } from '../../../src/readmodels/archive/query-archive.ts'
import { createParquetEngine } from '../../../src/readmodels/archive/parquet-engine.ts'
import { historyTables } from '../../../src/readmodels/history/tables.ts'
import { pricesSchema } from '../../../src/readmodels/history/prices.ts'
import { createHistoryMoments } from '../../../src/readmodels/history/read-history.ts'
import { allowAll, authorizeBy, posterOf, type Authorize } from '../../../src/security/authorization.ts'
import { queryRulesOf } from '../../../src/security/rules/query-rules.ts'
import { readRules } from '../../../src/security/rules/read-rules.ts'
import { createStatementPlanner } from '../../../src/planner/statement-planner.ts'
import type { MetadataPort } from '../../../src/sql/front-end.ts'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'
import { session } from '../../support/front-end.ts'
import { queryLife, testQueryId, toLogEvents } from '../../support/query-life.ts'
import { openReadModelBed, type ReadModelBed } from '../../support/read-models.ts'
import { wireRows, type RenderedScan } from '../../support/rendered-rows.ts'
import { askerNamed } from '../../support/asker.ts'
import { knownOwner } from '../../../src/shared/limit-owner.ts'
import { planText } from '../../support/plan-text.ts'

/** The number of queries that have left the read models, in two periods. */
const ARCHIVED = 11
const NOW = Date.parse('2026-03-05T12:00:00.000Z')
const DAY = 86_400_000
/** Users, and the users that posted for them: long names, names with equal beginnings, patterns of LIKE. */
const LONG_NAME = 'x'.repeat(250)
const owners = [
  { user: 'alice' },
  { user: 'bob' },
  { user: 'bob', originalUser: 'robot' },
  { user: `${LONG_NAME}y` },
  { user: `${LONG_NAME}z` },
  { user: 'al_ce%' },
  { user: 'Ünï', originalUser: 'alice' },
] as const
const queries = Array.from({ length: 28 }, (_, i) => ({
  id: testQueryId(i + 1),
  owner: owners[i % owners.length]!,
  startMillis: NOW - 3 * DAY + i * 9 * 3_600_000,
  end: (['finished', 'failed', 'killed', 'open'] as const)[i % 4]!,
  sql: `SELECT ${i} /* ${['its', '100%', 'a_b\\', 'é😀'][i % 4]} */`,
}))

/** The prices double in the middle of the queries, some of which are archived. */
const PRICES = pricesSchema.parse({
  currency: 'EUR',
  periods: [
    { from: '2026-03-03T00:00:00Z', cpuSecond: 1, terabyteScanned: 1e9 },
    {
      from: '2026-03-05T00:00:00+01:00',
      cpuSecond: 2,
      terabyteScanned: 2e9,
      clusterHour: 3,
      clusterHours: { "it's": 4 },
    },
  ],
})

const item = (name: string) => `lake.shop.item.${name}`
/** The tables and columns that each query reads, with their lineage. */
const reading = {
  tables: [
    {
      catalog: 'lake',
      schema: 'shop',
      table: 'item',
      columns: ['id', 'price', 'day', 'unused'],
      mode: 'READ' as const,
    },
    {
      catalog: 'tpch',
      schema: 'tiny',
      table: 'nation',
      columns: ['name'],
      mode: 'READ' as const,
      paths: [{ views: ['lake.shop.all', 'lake.shop.names'], columns: ['name'] }],
    },
  ],
  views: [
    { catalog: 'lake', schema: 'shop', view: 'all', columns: ['name'], via: [] },
    { catalog: 'lake', schema: 'shop', view: 'names', columns: ['name'], via: ['lake.shop.all'] },
  ],
  columns: ['id', 'total', 'name'].map((name) => ({
    name,
    type: 'bigint',
    typeSignature: null,
    lineage: [name === 'name' ? 'tpch.tiny.nation.name' : item(name === 'id' ? 'id' : 'price')],
  })),
  lineage: {
    columns: [
      {
        position: 1,
        name: 'total',
        sources: [
          { source: item('price'), direct: 'AGGREGATION' as const, indirect: ['CONDITIONAL' as const], masked: true },
          { source: item('day'), indirect: ['CONDITIONAL' as const] },
        ],
      },
    ],
    rows: [{ source: item('day'), indirect: ['FILTER' as const, 'SORT' as const] }],
  },
}

let bed: ReadModelBed
let duckdb: InProcessDuckDB
const planner = createStatementPlanner()

beforeAll(async () => {
  duckdb = await openDuckDB()
  bed = await openReadModelBed()
  runner = await bed.startRunner({ lingerMs: 60_000, enough: 100_000 })
  for (const { id, owner, startMillis, end, sql } of queries) {
    const [created, planned, ...rest] = queryLife(id, { user: owner.user, startMillis, end, sql })
    if (created?.type !== 'QueryCreated' || planned?.type !== 'QueryPlanned') throw new Error('a life begins otherwise')
    const { session: made } = created.data
    const posted = { ...created, data: { ...created.data, session: { ...made, ...owner } } }
    await bed.log.append(id, 0, toLogEvents([posted, { ...planned, data: { ...planned.data, ...reading } }, ...rest]))
  }
  const time = new Date(NOW).toISOString()
  const minute = { count: 2, minute: time, remoteAddress: '10.1.1.1' }
  const ofOwners = owners.flatMap(({ user, ...more }) => [
    {
      type: 'LoggedIn',
      v: 1,
      time,
      data: { user, principal: `${user}@x`, method: 'password', groups: ['g'], ...minute },
    },
    { type: 'AuthenticationFailed', v: 1, time, data: { user, method: 'password', ...minute } },
    {
      type: 'AccessDenied',
      v: 2,
      time,
      data: { user, ...more, action: 'view', object: `query of ${user}`, ...minute },
    },
  ])
  const replays = owners.flatMap(({ user: by, ...more }, i) => {
    const reported = { replayId: `r${i}`, by, verdicts: { SAME: i + 1, DIFFERENT: 2 } }
    const begun = { mode: 'run', baseline: 'http://a', against: 'http://b', statements: i, asRecorded: false }
    return [
      { type: 'ReplayStarted', v: 1, time, data: { replayId: `r${i}`, by, ...more, ...begun, filter: { where: 'x' } } },
      ...(i === 1 ? [] : [{ type: 'ReplayProgressed', v: 1, time, data: reported }]),
      // A report by another user than the owner of the replay has no effect.
      { type: 'ReplayProgressed', v: 1, time, data: { ...reported, by: 'eve', verdicts: {} } },
      ...(i > 2 ? [{ type: 'ReplayEnded', v: 1, time, data: { ...reported, outcome: 'completed' } }] : []),
    ]
  })
  const erasures = owners.flatMap(({ user: by, ...more }, i) => {
    const erasureId = `e${i}`
    const begun = { kind: 'value', subjectHash: 'a1', mentions: false, reason: `request ${i}`, by, ...more }
    const ended = { queries: i, records: 2, waiting: 0, searched: 30, remains: [] }
    return [
      { type: 'ErasureStarted', v: 1, time, data: { erasureId, ...begun } },
      ...(i === 1 ? [] : [{ type: 'ErasureEnded', v: 1, time, data: { erasureId, ...ended } }]),
    ]
  })
  const acts = owners.flatMap(({ user: by, ...more }, i) => {
    const [actId, outcomes] = [`a${i}`, { done: 1 }]
    const asked = { filter: { user: by }, before: time, matched: 2, queries: ['q1', 'q2'] }
    return [
      { type: 'ActStarted', v: 1, time, data: { actId, act: 'kill', by, ...more, reason: 'why', ...asked } },
      ...(i === 1 ? [] : [{ type: 'ActProgressed', v: 1, time, data: { actId, through: 1, outcomes, problems: [] } }]),
      ...(i > 2 ? [{ type: 'ActEnded', v: 1, time, data: { actId, outcomes: { done: 2 }, problems: [] } }] : []),
    ]
  })
  await bed.log.append('system', 1, [...ofOwners, ...replays, ...erasures, ...acts])
  await runner.barrier(60_000)
  const [border] = await bed.query<{ at: Date }>(
    'select ended_at as at from queries where ended_at is not null order by ended_at offset $1 limit 1',
    [ARCHIVED],
  )
  for (const before of [new Date(NOW - 2 * DAY).toISOString(), border!.at.toISOString()])
    await archiveQueries(
      { database: bed.config, engine, folder },
      { before, keepQueries: undefined, leastQueries: 1, leastMs: 0 },
    )
  const archived = await bed.query('select queries from quipu_log.query_periods order by number')
  expect(archived).toHaveLength(2)
})
afterAll(async () => {
  await engine.close()
  rmSync(folder, { recursive: true, force: true })
  duckdb?.close()
  await bed?.close()
})

let runner: Awaited<ReturnType<ReadModelBed['startRunner']>>
const folder = mkdtempSync(join(tmpdir(), 'quipu-queries-'))
const engine = createParquetEngine(folder)
const files = { engine, folder, limitMs: 60_000 }

function sourceFor(authorize: Authorize): HistorySource {
  return createHistorySource({
    moments: createHistoryMoments(bed.pool),
    files,
    projection: runner,
    read: (text, values) => bed.query(text, [...values]),
    ownWritesWaitMs: 10_000,
    authorize,
    queue: createHistoryReadQueue({ atOnce: 3, waitMs: 60_000, what: 'The history' }),
    prices: () => PRICES,
  })
}

function systemFor(authorize: Authorize): Connector {
  const runtime = () => Promise.reject(new Error('not of the runtime'))
  const sources = () => ({
    runtime: {
      nodes: runtime,
      optimizer_rule_stats: runtime,
      queries: runtime,
      tasks: runtime,
      transactions: runtime,
      operators: runtime,
      events: runtime,
    },
    history: sourceFor(authorize),
  })
  return withSystemCatalog(createCatalogs(new Map()), sources, historyTables).get('system')!
}

interface Run {
  readonly rows: unknown[][]
  readonly questions: readonly (ScanQuestion | undefined)[]
  /** Rows that the tables gave. */
  readonly read: number
}

/** @param pushed whether tables say that they answer questions */
async function run(sql: string, asker: Asker, authorize: Authorize, pushed = true): Promise<Run> {
  const system = systemFor(authorize)
  const port = createMetadataPort({ names: () => ['system'], get: (name) => (name === 'system' ? system : undefined) })
  const metadata: MetadataPort = pushed
    ? port
    : {
        ...port,
        table: async (...name) => {
          const table = await port.table(...name)
          if (!table) return undefined
          const { answers: _, ...plain } = table
          return plain
        },
      }
  const as = { ...session, user: asker.user, startTimeMillis: NOW, catalog: 'system', schema: 'history' }
  const analyzed = await planText(planner, sql, as, metadata)
  if (analyzed.kind !== 'query') throw new Error('no query')
  const texts = new Map<RenderedScan, string>()
  let read = 0
  for (const scan of analyzed.query.scans) {
    const splits = JSON.parse(JSON.stringify(await system.listSplits(scan.handle, scan.where, scan.question)))
    const loaded = await system.loadSplits!(splits, scan.columns, asker)
    read += loaded[0]!.rows!
    texts.set(scan, `(${scanText(await system.tableSource(loaded, scan.columns))})`)
  }
  const rows = await wireRows(duckdb.connection, analyzed.query, (scan) => texts.get(scan)!)
  return { rows, read, questions: analyzed.query.scans.map(({ question }) => question) }
}

/** Tables whose rows belong to a user, with their column of the original user and a column to sum. */
const persons = {
  log_ins: ['CAST(NULL AS varchar)', 'attempts'],
  refusals: ['original_user', 'attempts'],
  replays: ['original_user', 'statements'],
  erasures: ['original_user', 'queries'],
  acts: ['original_user', 'matched'],
} as const

const root: Asker = askerNamed('root')
const sorted = (rows: unknown[][]): string[] => rows.map((row) => JSON.stringify(row)).sort()

/** Checks that the rows are the same whether the tables answer questions or give all their rows. */
async function same(sql: string): Promise<Run> {
  const [asked, plain] = [await run(sql, root, allowAll), await run(sql, root, allowAll, false)]
  expect([sql, sorted(asked.rows)]).toEqual([sql, sorted(plain.rows)])
  expect(asked.read).toBeLessThanOrEqual(Math.max(1, plain.read))
  return asked
}

describe('system.history', () => {
  it('has every declared column, in plain selects and in groups', async () => {
    for (const [table, { columns, view }] of historyTables) {
      if (view !== undefined) continue
      const { rows } = await run(`SELECT * FROM ${table}`, root, allowAll)
      if (table !== 'tables_written') expect([table, rows.length > 0]).toEqual([table, true])
      const plain = Object.entries(columns).flatMap(([column, type]) =>
        type.startsWith('array') ? [] : [`"${column}"`],
      )
      const measures = plain.flatMap((column) => [`count(${column})`, `min(${column})`, `max(${column})`])
      await same(`SELECT count(*), ${measures.join(', ')} FROM ${table}`)
      await same(`SELECT ${plain.join(', ')}, count(*) FROM ${table} GROUP BY ${plain.join(', ')}`)
    }
  })

  it.each([
    [`SELECT count(*) FROM queries`, 1],
    [
      `SELECT user, count(*) c FROM queries WHERE state <> 'FINISHED' GROUP BY user HAVING count(*) > 1 ORDER BY c DESC`,
      7,
    ],
    [
      `SELECT state, date_trunc('day', created) d, sum(output_rows), sum(elapsed_ms), max(created) FROM queries GROUP BY 1, 2`,
      28,
    ],
    [
      `SELECT CAST(created AS date) d, count(*) FROM queries WHERE created >= TIMESTAMP '2026-03-03 00:00:00' GROUP BY 1`,
      11,
    ],
    [`SELECT DISTINCT user, state FROM queries WHERE user LIKE 'b%'`, 4],
    [`SELECT query_id FROM queries ORDER BY created DESC LIMIT 3`, 3],
    [
      `SELECT query_id, upper(state) FROM queries WHERE state IN ('FAILED', 'FINISHED') ORDER BY created DESC, query_id OFFSET 2 LIMIT 3`,
      5,
    ],
    [`SELECT query_id FROM queries ORDER BY ended DESC LIMIT 30`, 28],
    [`SELECT query_id FROM queries ORDER BY error_name NULLS FIRST, user, query_id LIMIT 11`, 11],
    [`SELECT count(*) FROM queries WHERE created BETWEEN now() - INTERVAL '2' DAY AND current_timestamp`, 1],
    [`SELECT count(*) FROM queries WHERE CAST(created AS date) = DATE '2026-03-03'`, 1],
    [`SELECT count(*) FROM queries WHERE date(created) > current_date - INTERVAL '2' DAY AND user = 'bob'`, 1],
    [`SELECT count(*) FROM queries WHERE created >= current_date - INTERVAL '1' DAY`, 1],
    [`SELECT max(query) FROM queries WHERE query LIKE '%!%%' ESCAPE '!'`, 1],
    [`SELECT count(*) FROM queries WHERE user LIKE 'al_ce%'`, 1],
    [`SELECT count(*) FROM queries WHERE user LIKE 'al!_ce!%' ESCAPE '!'`, 1],
    [`SELECT query_id FROM queries WHERE user IN ('${LONG_NAME}y', 'nobody')`, 4],
    [`SELECT count(*) FROM queries WHERE original_user IS NOT NULL AND elapsed_ms > 1.5`, 1],
    [`SELECT count(*) FROM queries WHERE '2026' < query_id AND error_code IS NULL AND NOT partial`, 28],
    [`SELECT user FROM (SELECT user, count(*) c FROM queries GROUP BY user) WHERE c > 4`, 7],
    [
      `SELECT q.query_id, t.table_name FROM queries q JOIN tables_read t ON q.query_id = t.query_id WHERE q.user = 'bob' AND t.table_name = 'nowhere'`,
      0,
    ],
    [`SELECT count(*) FROM tasks WHERE query_id IN (SELECT query_id FROM queries WHERE user = 'alice')`, 99],
    [
      `SELECT o.operator_type FROM operators o WHERE o.query_id = (SELECT query_id FROM queries WHERE user = 'alice' ORDER BY elapsed_ms DESC, query_id LIMIT 1)`,
      9,
    ],
    [`SELECT count(*) FROM tasks WHERE query_id = (SELECT max(query_id) FROM queries WHERE state = 'FINISHED')`, 3],
    [
      `SELECT t.task_id, q.user FROM queries q LEFT JOIN tasks t ON t.query_id = q.query_id AND t.state = 'FINISHED' WHERE q.user = 'bob'`,
      18,
    ],
    [
      `SELECT q.user, count(*) FROM queries q JOIN tasks t ON t.query_id = q.query_id JOIN operators o ON o.task_id = t.task_id WHERE q.user = 'alice' AND t.stage_id = 1 GROUP BY q.user`,
      80,
    ],
    [`SELECT count(*) FROM tasks WHERE query_id NOT IN (SELECT query_id FROM queries WHERE user = 'alice')`, 99],
    [
      `SELECT count(*) FROM tasks t RIGHT JOIN queries q ON t.query_id = q.query_id AND q.user = 'bob' WHERE q.state = 'FINISHED'`,
      99,
    ],
    [
      `WITH f AS (SELECT * FROM queries WHERE state = 'FAILED') SELECT count(*) FROM f UNION ALL SELECT count(*) FROM f WHERE user = 'bob'`,
      28,
    ],
    [`SELECT task_id FROM tasks WHERE created < TIMESTAMP '2026-03-02 00:00:00 UTC'`, 99],
    [`SELECT count(*) FROM tasks WHERE ended < TIMESTAMP '2026-03-02 00:00:00 UTC'`, 1],
    [`SELECT count(*) FROM operators WHERE ended < TIMESTAMP '2026-03-02 00:00:00 UTC'`, 1],
    [`SELECT type, count(*), max(length(data)) FROM events GROUP BY type`, 999],
    [`SELECT type, count(*) FROM events WHERE stream = '${queries[0]!.id}' GROUP BY type`, 99],
    [`SELECT data FROM events WHERE type = 'QueryCreated' ORDER BY time, stream, sequence LIMIT 5`, 5],
    [`SELECT query_id FROM queries TABLESAMPLE BERNOULLI (100) WHERE user = 'bob'`, 28],
    [`SELECT count(DISTINCT user), count(*) FILTER (WHERE state = 'FAILED') FROM queries`, 28],
    [`SELECT user, row_number() OVER (ORDER BY created) FROM queries WHERE user = 'bob' LIMIT 4`, 8],
    [`SELECT user, count(*) FROM queries GROUP BY GROUPING SETS ((user), ())`, 28],
    [`SELECT sum(retries) FROM queries WHERE user = 'nobody'`, 1],
    [`SELECT query_id FROM queries WHERE user = 'bob' ORDER BY 1 FETCH FIRST 2 ROWS ONLY`, 2],
    [`SELECT count(*) FROM queries WHERE user = 'alice' || ''`, 28],
  ])('returns the same rows with and without questions, and reads few: %s', async (sql, most) => {
    const { read } = await same(sql)
    // The read models and the archive each give the first rows of an order.
    expect(read).toBeLessThanOrEqual(/LIMIT|FETCH/.test(sql) ? 2 * most : most)
  })

  it('lists the columns that a query read, with their lineage', async () => {
    const sql = `SELECT table_name, column_name, output_name, transformation, effects, masked FROM columns_read WHERE query_id = '${queries[0]!.id}'`
    const { rows } = await same(sql)
    expect(rows).toEqual([
      ['item', 'price', 'total', 'AGGREGATION', ['CONDITIONAL'], true],
      ['item', 'day', 'total', null, ['CONDITIONAL'], false],
      ['item', 'id', 'id', 'IDENTITY', [], false],
      ['nation', 'name', 'name', 'IDENTITY', [], false],
      ['item', 'day', null, null, ['FILTER', 'SORT'], false],
      ['item', 'unused', null, null, [], false],
    ])
    await same(
      `SELECT user, count(*) FROM columns_read WHERE table_name = 'item' AND column_name = 'price' GROUP BY user`,
    )
  })

  it('lists the views through which a query read a table or a column', async () => {
    const ofQuery = `WHERE query_id = '${queries[0]!.id}'`
    const views = ['lake.shop.all', 'lake.shop.names']
    const tables = await same(`SELECT table_name, access, views, columns FROM tables_read ${ofQuery}`)
    expect(tables.rows).toEqual([
      ['item', 'DIRECT', null, ['id', 'price', 'day', 'unused']],
      ['nation', 'VIEW', views, ['name']],
    ])
    const columns = await same(`SELECT column_name, views FROM columns_read ${ofQuery} AND access = 'VIEW'`)
    expect(columns.rows).toEqual([['name', views]])
    const read = await same(`SELECT view_name, access, views, columns FROM views_read ${ofQuery}`)
    expect(read.rows).toEqual([
      ['all', 'DIRECT', null, ['name']],
      ['names', 'VIEW', ['lake.shop.all'], ['name']],
    ])
    await same(`SELECT access, count(*) FROM tables_read GROUP BY access`)
  })

  it('gives costs by the prices of the time of a query, in the tables and in the archive', async () => {
    const { rows } = await same(
      `SELECT CASE WHEN created < TIMESTAMP '2026-03-03 00:00:00 UTC' THEN 0 WHEN created < TIMESTAMP '2026-03-04 23:00:00 UTC' THEN 1 ELSE 2 END,
         count(*), min(cost), max(cost), currency
       FROM queries WHERE state = 'FINISHED' GROUP BY 1, currency ORDER BY 1`,
    )
    // 0.12 s of CPU and 10,240 bytes.
    const cost = 0.12 + 10.24
    expect(rows.map(([period, , least, most, currency]) => [period, least, most, currency])).toEqual([
      [0, null, null, 'EUR'],
      [1, cost, cost, 'EUR'],
      [2, 2 * cost, 2 * cost, 'EUR'],
    ])
    await same(`SELECT currency, count(cost), max(cost) FROM queries WHERE cost > 11 GROUP BY currency`)
    await same(`SELECT query_id, cost FROM queries ORDER BY cost DESC, query_id LIMIT 5`)
  })

  it('shows the progress and the outcome of each replay', async () => {
    const { rows } = await same(
      `SELECT replay_id, outcome, ended IS NULL, json_extract_scalar(verdicts, '$.SAME'), filter FROM replays WHERE replay_id < 'r5' ORDER BY 1`,
    )
    expect(rows).toEqual([
      ['r0', null, true, '1', '{"where": "x"}'],
      ['r1', null, true, null, '{"where": "x"}'],
      ['r2', null, true, '3', '{"where": "x"}'],
      ['r3', 'completed', false, '4', '{"where": "x"}'],
      ['r4', 'completed', false, '5', '{"where": "x"}'],
    ])
  })

  it('answers the example queries of the documents with the same rows with and without questions', async () => {
    const read = (name: string): string => readFileSync(new URL(`../../../docs/${name}`, import.meta.url), 'utf8')
    const questions = [...(read('history.md') + read('questions.md')).matchAll(/```sql\n(.*?)```/gs)].map(
      ([, sql]) => sql!,
    )
    expect(questions.length).toBeGreaterThanOrEqual(20)
    for (const sql of questions) await same(sql)
  })

  it('returns the same rows with and without questions, for any conditions, groups and orders', async () => {
    const condition = fc.oneof(
      fc
        .tuple(
          fc.constantFrom('user', 'state', 'query', 'error_name', 'original_user'),
          fc.constantFrom('=', '<>', '<', '>='),
          fc.constantFrom('bob', 'FAILED', 'é', 'al_ce%', '', 'DIVISION_BY_ZERO', 'SELECT 1'),
        )
        .map(([column, operator, value]) => `${column} ${operator} '${value}'`),
      fc
        .tuple(
          fc.constantFrom('user', 'query', 'query_id'),
          fc.constantFrom('%', 'b%', '%b', '_ob', '%\\ *%', 'al_ce%', '%😀%', 'SELECT _ %'),
          fc.constantFrom('', ` ESCAPE '!'`),
        )
        .map(([column, pattern, escape]) => `${column} LIKE '${pattern}'${escape}`),
      fc
        .tuple(
          fc.constantFrom('created', 'started', 'ended'),
          fc.constantFrom('<', '<=', '>', '>=', '=', '<>'),
          fc.constantFrom(
            `TIMESTAMP '2026-03-03 06:00:00.000 UTC'`,
            `TIMESTAMP '2026-03-03 01:00:00 America/New_York'`,
            `DATE '2026-03-04'`,
            `now() - INTERVAL '36' HOUR`,
            `TIMESTAMP '2026-03-03 06:00:00.0000001 UTC'`,
          ),
        )
        .map((parts) => parts.join(' ')),
      fc
        .tuple(
          fc.constantFrom('CAST(created AS date)', 'date(ended)'),
          fc.constantFrom('<', '<=', '>', '>=', '=', '<>'),
          fc.constantFrom(`DATE '2026-03-04'`, `current_date`),
        )
        .map((parts) => parts.join(' ')),
      fc
        .tuple(
          fc.constantFrom('elapsed_ms', 'output_rows', 'retries', 'error_code'),
          fc.constantFrom('<', '>=', '=', '<>'),
          fc.constantFrom('0', '23', '300', '300.5', '1e2'),
        )
        .map((parts) => parts.join(' ')),
      fc.constantFrom(
        'partial',
        'ended IS NULL',
        'error_name IS NOT NULL',
        'error_name IS NULL',
        `user IN ('bob', 'Ünï')`,
        `state = 'FAILED' OR user = 'bob'`,
      ),
    )
    const shape = fc.constantFrom(
      (where: string) => `SELECT query_id, state FROM queries WHERE ${where}`,
      (where: string) =>
        `SELECT count(*), min(created), max(user), sum(output_rows), max(elapsed_ms) FROM queries WHERE ${where}`,
      (where: string) => `SELECT user, error_name, count(*) FROM queries WHERE ${where} GROUP BY 1, 2`,
      (where: string) =>
        `SELECT date_trunc('week', ended), count(ended), min(query) FROM queries WHERE ${where} GROUP BY 1`,
      (where: string) =>
        `SELECT query_id, ended FROM queries WHERE ${where} ORDER BY ended DESC NULLS FIRST, query_id DESC LIMIT 5`,
      (where: string) => `SELECT query_id FROM queries WHERE ${where} ORDER BY user, error_name, created LIMIT 4`,
    )
    await fc.assert(
      fc.asyncProperty(fc.array(condition, { minLength: 1, maxLength: 3 }), shape, async (all, make) => {
        await same(make(all.map((one) => `(${one})`).join(' AND ')))
      }),
      { numRuns: 40 },
    )
  }, 240_000)

  it('shows users only their own rows and the rows that the rules grant them', async () => {
    const rules = authorizeBy(() =>
      queryRulesOf(
        readRules(
          JSON.stringify({
            queries: [
              { user: 'auditor', allow: ['view'] },
              { group: 'leads', queryOwner: 'alice|x{250}y', allow: ['view'] },
            ],
          }),
        ),
      ),
    )
    const ownerOf = new Map<unknown, (typeof owners)[number]>(queries.map(({ id, owner }) => [id, owner]))
    const asker = fc.record(
      {
        user: fc.constantFrom('alice', 'bob', 'robot', 'eve', 'auditor', 'al_ce%', `${LONG_NAME}y`, `${LONG_NAME}`, ''),
        originalUser: fc.constantFrom('alice', 'robot', 'eve', 'auditor'),
        groups: fc.constantFrom([], ['leads']),
      },
      { requiredKeys: ['user', 'groups'] },
    )
    const idOf: Partial<Record<string, string>> = { events: 'stream' }
    const tables = [...historyTables].flatMap(([table, { view }]) => (view || table in persons ? [] : [table]))
    const statements = fc.constantFrom(
      (table: string, id: string) => `SELECT ${id}, count(*) FROM ${table} GROUP BY 1`,
      (table: string, id: string) => `SELECT ${id}, count(*) FROM ${table} WHERE ${id} LIKE '%' OR 1 = 1 GROUP BY 1`,
      (table: string, id: string) => `SELECT ${id}, 1 FROM ${table} ORDER BY ${id} LIMIT 10000`,
    )
    await fc.assert(
      fc.asyncProperty(asker, fc.constantFrom(...tables), statements, async (caller, table, make) => {
        const statement = make(table, idOf[table] ?? 'query_id')
        const all = (await run(statement, root, allowAll)).rows
        const seesAll = rules(caller, { action: 'viewAll' })
        const mine = all.filter(([id]) => {
          const query = ownerOf.get(id)
          return seesAll || (query !== undefined && rules(caller, { action: 'list', query }))
        })
        expect(sorted((await run(statement, { ...caller, owner: knownOwner(caller.user) }, rules)).rows)).toEqual(
          sorted(mine),
        )
      }),
      { numRuns: 25 },
    )
    await fc.assert(
      fc.asyncProperty(asker, fc.constantFrom(...Object.entries(persons)), async (caller, [table, [original, sum]]) => {
        const statement = `SELECT user, ${original}, count(*), sum(${sum}) FROM ${table} GROUP BY 1, 2`
        const all = (await run(statement, root, allowAll)).rows
        const mine = all.filter(
          ([user, by]) =>
            rules(caller, { action: 'viewAll' }) || user === caller.user || (by !== null && by === posterOf(caller)),
        )
        expect(sorted((await run(statement, { ...caller, owner: knownOwner(caller.user) }, rules)).rows)).toEqual(
          sorted(mine),
        )
      }),
      { numRuns: 30 },
    )
  }, 240_000)

  it('fails with an error of Quipu, without the text of the database, when a read fails', async () => {
    const reported: unknown[] = []
    const readQueue = createHistoryReadQueue({ atOnce: 3, waitMs: 1, what: 'The history' })
    const broken = (code: string) =>
      createHistorySource({
        moments: async () => ({
          archived: { periods: [], forgotten: [] },
          async *pages() {
            yield []
            throw Object.assign(new Error(`secret of ${code}`), { code })
          },
          end: async () => {},
        }),
        files,
        projection: runner,
        read: async () => [],
        ownWritesWaitMs: 10,
        authorize: allowAll,
        queue: readQueue,
        onError: (error) => reported.push(error),
      })
    const read = async (code: string): Promise<void> => {
      for await (const page of broken(code).read('queries', { terms: [] }, [], root)) expect(page).toEqual([])
    }
    await expect(read('57014')).rejects.toMatchObject({ errorName: 'EXCEEDED_TIME_LIMIT' })
    await expect(read('22003')).rejects.toMatchObject({ errorName: 'NUMERIC_VALUE_OUT_OF_RANGE' })
    await expect(read('08006')).rejects.toMatchObject({
      errorName: 'REMOTE_HOST_GONE',
      message: expect.not.stringContaining('secret'),
    })
    expect(reported).toHaveLength(3)
  })
})
