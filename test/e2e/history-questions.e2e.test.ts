import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ErasureInfo } from '../../src/protocol/info/schemas/server.ts'
import { historyTables } from '../../src/readmodels/history/tables.ts'
import { internalBearer } from '../../src/security/cluster-secret.ts'
import { embeddedConnection } from '../support/embedded-connection.ts'
import { panelSql, tablePanel } from '../support/panels.ts'
import { spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { raw, run, trinoHeaders, type Ran } from '../support/statement-client.ts'

const page = readFileSync(new URL('../../docs/questions.md', import.meta.url), 'utf8')
const numbered = [...page.matchAll(/^(\d+)\. \*\*(.*?)\*\*.*?```sql\n(.*?)```/gms)]
/** The statements of the document, by the title of their question. */
const questions = new Map(numbered.map(([, , title, sql]) => [title!, sql!]))

const SECRET = 'a secret for the tests of questions'
const DBT = '/* {"app": "dbt", "node_id": "model.shop.sales"} */'
const CARD = '-- Metabase:: userID: 7 queryType: native queryHash: ab dashboardID: 5 cardID: 12\n'
const PRICES = { currency: 'EUR', periods: [{ from: '2026-01-01T00:00:00Z', cpuSecond: 2, terabyteScanned: 1e9 }] }

describe('The questions of docs/questions.md', () => {
  const folder = temporaryFolder()
  let server: QuipuProcess
  let base: string
  let large: Ran

  const as = (user: string, sql: string, more = {}): Promise<Ran> =>
    run(base, sql, { ...trinoHeaders, 'x-trino-user': user, ...more })

  async function answer(title: string): Promise<Record<string, unknown>[]> {
    const { rows, columns, error } = await as('auditor', questions.get(title)!.trim())
    expect([title, error]).toEqual([title, undefined])
    return rows.map((row) => Object.fromEntries(columns!.map(({ name }, i) => [name, row[i]])))
  }

  beforeAll(async () => {
    const prices = join(folder.path, 'prices.json')
    writeFileSync(prices, JSON.stringify(PRICES))
    const data = join(folder.path, 'data')
    const args = ['start', '--data-dir', data, '--port', '0', '--prices-file', prices, '--log-level', 'error']
    server = spawnQuipu(args, { env: { QUIPU_SHARED_SECRET: SECRET } })
    base = await server.url
    const statements: readonly (readonly [string, string])[] = [
      [
        'alice',
        `${DBT} CREATE TABLE memory.default.sales AS SELECT orderkey AS id, totalprice AS price FROM tpch.tiny.orders`,
      ],
      ['alice', 'CREATE TABLE memory.default.idle AS SELECT 1 AS id'],
      ['alice', 'CREATE VIEW memory.default.dear AS SELECT id, price FROM memory.default.sales WHERE price > 1000'],
      ['bob', `${CARD}SELECT max(price) FROM memory.default.sales WHERE id < 10`],
      ['bob', `${CARD}SELECT max(price) FROM memory.default.sales WHERE id < 20`],
      ['bob', `${CARD}SELECT max(price) FROM memory.default.sales WHERE id < 20`],
      ['carol', 'SELECT id FROM memory.default.dear WHERE price > 2000 LIMIT 1'],
    ]
    for (const [user, sql] of statements) expect([sql, (await as(user, sql)).error]).toEqual([sql, undefined])
    expect((await as('bob', 'SELECT 1 / (nationkey - nationkey) FROM tpch.tiny.nation')).error).toBeDefined()
    large = await as('dave', 'SELECT 1 FROM tpch.tiny.lineitem UNION ALL SELECT 2 FROM tpch.tiny.lineitem')
    expect(large.rows.length).toBeGreaterThan(100_000)
  }, 240_000)

  afterAll(async () => {
    server.signal('SIGTERM')
    await server.exit
    await folder.remove()
  }, 240_000)

  it('have the numbers 1 to 16', () => {
    expect(numbered.map(([, number]) => number)).toEqual(Array.from({ length: 16 }, (_, i) => String(i + 1)))
  })

  it('give the costs by user, table and object of a program', { timeout: 240_000 }, async () => {
    const byUser = await answer('Cost by user, source and day')
    const bob = byUser.find(({ user }) => user === 'bob')!
    expect(bob).toMatchObject({ queries: 4 })
    // The files of the table are small: the price is nearly that of the CPU.
    expect(bob['cost'] as number).toBeGreaterThan(2 * (bob['cpu_seconds'] as number))
    const byTable = await answer('Cost by table')
    const sales = byTable.find(({ table_name }) => table_name === 'sales')!
    expect(sales).toMatchObject({ catalog_name: 'memory', schema_name: 'default', queries: 4 })
    expect(sales['cost'] as number).toBeGreaterThan(0)
    expect(await answer('Cost by dashboard, model and DAG')).toEqual(
      expect.arrayContaining([
        { app: 'dbt', app_object: 'model.shop.sales', queries: 1, cost: expect.any(Number) },
        { app: 'metabase', app_object: 'dashboard:5/card:12', queries: 3, cost: expect.any(Number) },
      ]),
    )
  })

  it(
    'show the readers of a table, the views that they used, and the tables without readers',
    { timeout: 240_000 },
    async () => {
      const readers = await answer('Readers of a column: directly or through which view, masked or not')
      expect(readers.map(({ last: _last, ...row }) => row)).toEqual([
        { user: 'bob', access: 'DIRECT', views: null, masked: false, queries: 3 },
        { user: 'carol', access: 'VIEW', views: ['memory.default.dear'], masked: false, queries: 1 },
      ])
      expect((await answer('Everything that a person did')).map(({ app }) => app)).toEqual(['dbt', null, null])
      expect(await answer('Everything that another user did as a person')).toEqual([])
      const unused = await answer('Tables that nobody read for 90 days, with their size')
      const memory = unused.filter(({ catalog_name }) => catalog_name === 'memory')
      expect(memory).toEqual([
        expect.objectContaining({
          table_name: 'idle',
          last_read: null,
          last_written: expect.any(String),
          row_count: 1,
        }),
      ])
      expect(unused.some(({ table_name }) => table_name === 'orders')).toBe(true)
      expect(await answer('Views over such tables')).toEqual([])
      const { rows } = await as(
        'auditor',
        "SELECT view, table_name, reads FROM system.history.view_tables WHERE catalog_name = 'memory'",
      )
      expect(rows).toEqual([['memory.default.dear', 'sales', 1]])
      const recent = await answer('New readers of sensitive tables this week')
      expect(recent.map(({ table_name, user, reads }) => [table_name, user, reads]).sort()).toEqual([
        ['sales', 'bob', 3],
        ['sales', 'carol', 1],
      ])
      expect(await answer('Who was refused, and what')).toEqual([])
    },
  )

  it('find large results, repeated and slow statements, failures and waits', { timeout: 240_000 }, async () => {
    const { rows } = await as(
      'auditor',
      `SELECT hour(created), day_of_week(created) FROM system.history.queries WHERE query_id = '${large.id}'`,
    )
    const [hour, day] = rows[0] as [number, number]
    const isLate = hour < 7 || hour > 18 || day > 5
    expect((await answer('Large results out of hours')).map(({ user }) => user)).toEqual(isLate ? ['dave'] : [])
    const dear = await answer('Statements that take the most CPU, with the share that a cache could have saved')
    const repeated = dear.find(({ normalized_query }) => String(normalized_query).includes('max(price)'))!
    expect(repeated).toMatchObject({
      normalized_query: 'SELECT max(price) FROM memory.default.sales WHERE (id < ?)',
      queries: 3,
    })
    expect(repeated['cacheable_share']).toBeGreaterThan(0)
    expect(repeated['cacheable_share']).toBeLessThan(1)
    const failures = await answer('Failures by error, user and week')
    expect(failures).toEqual([expect.objectContaining({ error_name: 'DIVISION_BY_ZERO', user: 'bob', queries: 1 })])
    expect(await answer('Statements that became slower than last month by a factor of 2')).toEqual([])
    expect(await answer('Queries that waited too long, by resource group and cause')).toEqual([])
  })

  it('say who erased what and what is left, and never what was erased', { timeout: 240_000 }, async () => {
    const headers = { authorization: `Bearer ${internalBearer(SECRET)}`, 'content-type': 'application/json' }
    // The reason of the first erasure names what the second one is about.
    const erasures = [
      { value: 'first.mark@example.com', reason: 'second.mark@example.com asked for it', by: 'officer' },
      { value: 'second.mark@example.com', reason: 'request 4712', by: 'officer' },
    ]
    for (const erasure of erasures) {
      expect((await as('eve', `SELECT '${erasure.value}'`)).error).toBeUndefined()
      const body = JSON.stringify(erasure)
      const { status, text } = await raw(`${base}/v1/erasure`, { method: 'POST', headers, body })
      expect(status, text).toBe(202)
      const { erasureId } = JSON.parse(text) as ErasureInfo
      await waitUntil(`the erasure of ${erasure.value} has ended`, async () => {
        const answered = await raw(`${base}/v1/erasure/${erasureId}`, { headers })
        return (JSON.parse(answered.text) as ErasureInfo).state === 'ENDED'
      })
    }
    const rows = await answer('Who erased what, when, and what is left')
    const same = { user: 'officer', original_user: null, kind: 'value', mentions: false, queries: 1, waiting: 0 }
    const times = { started: expect.any(String), ended: expect.any(String), searched: expect.any(Number) }
    expect(rows).toEqual([
      { ...same, ...times, records: 0, result: 'SOMETHING_LEFT', remains: expect.stringContaining('kept records') },
      { ...same, ...times, records: 0, result: 'NOTHING_LEFT', remains: '[]' },
    ])
    const whole = await as('auditor', 'SELECT * FROM system.history.erasure_results')
    expect(whole.rows).toHaveLength(2)
    expect(JSON.stringify([rows, whole.rows])).not.toMatch(/mark|4712/)
  })

  it('have views with the declared columns', { timeout: 240_000 }, async () => {
    for (const [name, { columns, view }] of historyTables) {
      if (view === undefined) continue
      const { error, columns: shown } = await as('auditor', `SELECT * FROM system.history.${name}`)
      expect([name, error]).toEqual([name, undefined])
      expect([name, Object.fromEntries(shown!.map((column) => [column.name, column.type]))]).toEqual([name, columns])
    }
  })
  it('have the same answers on the dashboards cost and access', async () => {
    const client = new pg.Client(embeddedConnection(join(folder.path, 'data')))
    await client.connect()
    try {
      const panel = async (dashboard: string, title: string): Promise<Record<string, unknown>[]> => {
        const { sql } = tablePanel(dashboard, title)
        return (await client.query<Record<string, unknown>>(panelSql(sql, { table: 'sal%' }))).rows
      }
      const { rows } = await as(
        'auditor',
        `SELECT count(*), sum(cost), max(currency) FROM system.history.queries WHERE user = 'bob'`,
      )
      const [queries, cost, currency] = rows[0] as [number, number, string]
      const byUser = await panel('cost', 'Cost by user')
      const bob = byUser.find(({ user_name }) => user_name === 'bob')!
      expect(bob).toMatchObject({ queries: String(queries), currency })
      expect(bob['cost']).toBeCloseTo(cost, 6)
      const byApp = await panel('cost', 'Cost by app and object')
      expect(byApp.map(({ app, app_object }) => [app, app_object]).sort()).toEqual([
        ['dbt', 'model.shop.sales'],
        ['metabase', 'dashboard:5/card:12'],
      ])
      const byTable = await panel('cost', 'Cost by table')
      expect(byTable.find(({ table_name }) => table_name === 'sales')).toMatchObject({ queries: '4' })
      const readers = await panel('access', 'Readers of tables like $table')
      expect(readers.map(({ user_name, via, queries: read }) => [user_name, via, read])).toEqual([
        ['bob', 'DIRECT', '3'],
        ['carol', '["memory.default.dear"]', '1'],
      ])
      const fresh = await panel('access', 'New readers of tables like $table')
      expect(fresh.map(({ user_name }) => user_name).sort()).toEqual(['bob', 'carol'])
      const idle = await panel('access', 'Tables by last read, the oldest first')
      expect(idle.find(({ table_name }) => table_name === 'idle')).toMatchObject({ last_read: null, reads: '0' })
      const shapes = await panel('cost', 'Statements that a cache could save')
      const repeated = shapes.find(({ statement }) => String(statement).includes('max(price)'))!
      expect(repeated['cacheable']).toBeGreaterThan(0)
    } finally {
      await client.end()
    }
  })
})
