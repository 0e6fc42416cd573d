import { describe, expect, it } from 'vitest'
import { createStatementPlanner } from '../../src/planner/statement-planner.ts'
import type { MetadataPort } from '../../src/sql/front-end.ts'
import { session, shopMetadata } from '../support/front-end.ts'
import { planText } from '../support/plan-text.ts'

const list = (count: number, item: (i: number) => string, separator = ', '): string =>
  Array.from({ length: count }, (_, i) => item(i)).join(separator)

/** Views that each read the previous view twice: the last one reads the table below 2^30 times. */
const views: MetadataPort = {
  ...shopMetadata(),
  async table(catalog, schema, name) {
    // A statement creates table t, so it does not exist yet.
    if (name === 't') return undefined
    const found = await shopMetadata().table(catalog, schema, 'orders')
    const level = Number(/^v(\d+)$/.exec(name)?.[1])
    if (!found || Number.isNaN(level)) return found
    const sql = level === 0 ? 'SELECT id FROM orders' : `SELECT a.id FROM v${level - 1} a, v${level - 1} b`
    const columns = [{ name: 'id', type: 'bigint', nullable: true }]
    return { ...found, table: name, kind: 'VIEW', columns, view: { sql, catalog, schema, runAsInvoker: false } }
  },
}

/** Statements of at most 1 MB each. They never end in a reasonable time, or once did not. */
const endless: Readonly<Record<string, string>> = {
  'a chain of common tables': `WITH ${list(20_000, (i) => `a${i} AS (SELECT * FROM ${i > 0 ? `a${i - 1}` : 'orders'})`)} SELECT * FROM a19999`,
  'an IN list of expressions': `SELECT 1 FROM orders WHERE id IN (${list(90_000, (i) => `id+${i}`)})`,
  'arguments without end': `SELECT format('${'%s'.repeat(100_000)}', ${list(100_000, (i) => `${i}`)})`,
  'ORDER BY of everything': `SELECT id FROM orders ORDER BY ${list(90_000, (i) => `id+${i}`)}`,
  'a prepared statement': `EXECUTE IMMEDIATE 'SELECT 1 FROM orders WHERE id IN (${list(90_000, (i) => `id+${i}`)})'`,
  'a query inside a write': `EXPLAIN CREATE TABLE t AS SELECT 1 FROM orders WHERE id IN (${list(90_000, (i) => `id+${i}`)})`,
}

const matching = (pattern: string): string =>
  `SELECT y FROM orders MATCH_RECOGNIZE (MEASURES 1 AS y PATTERN (${pattern}) DEFINE ${/\bA\b/.test(pattern) ? 'A' : 'V0'} AS id > 0) m`

/** Common tables. The column of each holds the previous column twice. */
const doubled = (levels: number, item: string, last = 'x IS NULL', from = `a${levels}`): string =>
  `WITH a0 AS (SELECT 1 x), ${list(levels, (i) => `a${i + 1} AS (SELECT ${item} x FROM a${i})`)} SELECT ${last} FROM ${from}`

