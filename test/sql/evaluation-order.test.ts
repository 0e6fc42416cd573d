import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTableRunner, type TableRunner } from '../support/table-runner.ts'

// Trino does not evaluate some expressions: a branch that is not taken, a row that a filter removes. They must not
// fail, nor may an error inside TRY. DuckDB's optimiser moves expressions that it takes for harmless. Each of its
// rules is tested here, over stored columns.

/** Each expression fails where d is 0, and nowhere else. */
const FAILING = {
  division: '10 / d',
  cast: 'CAST(s AS bigint)',
  json: 'json_parse(j)',
  date: `date_parse(day, '%Y-%m-%d')`,
  decimal: '10 / c',
  real: 'CAST(s AS real)',
  subscript: 'l[d]',
  lambda: 'element_at(transform(l, y -> y / d), 1)',
  script: `json_value(j, 'strict $.a' ERROR ON ERROR)`,
}

/** One query for each rule. Its answer is the number of rows where d is not 0 (`some`). */
const RULES: Readonly<Record<string, (e: string) => string>> = {
  'common_subexpressions: TRY': (e) => `SELECT count(a), count(b) FROM (SELECT TRY(${e}) a, TRY(${e}) b FROM t)`,
  'common_subexpressions: TRY beside a branch': (e) =>
    `SELECT count(a), count(b) FROM (SELECT TRY(${e}) a, IF(d <> 0, ${e}) b FROM t)`,
  'common_subexpressions: CASE': (e) =>
    `SELECT count(a), count(b) FROM (SELECT CASE WHEN d <> 0 THEN ${e} END a, CASE WHEN d > 0 THEN ${e} END b FROM t)`,
  'common_subexpressions: COALESCE': (e) =>
    `SELECT count_if(a), count_if(b) FROM (SELECT coalesce(x, ${e} IS NOT NULL) a, coalesce(x, NOT (${e} IS NULL)) b FROM (SELECT *, IF(d = 0, false) x FROM t))`,
  'in_clause: a list of many': (e) =>
    `SELECT count(CASE WHEN d <> 0 THEN length(CAST(typeof(${e}) || CAST(${e} IS NULL AS varchar) AS varchar)) NOT IN (91, 92, 93, 94, 95, 96) END), ${SOME} FROM t`,
  'AND of a select list': (e) => `SELECT count_if(d <> 0 AND ${e} IS NOT NULL), ${SOME} FROM t`,
  'OR of a select list': (e) => `SELECT count_if(NOT (d = 0 OR ${e} IS NULL)), ${SOME} FROM t`,
  'reorder_filter: a costly guard': (e) =>
    `SELECT count(*), ${SOME} FROM t WHERE regexp_like(k, '^g.*$') AND length(k) < 9 AND ${e} IS NOT NULL`,
  'reorder_filter: OR': (e) => `SELECT count_if(d <> 0), count_if(d > 0) FROM t WHERE d = 0 OR ${e} IS NOT NULL`,
  'filter_pushdown: comparisons with constants': (e) =>
    `SELECT count(*), count(*) FROM (SELECT *, max(d) OVER (PARTITION BY id) y FROM t) WHERE abs(y) > 0 AND coalesce(length(CAST(typeof(${e}) AS varchar)), 0) > 0 AND ${e} IS NOT NULL`,
  'filter_pushdown: below a query': (e) =>
    `SELECT count(*), count(*) FROM (SELECT * FROM t WHERE k LIKE '%g%' AND abs(d) > 0) WHERE ${e} IS NOT NULL`,
  'filter_pushdown: a calculated column': (e) =>
    `SELECT count(x), count(*) FROM (SELECT ${e} x FROM (SELECT * FROM t WHERE abs(d) > 0)) WHERE x IS NOT NULL`,
  'filter_pushdown: a calculated column of a common table': (e) =>
    `WITH v AS (SELECT * FROM t WHERE abs(d) > 0), w AS (SELECT ${e} x FROM v) SELECT count(x), count(*) FROM w WHERE x IS NOT NULL`,
  'filter_pushdown: LIMIT': (e) =>
    `SELECT count(x), count(*) FROM (SELECT ${e} x FROM (SELECT * FROM t ORDER BY id LIMIT 99999) WHERE d > 0) WHERE x IS NOT NULL`,
  'filter_pushdown: UNNEST': (e) =>
    `SELECT count(*), count(*) FROM (SELECT t.* FROM t CROSS JOIN UNNEST(ARRAY[id]) u(y) WHERE abs(d) > 0) WHERE ${e} IS NOT NULL`,
  'filter_pushdown: UNION': (e) =>
    `SELECT count(*) / 2, count(*) / 2 FROM (SELECT * FROM t WHERE k LIKE '%g%' UNION ALL SELECT * FROM t WHERE abs(d) > 0) WHERE ${e} IS NOT NULL`,
  'filter_pushdown: DISTINCT': (e) =>
    `SELECT count(*), count(*) FROM (SELECT DISTINCT id, d, s, j, day, c, l FROM t WHERE abs(d) > 0) WHERE ${e} IS NOT NULL`,
  'filter_pushdown: GROUP BY': (e) =>
    `SELECT count(*), count(*) FROM (SELECT id, d, s, j, day, c, l FROM t GROUP BY id, d, s, j, day, c, l HAVING abs(d) > 0) WHERE ${e} IS NOT NULL`,
  'filter_pushdown: a semi join': (e) =>
    `SELECT count(*), count(*) FROM (SELECT * FROM t WHERE id IN (SELECT uid FROM u)) WHERE ${e} IS NOT NULL`,
  'join conditions: inner': (e) =>
    `SELECT count(*), count(*) FROM t JOIN u ON id = uid AND abs(d) > 0 AND ${e} IS NOT NULL`,
  'join conditions: left': (e) =>
    `SELECT count(uid), count(uid) FROM t LEFT JOIN u ON id = uid AND abs(d) > 0 AND ${e} IS NOT NULL`,
  'join keys of a side that is kept: left': (e) =>
    `SELECT count(*) - (SELECT count(*) FROM t WHERE d = 0), count(y) FROM t LEFT JOIN (VALUES 1) b(y) ON d <> 0 AND IF(${e} IS NULL, 0, 1) = b.y`,
  'join keys of a side that is kept: right': (e) =>
    `SELECT count(*) - (SELECT count(*) FROM t WHERE d = 0), count(y) FROM (VALUES 1) b(y) RIGHT JOIN t ON abs(d) > 0 AND b.y = IF(${e} IS NULL, 0, 1)`,
  'join keys of a side that is kept: full': (e) =>
    `SELECT count(*) - (SELECT count(*) FROM t WHERE d = 0), count(y) FROM t FULL JOIN (VALUES 1) b(y) ON d <> 0 AND IF(${e} IS NULL, 0, 1) = b.y`,
  'join conditions: full': (e) =>
    `SELECT count(id) - (SELECT count(*) FROM t WHERE d = 0), count(uid) FROM t FULL JOIN u ON id = uid AND abs(d) > 0 AND ${e} IS NOT NULL`,
  'join conditions: over a filtered right side': (e) =>
    `SELECT count(id), count(uid) FROM u LEFT JOIN (SELECT * FROM t WHERE abs(d) > 0) ON id = uid AND ${e} IS NOT NULL`,
  'filter_pushdown: a filtered right side': (e) =>
    `SELECT count(id), count(uid) FROM u LEFT JOIN (SELECT * FROM t WHERE abs(d) > 0) ON id = uid WHERE ${e} IS NOT NULL`,
  'filter_pushdown: a column that windows are parted by': (e) =>
    `SELECT count(*), sum(n) FROM (SELECT *, count(*) OVER (PARTITION BY id, d, s, j, day, c, l) n FROM t WHERE abs(d) > 0) WHERE ${e} IS NOT NULL`,
  'filter_pushdown: UNION of rows that differ': (e) =>
    `SELECT count(*), count(*) FROM (SELECT id, d, s, j, day, c, l FROM t WHERE abs(d) > 0 UNION SELECT id, d, s, j, day, c, l FROM t WHERE abs(d) > 1) WHERE ${e} IS NOT NULL`,
  'filter_pushdown: a condition that changes': (e) =>
    `SELECT count(*), count(*) FROM (SELECT * FROM t WHERE d > random() * 1e-1) WHERE ${e} IS NOT NULL`,
  sampling_pushdown: (e) =>
    `SELECT count(*), count(*) FROM (SELECT * FROM (SELECT * FROM t WHERE abs(d) > 0) TABLESAMPLE BERNOULLI (100)) WHERE ${e} IS NOT NULL`,
  'cte_filter_pusher, cte_inlining': (e) =>
    `WITH w AS (SELECT * FROM t WHERE abs(d) > 0) SELECT (SELECT count(*) FROM w WHERE ${e} IS NOT NULL), (SELECT count(*) FROM w WHERE ${e} IS NOT NULL AND id > -1)`,
  'cte_filter_pusher, common_subplan: a join': (e) =>
    `WITH w AS (SELECT t.* FROM t JOIN u ON id = uid WHERE abs(d) > 0) SELECT (SELECT count(*) FROM w WHERE ${e} IS NOT NULL), (SELECT count(*) FROM w WHERE ${e} IS NOT NULL AND id > -1)`,
  'cte_filter_pusher: groups': (e) =>
    `WITH w AS (SELECT id, d, s, j, day, c, l, count(*) n FROM t WHERE abs(d) > 0 GROUP BY id, d, s, j, day, c, l) SELECT (SELECT sum(n) FROM w WHERE ${e} IS NOT NULL), (SELECT count(*) FROM w WHERE ${e} IS NOT NULL AND id > -1)`,
  'in_clause: AND': (e) =>
    `SELECT count(*), ${SOME} FROM t WHERE abs(d) > 0 AND IF(${e} IS NULL, 0, 1) NOT IN (11, 12, 13, 14, 15, 16)`,
  'in_clause: an outer join': (e) =>
    `SELECT count(uid), ${SOME} FROM t LEFT JOIN u ON id = uid AND abs(d) > 0 AND IF(${e} IS NULL, 0, 1) NOT IN (11, 12, 13, 14, 15, 16)`,
  top_n_window_elimination: (e) =>
    `SELECT count(x), count(x) FROM (SELECT ${e} x FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY d DESC) rn FROM t WHERE abs(d) > 0) WHERE rn <= 1)`,
  window_self_join: (e) =>
    `SELECT sum(n), count(n) FROM (SELECT count(CASE WHEN d <> 0 THEN ${e} END) OVER (PARTITION BY id) n FROM t) WHERE n > 0`,
  'arguments of a DISTINCT aggregate with FILTER': (e) =>
    `SELECT count(DISTINCT IF(${e} IS NULL, 0, id)) FILTER (WHERE d <> 0), ${SOME} FROM t`,
  'long arguments of an aggregate with FILTER': (e) =>
    `SELECT count(concat(CAST(typeof(${e}) AS varchar), IF(${e} IS NULL, '', CAST(id AS varchar)))) FILTER (WHERE d <> 0), ${SOME} FROM t`,
  'ORDER BY of an aggregate with FILTER': (e) =>
    `SELECT cardinality(array_agg(id ORDER BY ${e} IS NULL, id) FILTER (WHERE d <> 0)), ${SOME} FROM t`,
  'filter_pullup: a filter below a join': (e) =>
    `SELECT count(*), count(*) FROM (SELECT * FROM t WHERE abs(d) > 0) JOIN u ON id = uid WHERE ${e} IS NOT NULL`,
  'a correlated query': (e) =>
    `SELECT count(*), count(*) FROM t WHERE abs(d) > 0 AND EXISTS (SELECT 1 FROM u WHERE uid = t.id AND ${e} IS NOT NULL)`,
  'limit_pushdown, top_n': (e) =>
    `SELECT count(x), ${SOME} FROM (SELECT ${e} x FROM (SELECT * FROM t ORDER BY d = 0, id LIMIT 1000) WHERE d > 0) RIGHT JOIN (SELECT 1) ON true`,
  'arguments of an aggregate with FILTER': (e) =>
    `SELECT count(${e}) FILTER (WHERE d <> 0), count(${e}) FILTER (WHERE abs(d) > 0) FROM t`,
}

