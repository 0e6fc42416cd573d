import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { functionFamilies } from '../../../src/sql/functions/function-table.ts'
import { openTableRunner, type TableRunner } from '../../support/table-runner.ts'

// An aggregate with DISTINCT sees each distinct row of arguments once. So it gives the same result as without
// DISTINCT over the distinct rows, in any group. FILTER removes rows first.

/** Arguments for each aggregate, over the columns b, d, r, v and t (a timestamp with time zone). */
const calls: Readonly<Record<string, readonly string[]>> = {
  any_value: ['v ORDER BY v'],
  approx_distinct: ['b', 't'],
  approx_most_frequent: ['2, b, 10'],
  approx_percentile: ['b, 0.5e0', 'd, ARRAY[0.2e0, 0.6e0]'],
  arbitrary: ['v ORDER BY v'],
  array_agg: ['b ORDER BY b', 't ORDER BY t'],
  avg: ['b', 'd', 'r', 'CAST(b AS decimal(5,1))'],
  bitwise_and_agg: ['b'],
  bitwise_or_agg: ['b'],
  bitwise_xor_agg: ['b'],
  bool_and: ['b > 1'],
  bool_or: ['b > 1'],
  checksum: ['b', 'v'],
  corr: ['d, b'],
  count: ['b', 't', 'ROW(b, t)'],
  covar_pop: ['d, b'],
  covar_samp: ['d, b'],
  every: ['b > 1'],
  geometric_mean: ['b'],
  histogram: ['b', 'v', 'd'],
  kurtosis: ['b'],
  map_agg: ['v, b'],
  map_union: ['MAP(ARRAY[v], ARRAY[b])'],
  max: ['b', 'b, 3', 't'],
  max_by: ['b, b', 'b, d, 4'],
  min: ['b', 'b, 3', 't'],
  min_by: ['b, b', 'b, d, 4'],
  multimap_agg: ['v, b'],
  numeric_histogram: ['3, d'],
  regr_intercept: ['d, b'],
  regr_slope: ['d, b'],
  skewness: ['b'],
  stddev: ['b', 'd'],
  stddev_pop: ['b', 'd'],
  stddev_samp: ['b', 'd'],
  sum: ['b', 'd', 'r', 'CAST(b AS decimal(5,1))'],
  var_pop: ['b', 'd'],
  var_samp: ['b', 'd'],
  variance: ['b', 'd'],
}

/** Aggregates with a syntax of their own, over values that cannot be compared, or over digests without another use. */
const apart = new Set([
  'count_if',
  'listagg',
  'reduce_agg',
  'tdigest_agg',
  'qdigest_agg',
  'make_set_digest',
  'approx_set',
  'merge',
  'merge_set_digest',
])

const names = [
  ...new Set(
    Object.values(functionFamilies())
      .flat()
      .filter(({ kind }) => kind === 'aggregate')
      .map(({ signature }) => signature.slice(0, signature.indexOf('('))),
  ),
]

describe('DISTINCT in an aggregate', { timeout: 300_000 }, () => {
  it('is tested for every aggregate', () => {
    expect(names.filter((name) => calls[name] === undefined && !apart.has(name))).toEqual([])
  })

  let runner: TableRunner
  beforeAll(async () => {
    runner = await openTableRunner()
    // Each column alone distinguishes the rows.
    const rows = [
      `(1, 1.5e0, REAL '1.5', 'a', TIMESTAMP '2024-01-01 00:00:00 UTC')`,
      `(2, 7e0, REAL '7', 'b', TIMESTAMP '2024-01-02 00:00:00 UTC')`,
      `(3, 2e0, REAL '2', 'c', TIMESTAMP '2024-01-03 00:00:00 UTC')`,
      `(7, 9e0, REAL '9', 'd', TIMESTAMP '2024-01-04 00:00:00 UTC')`,
      `(NULL, NULL, NULL, NULL, NULL)`,
    ]
    const again = rows.map((row) => row.replace('00:00:00 UTC', '01:00:00 +01:00'))
    const table = (list: readonly string[]): string => `SELECT * FROM (VALUES ${list.join(', ')}) x(b, d, r, v, t)`
    await runner.createTable('n', table([...rows, ...again, ...again.slice(1, 3)]))
    await runner.createTable('u', table(rows))
  })
  afterAll(() => runner.close())

  it.each(Object.keys(calls))('%s', async (name) => {
    const wrong: unknown[] = []
    for (const args of calls[name]!) {
      for (const [clauses, end] of [
        ['FROM', ''],
        ['FILTER (WHERE b > 1) FROM', ''],
        [', b > 2 FROM', ' GROUP BY 2 ORDER BY 2'],
        [
          'FILTER (WHERE b > 1), b, v, grouping(b, v) FROM',
          ' GROUP BY GROUPING SETS ((b), (), (v, b), (v), ()) ORDER BY 4, 2, 3',
        ],
      ] as const) {
        const distinct = await runner.outcome(`SELECT ${name}(DISTINCT ${args}) ${clauses} n${end}`)
        const plain = await runner.outcome(`SELECT ${name}(${args}) ${clauses} u${end}`)
        if (!isDeepStrictEqual(rounded(distinct), rounded(plain))) wrong.push({ args, clauses, distinct, plain })
      }
    }
    expect(wrong).toEqual([])
  })

  it('counts and collects each distinct row once', async () => {
    const runner = await openTableRunner()
    await runner.createTable('n', `SELECT * FROM (VALUES ('a', true), ('a', true), ('b', true), ('b', false)) x(v, f)`)
    expect(await runner.outcome('SELECT count_if(DISTINCT f), multimap_agg(DISTINCT v, 1) FROM n')).toEqual([[1, { a: [1], b: [1] }]]) // prettier-ignore
    expect(await runner.outcome('SELECT v, count_if(DISTINCT f), histogram(DISTINCT v) FROM n GROUP BY v ORDER BY v')).toEqual([['a', 1, { a: 1 }], ['b', 1, { b: 1 }]]) // prettier-ignore
    expect(await runner.outcome('SELECT stddev(DISTINCT length(v)), max_by(DISTINCT v, v) FROM n GROUP BY GROUPING SETS ((f), ()) ORDER BY 2')).toEqual([[null, 'b'], [null, 'b'], [null, 'b']]) // prettier-ignore
    expect(await runner.outcome('SELECT v, f, count_if(DISTINCT f), histogram(DISTINCT v) FROM n GROUP BY ROLLUP (v, f) ORDER BY 1, 2')).toEqual([['a', true, 1, { a: 1 }], ['a', null, 1, { a: 1 }], ['b', false, 0, { b: 1 }], ['b', true, 1, { b: 1 }], ['b', null, 1, { b: 1 }], [null, null, 1, { a: 1, b: 1 }]]) // prettier-ignore
    expect(await runner.outcome('SELECT histogram(DISTINCT v) OVER () FROM n')).toMatch(/^NOT_SUPPORTED/)
    expect(await runner.outcome('SELECT count(DISTINCT v) OVER (), min(DISTINCT v) OVER () FROM n LIMIT 1')).toEqual([[2, 'a']]) // prettier-ignore
    runner.close()
  })
})

/** Rounds numbers, because sums in another order differ in their last digits. */
function rounded(value: unknown): unknown {
  if (typeof value === 'number') return Number(value.toPrecision(12))
  if (Array.isArray(value)) return value.map(rounded)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, rounded(item)]))
}