describe('The planning of a statement', () => {
  it.each(Object.entries(endless))('ends %s at the limit of CPU time', async (_what, sql) => {
    const before = process.cpuUsage()
    const planned = planText(createStatementPlanner({ planningCpuMs: 200 }), sql, session, views)
    await expect(planned).rejects.toMatchObject({
      errorName: 'EXCEEDED_TIME_LIMIT',
      message: 'Query exceeded the maximum planning CPU time of 200 ms',
    })
    // The statement ends soon after the limit: no step runs for long without a check of the time.
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(2_000)
  })

  it('refuses a tree of views of more than 1,000 views', async () => {
    const planned = planText(createStatementPlanner({ planningCpuMs: 120_000 }), 'SELECT * FROM v30', session, views)
    await expect(planned).rejects.toMatchObject({ errorName: 'QUERY_EXCEEDED_COMPILER_LIMIT' })
  })

  it.each([
    ['many variables', `PERMUTE(${list(12, (i) => `V${i}`)})`],
    ['one variable again and again', `PERMUTE(${list(50_000, () => 'A')})`],
    [
      'permutations in permutations',
      `PERMUTE(PERMUTE(A, B, C, D, E), PERMUTE(A, B, C, D, E), PERMUTE(A, B, C, D, E), F, G)`,
    ],
    ['permutations beside others', list(12, () => 'PERMUTE(A, B, C, D, E, F, G)', ' ')],
    ['permutations in alternatives', list(12, () => '(PERMUTE(A, B, C, D, E, F, G){2} | {- G -})', ' | ')],
  ])('refuses PERMUTE of %s before it makes the permutations', async (_what, pattern) => {
    const planned = planText(createStatementPlanner({ planningCpuMs: 120_000 }), matching(pattern), session, views)
    await expect(planned).rejects.toMatchObject({
      errorName: 'QUERY_EXCEEDED_COMPILER_LIMIT',
      message: expect.stringMatching(/^line 1:\d+: Query has a row pattern of more than 50000 parts, its permutations/),
    })
  })

  it.each([
    ['rows', doubled(60, 'ROW(x, x)')],
    ['maps', doubled(60, 'MAP(ARRAY[x], ARRAY[x])')],
    ['rows of lambdas', doubled(60, 'transform(ARRAY[x], y -> ROW(y, y))')],
    ['rows of an aggregate', doubled(60, 'array_agg(ROW(x, x))')],
    [
      'large rows in one list',
      doubled(
        12,
        'ROW(x, x)',
        list(100, () => 'x'),
      ),
    ],
    [
      'large rows by *',
      doubled(
        12,
        'ROW(x, x)',
        '*',
        list(30, (i) => `a12 b${i}`),
      ),
    ],
  ])('refuses types that double before it writes them: %s', async (_what, sql) => {
    const planned = planText(createStatementPlanner({ planningCpuMs: 120_000 }), sql, session, views)
    await expect(planned).rejects.toMatchObject({
      errorName: 'QUERY_EXCEEDED_COMPILER_LIMIT',
      message: expect.stringMatching(/^line 1:\d+: Query has a (type|select list) of more than \d+ parts/),
    })
  })

  it('accepts PERMUTE of seven variables, within the limit of CPU time', async () => {
    const of = (planningCpuMs: number, sql: string) =>
      planText(createStatementPlanner({ planningCpuMs }), sql, session, views)
    const one = matching('PERMUTE(A, B, C, D, E, F, G)')
    await expect(of(120_000, one)).resolves.toBeDefined()
    await expect(
      of(
        50,
        list(30, () => one, ' UNION ALL '),
      ),
    ).rejects.toMatchObject({ errorName: 'EXCEEDED_TIME_LIMIT' })
  })

  it('takes less than quadratic time for a long list', async () => {
    const cpuOf = async (calls: number): Promise<number> => {
      const sql = `SELECT ${list(calls, (i) => `date_format(date_parse('2020-01-0${(i % 9) + 1}', '%Y-%m-%d'), '%Y')`)}`
      const before = process.cpuUsage()
      await planText(createStatementPlanner({ planningCpuMs: 120_000 }), sql, session, shopMetadata())
      const { user, system } = process.cpuUsage(before)
      return user + system
    }
    const small = [await cpuOf(1_000), await cpuOf(1_000), await cpuOf(1_000)]
    const large = [await cpuOf(9_000), await cpuOf(9_000)]
    // Nine times as long a list. This once took eighty times as long.
    expect(Math.min(...large)).toBeLessThan(40 * Math.max(...small))
  })

  it('plans each common table of a correlated query once, even if they double', async () => {
    const tables = list(40, (i) => `a${i + 1} AS (SELECT l.x FROM a${i} l, a${i} r)`)
    const sql = `SELECT EXISTS (WITH a0 AS (SELECT 1 x), ${tables} SELECT 1 FROM a40 WHERE x = o.id) FROM orders o`
    const planned = planText(createStatementPlanner({ planningCpuMs: 120_000 }), sql, session, views)
    await expect(planned).resolves.toMatchObject({ kind: 'query' })
  })

  it('gives each statement its own time limit while another one is planned', async () => {
    const planner = createStatementPlanner({ planningCpuMs: 300 })
    const small = Array.from({ length: 20 }, (_, i) => planText(planner, `SELECT ${i}`, session, shopMetadata()))
    const large = planText(planner, endless['a chain of common tables']!, session, shopMetadata())
    const more = Array.from({ length: 20 }, (_, i) => planText(planner, `SELECT ${i}`, session, shopMetadata()))
    await expect(large).rejects.toMatchObject({ errorName: 'EXCEEDED_TIME_LIMIT' })
    for (const one of await Promise.all([...small, ...more])) expect(one.kind).toBe('query')
  })
})