const SOME = `(SELECT count(*) FROM u)`

describe('The optimiser evaluates an expression that may fail only where Trino does', { timeout: 300_000 }, () => {
  let runner: TableRunner
  let some: number
  beforeAll(async () => {
    runner = await openTableRunner()
    await runner.createTable(
      'n',
      'SELECT a * 1000 + b AS id FROM UNNEST(sequence(0, 3)) x(a), UNNEST(sequence(1, 1000)) y(b)',
    )
    await runner.createTable(
      't',
      `SELECT id, id % 7 AS d, IF(id % 7 = 0, 'x', '') || CAST(id AS varchar) AS s, IF(id % 7 = 0, '{', '{"a": 1}') AS j,
         IF(id % 7 = 0, 'b', 'g') AS k, IF(id % 7 = 0, 'zzz', '2020-01-01') AS day, CAST(id % 7 AS decimal(10,2)) AS c, repeat(id, 7) AS l
       FROM n`,
    )
    await runner.createTable('u', 'SELECT id AS uid FROM n WHERE id % 7 <> 0')
    some = Number((await runner.rows('SELECT count(*) FROM u'))[0]![0])
  })
  afterAll(() => runner.close())

  it('TRY over COALESCE does not change stored columns', async () => {
    const [sum] = (await runner.rows('SELECT sum(id) FROM t WHERE d <> 0'))[0]!
    const tried = [
      'TRY(coalesce(TRY_CAST(s AS bigint), CAST(s AS bigint)))',
      'TRY(IF(id > 0, coalesce(nullif(id, id), CAST(s AS bigint))))',
      'TRY_CAST(s AS bigint)',
    ]
    for (let round = 0; round < 6; round++)
      for (const e of tried)
        expect(
          await runner.rows(`SELECT sum(a), sum(b) FROM (SELECT ${e} a, ${e} b FROM t)`),
          `${e}, round ${round}`,
        ).toEqual([[sum, sum]])
    expect(await runner.rows('SELECT count(*), sum(id), count_if(c <> d), count_if(l[3] <> id) FROM t')).toEqual([
      [4000, 8_002_000, 0, 0],
    ])
  })

  it.each(Object.entries(RULES))('%s', async (rule, query) => {
    const outcomes: Record<string, unknown> = {}
    for (const [name, expression] of Object.entries(FAILING)) outcomes[name] = await runner.outcome(query(expression))
    const expected = rule.startsWith('limit') ? [[1000, some]] : [[some, some]]
    expect(outcomes).toEqual(Object.fromEntries(Object.keys(FAILING).map((name) => [name, expected])))
    // The expression would fail outside TRY.
    if (rule.startsWith('common_subexpressions: TRY')) {
      for (const expression of Object.values(FAILING)) {
        expect(await runner.outcome(`SELECT count(${expression}) FROM t`)).toEqual(expect.any(String))
      }
    }
  })
})
