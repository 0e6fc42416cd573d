import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readQueries, readStateTotals, type QueryFilter } from '../../src/readmodels/queries/queries.ts'
import { queriesTable } from '../../src/readmodels/queries/tables.ts'
import { appendLives, queryLife, testQueryId } from '../support/query-life.ts'
import { explainedQueries, openReadModelBed, type ReadModelBed } from '../support/read-models.ts'

/* Totals and lists over queries of users and posters, some with texts that are too long for an index. */

const MANY = 20_000
const LONG = 'x'.repeat(900)

/** The columns of a query by which the test filters and sorts. */
interface Made {
  readonly query_id: string
  readonly state: string
  readonly user_name: string
  readonly source: string
  readonly groups: readonly string[]
  readonly poster: string | null
  readonly cpu_ms: number
}

let bed: ReadModelBed
let made: readonly Made[]
const explained = explainedQueries(() => bed)

beforeAll(async () => {
  bed = await openReadModelBed()
  const [first, open] = [testQueryId(0), testQueryId(1)]
  await appendLives(bed.log, [
    { queryId: first, events: queryLife(first, { end: 'finished' }) },
    { queryId: open, events: queryLife(open, { end: 'open' }) },
  ])
  const runner = await bed.startRunner()
  await runner.barrier(60_000)
  await runner.stop()
  const changed = ['query_id', 'created_at', 'state', 'user_name', 'source', 'groups', 'cpu_ms', 'details']
  const columns = Object.keys(queriesTable.columns).filter((name) => !changed.includes(name))
  await bed.query(
    `insert into queries (query_id, created_at, state, user_name, source, groups, cpu_ms, details, ${columns.join(', ')})
     select '20200101_000000_' || lpad(n::text, 5, '0') || '_aaaaa', '2020-01-01'::timestamptz + n * interval '1 s',
       case when n % 7 = 0 then 'FAILED' else 'FINISHED' end,
       case when n % 10 < 6 then 'often' when n % 1000 = 7 then 'seldom' when n % 1000 = 8 then $1 else 'user-' || n % 50 end,
       case when n % 500 = 3 then $1 when n % 2 = 0 then 'dashboard' else 'notebook' end,
       case when n % 400 = 9 then jsonb_build_array('wide', $1::text, 'all') else jsonb_build_array('g' || n % 20, 'all') end,
       n * 7919 % 10007, case when n % 100 = 1 then '{"session": {"originalUser": "gateway"}}'::jsonb
         when n % 100 = 2 then '{"session": {"originalUser": "often"}}'::jsonb else details end, ${columns.join(', ')}
     from queries, generate_series(1, ${MANY}) n where query_id = '${first}'`,
    [LONG],
  )
  await bed.query('vacuum analyze queries')
  made = await bed.query<Made & Record<string, unknown>>(
    `select query_id, state, user_name, source, coalesce(groups, '[]') as groups, coalesce(cpu_ms, 0) as cpu_ms,
       details->'session'->>'originalUser' as poster from queries`,
    [],
  )
}, 240_000)
afterAll(() => bed?.close())

const seenBy = (user: string): QueryFilter => ({ seen: { users: [user], poster: user, self: user } })
const isSeenBy = (user: string) => (one: Made) => one.user_name === user || one.poster === user

