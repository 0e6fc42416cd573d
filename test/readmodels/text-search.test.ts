import { afterAll, beforeAll, expect, it } from 'vitest'
import { readQueries, readSearchStart, type QueryFilter } from '../../src/readmodels/queries/queries.ts'
import { appendLives, queryLife, testQueryId } from '../support/query-life.ts'
import { explainedQueries, openReadModelBed, type ReadModelBed } from '../support/read-models.ts'

const TEXTS = [
  'SELECT name FROM nation',
  'select NAME from "Größe" where a like \'100\\%\'',
  'SELECT x_y FROM t',
  `SELECT 1 -- ${'far '.repeat(1200)} beyond`,
  'SELECT 2 /* open */ FROM nation',
]
const OPEN = 4
const MANY = 20_000

let bed: ReadModelBed
const explained = explainedQueries(() => bed)

beforeAll(async () => {
  bed = await openReadModelBed()
  await appendLives(
    bed.log,
    TEXTS.map((sql, index) => ({ queryId: testQueryId(index), events: livesOf(sql, index) })),
  )
  const runner = await bed.startRunner()
  await runner.barrier(60_000)
  await runner.stop()
  // So many old queries that Postgres chooses an index.
  const columns = (
    await bed.query<{ name: string }>(
      `select column_name as name from information_schema.columns where table_schema = 'm' and table_name = 'queries'
       and column_name not in ('query_id', 'sql_text', 'created_at')`,
    )
  ).map(({ name }) => name)
  await bed.query(
    `insert into queries (query_id, sql_text, created_at, ${columns.join(', ')})
     select '20200101_000000_' || lpad((n % 100000)::text, 5, '0') || '_aaaaa', 'SELECT ' || md5(n::text), '2020-01-01', ${columns.join(', ')}
     from queries, generate_series(1, ${MANY}) n where query_id = '${testQueryId(0)}'`,
  )
  await bed.query('analyze queries')
})
afterAll(() => bed?.close())

function livesOf(sql: string, index: number) {
  return queryLife(testQueryId(index), { end: index === OPEN ? 'open' : 'finished' }).map((event) =>
    event.type === 'QueryCreated' ? { ...event, data: { ...event.data, sql } } : event,
  )
}

async function found(text: string, filter: QueryFilter = {}): Promise<number[]> {
  const rows = await readQueries(explained.query, { ...filter, text }, 100, 10)
  return rows.map(({ query_id }) => TEXTS.findIndex((_, index) => testQueryId(index) === query_id)).sort()
}

it.each<readonly [text: string, queries: readonly number[]]>([
  ['FROM NATION', [0, OPEN]],
  ['größe', [1]],
  ['100\\%', [1]],
  ['_y f', [2]],
  ['%y', []],
  ['far far', [3]],
  ['beyond', []],
  ['open', [OPEN]],
  ['zqx', []],
])('The text search finds %j with the index', async (text, queries) => {
  expect(await found(text)).toEqual(queries)
  expect(explained.plan()).toContain('queries_text')
})

it('The text search finds texts of two letters', async () => {
  expect(await found('zq', { states: ['FAILED'] })).toEqual([])
  expect(await found('öß')).toEqual([1])
})

it.each<readonly [name: string, filter: QueryFilter, start: string | undefined]>([
  ['a text of two letters', { text: 'zq' }, '2020-01-01T00:00:00.000Z'],
  ['a text without letters', { text: '-- *' }, '2020-01-01T00:00:00.000Z'],
  [
    'a text of two letters of a frequent user',
    { text: 'zq', equal: { user_name: 'alice' } },
    '2020-01-01T00:00:00.000Z',
  ],
  ['a text of two letters of another user', { text: 'zq', equal: { user_name: 'nobody' } }, undefined],
  ['a text of three letters', { text: 'öße' }, undefined],
  ['no text', {}, undefined],
])('The text search has a start only for a short text and many queries: %s', async (_name, filter, start) => {
  expect(await readSearchStart(explained.query, filter)).toBe(start)
})

it.each(['cpu', 'rows'] as const)(
  'A list by %s skips queries of other groups and users within the index',
  async (by) => {
    const order = { by, descending: true }
    const filter: QueryFilter = { group: 'a group', order, since: '2021-01-01T00:00:00Z' }
    await bed.query(`update queries set groups = '["a group", "all"]' where query_id in ($1, $2)`, [
      testQueryId(0),
      testQueryId(OPEN),
    ])
    await bed.query('vacuum analyze queries')
    const grouped = await readQueries(explained.query, filter, 100, 10)
    expect(grouped.map(({ query_id }) => query_id).sort()).toEqual([testQueryId(0), testQueryId(OPEN)])
    expect(await readQueries(explained.query, { equal: { user_name: 'nobody' }, order }, 100, 10)).toEqual([])
    await readQueries(explained.query, { equal: { user_name: 'alice' }, order }, 1, 10)
    expect(explained.plan()).toMatch(new RegExp(`queries_by_${by}[\\s\\S]*?Index Cond: \\(hashtext\\(user_name\\)`))
  },
)

it('The text search works without the index', async () => {
  await bed.query('drop index queries_text')
  expect(await found('from nation')).toEqual([0, OPEN])
})