describe.each<readonly [name: string, filter: QueryFilter, isIn: (one: Made) => boolean]>([
  ['all queries', {}, () => true],
  ['a frequent user', { equal: { user_name: 'often' } }, (one) => one.user_name === 'often'],
  ['a rare user', { equal: { user_name: 'seldom' } }, (one) => one.user_name === 'seldom'],
  ['a long user name', { equal: { user_name: LONG } }, (one) => one.user_name === LONG],
  ['a frequent source', { equal: { source: 'dashboard' } }, (one) => one.source === 'dashboard'],
  ['a long source', { equal: { source: LONG } }, (one) => one.source === LONG],
  ['a group of all', { group: 'all' }, (one) => one.groups.includes('all')],
  ['a group beside a long one', { group: 'wide' }, (one) => one.groups.includes('wide')],
  [
    'a user and a group',
    { equal: { user_name: 'often' }, group: 'g2' },
    (one) => one.user_name === 'often' && one.groups.includes('g2'),
  ],
  ['the rights of a frequent user, who posted queries as others', seenBy('often'), isSeenBy('often')],
  ['the rights of a rare user', seenBy('seldom'), isSeenBy('seldom')],
  ['the rights of a user with a long name', seenBy(LONG), isSeenBy(LONG)],
  [
    'the rights of a user with a short and a long name',
    { seen: { users: ['seldom', LONG], poster: 'seldom', self: 'seldom' } },
    (one) => one.user_name === 'seldom' || one.user_name === LONG,
  ],
  ['the rights of a poster', seenBy('gateway'), isSeenBy('gateway')],
])('Queries with %s', (_name, filter, isIn) => {
  it('totals count each query once', async () => {
    const expected = new Map<string, readonly [queries: number, cpuMs: number]>()
    for (const { state, cpu_ms } of made.filter(isIn)) {
      const [queries, cpuMs] = expected.get(state) ?? [0, 0]
      expected.set(state, [queries + 1, cpuMs + cpu_ms])
    }
    const sums = new Map<string, readonly [number, number]>()
    for (const { state, queries, cpuMs } of await readStateTotals(explained.query, filter, undefined)) {
      const [more, moreMs] = sums.get(state) ?? [0, 0]
      sums.set(state, [queries + more, cpuMs + moreMs])
    }
    expect(sums).toEqual(expected)
  })

  it.each([true, false])('a list by CPU has each query once, in order (descending: %s)', async (descending) => {
    const sign = descending ? -1 : 1
    const expected = made
      .filter(isIn)
      .toSorted((a, b) => sign * (a.cpu_ms - b.cpu_ms || (a.query_id < b.query_id ? -1 : 1)))
    const rows = await readQueries(explained.query, { ...filter, order: { by: 'cpu', descending } }, 50, 10)
    expect(rows.map((row) => row.query_id)).toEqual(expected.slice(0, 50).map((one) => one.query_id))
  })
})

it('The list of a user by a figure skips queries of others within the index', async () => {
  await readQueries(explained.query, { ...seenBy('often'), order: { by: 'cpu', descending: true } }, 50, 10)
  expect(explained.plan()).toMatch(
    /Index Scan Backward using queries_by_cpu[^\n]*\n\s*Index Cond: \([^\n]*hashtext\(user_name\)/,
  )
})

it('The list of a poster by a figure skips queries of other posters within the index', async () => {
  await readQueries(explained.query, { ...seenBy('gateway'), order: { by: 'cpu', descending: true } }, 1, 10)
  expect(explained.plan()).toMatch(/using queries_by_cpu[^\n]*\n\s*Index Cond: \(hashtext\(\(\(details/)
})

it.each<readonly [name: string, filter: QueryFilter, index: string]>([
  ['a user', { equal: { user_name: 'user-8' } }, 'queries_user_totals'],
  ['a user with a state', { equal: { user_name: 'often' }, states: ['FAILED'] }, 'queries_user_totals'],
  ['a source', { equal: { source: 'dashboard' } }, 'queries_source'],
  ['the rights of a user', seenBy('often'), 'queries_user_totals'],
])('Totals of the queries of %s do not read the rows', async (_name, filter, index) => {
  await readStateTotals(explained.query, filter, undefined)
  expect(explained.plan()).toMatch(new RegExp(`Index Only Scan using ${index} `))
})

it('The look-up of lists of groups reads an index, not the table', async () => {
  const statements: string[] = []
  await readStateTotals(
    (text, values) => {
      statements.push(text)
      return explained.query(text, values)
    },
    { group: 'wide' },
    undefined,
  )
  const plan = await bed.query(`explain ${statements[0]!.replaceAll('$1', `'wide'`)}`)
  expect(JSON.stringify(plan)).not.toContain('Seq Scan')
  expect(JSON.stringify(plan)).toContain('queries_groups')
})
