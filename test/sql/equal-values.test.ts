import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTableRunner, type TableRunner } from '../support/table-runner.ts'

// One instant in two zones is one value. A map is its entries in any order. NaN is equal to nothing, but DISTINCT
// takes two NaN as one value. So every operator must do with such values the same as with numbers that stand for
// them.

/** Values of a type: `[number, value, the same value in another representation]`. */
interface Kind {
  readonly name: string
  readonly values: readonly (readonly [number, string, string])[]
  /**
   * Numbers of the values that `=` does not find equal to themselves. A value that contains NaN gives false, one with
   * NULL gives NULL.
   */
  readonly unequal?: readonly number[]
  /**
   * Some values contain NULL. A map's key may not contain it, and array functions that compare for equality fail on
   * it.
   */
  readonly indeterminate?: true
  /** The order of the numbers is the order of the values. */
  readonly ordered?: true
}

const utc = `TIMESTAMP '2024-01-01 12:00:00 UTC'`
const berlin = `TIMESTAMP '2024-01-01 13:00:00 Europe/Berlin'`
const later = `TIMESTAMP '2024-01-01 13:00:00 UTC'`

const kinds: readonly Kind[] = [
  { name: 'timestamp with time zone', ordered: true, values: [[1, utc, berlin], [2, later, `TIMESTAMP '2024-01-01 14:00:00 +01:00'`]] }, // prettier-ignore
  { name: 'timestamp(9) with time zone', values: [[1, `TIMESTAMP '2024-01-01 12:00:00.123456789 UTC'`, `TIMESTAMP '2024-01-01 13:00:00.123456789 +01:00'`], [2, `TIMESTAMP '2024-01-01 12:00:00.123456780 UTC'`, `TIMESTAMP '2024-01-01 13:00:00.123456780 +01:00'`]] }, // prettier-ignore
  { name: 'time with time zone', values: [[1, `TIME '12:00:00+00:00'`, `TIME '13:00:00+01:00'`], [2, `TIME '12:00:00+01:00'`, `TIME '11:00:00+00:00'`]] }, // prettier-ignore
  { name: 'time(9) with time zone', values: [[1, `TIME '12:00:00.123456789+00:00'`, `TIME '13:00:00.123456789+01:00'`], [2, `TIME '12:00:00.123456789+01:00'`, `TIME '11:00:00.123456789+00:00'`]] }, // prettier-ignore
  { name: 'map', values: [[1, `MAP(ARRAY['a','b'], ARRAY[1,2])`, `MAP(ARRAY['b','a'], ARRAY[2,1])`], [2, `MAP(ARRAY['a','b'], ARRAY[2,1])`, `MAP(ARRAY['b','a'], ARRAY[1,2])`]] }, // prettier-ignore
  { name: 'map of zones', values: [[1, `MAP(ARRAY[${utc}], ARRAY[${later}])`, `MAP(ARRAY[${berlin}], ARRAY[TIMESTAMP '2024-01-01 14:00:00 +01:00'])`], [2, `MAP(ARRAY[${later}], ARRAY[${utc}])`, `MAP(ARRAY[${later}], ARRAY[${berlin}])`]] }, // prettier-ignore
  { name: 'map with NULL', values: [[1, `MAP(ARRAY['a','b'], ARRAY[1,NULL])`, `MAP(ARRAY['b','a'], ARRAY[NULL,1])`], [2, `MAP(ARRAY['a'], ARRAY[1])`, `MAP(ARRAY['a'], ARRAY[1])`]], unequal: [1], indeterminate: true }, // prettier-ignore
  { name: 'map of zones with NULL', values: [[1, `MAP(ARRAY[${utc}], ARRAY[CAST(NULL AS integer)])`, `MAP(ARRAY[${berlin}], ARRAY[CAST(NULL AS integer)])`], [2, `MAP(ARRAY[${utc}], ARRAY[1])`, `MAP(ARRAY[${berlin}], ARRAY[1])`]], unequal: [1], indeterminate: true }, // prettier-ignore
  {
    name: 'double',
    values: [
      [1, 'nan()', 'nan()'],
      [2, '0e0', '-0e0'],
      [3, '1e0', '1e0'],
    ],
    unequal: [1],
  },
  {
    name: 'real',
    values: [
      [1, 'CAST(nan() AS real)', `REAL 'NaN'`],
      [2, `REAL '0'`, `REAL '-0'`],
    ],
    unequal: [1],
  },
  {
    name: 'json',
    values: [
      [1, `json_parse('{"a":1,"b":2}')`, `json_parse('{"b": 2, "a":1}')`],
      [2, `json_parse('[1,2]')`, `json_parse('[1, 2]')`],
    ],
  },
  { name: 'ipaddress', ordered: true, values: [[1, `IPADDRESS '1.2.3.4'`, `IPADDRESS '::ffff:1.2.3.4'`], [2, `IPADDRESS '2001:db8::1'`, `IPADDRESS '2001:db8:0:0:0:0:0:1'`]] }, // prettier-ignore
  { name: 'char', ordered: true, values: [[1, `CAST('a' AS char(3))`, `CAST('a  ' AS char(3))`], [2, `CAST('b ' AS char(3))`, `CAST('b' AS char(3))`]] }, // prettier-ignore
  { name: 'row of zone and char', ordered: true, values: [[1, `ROW(${utc}, CAST('a' AS char(2)))`, `ROW(${berlin}, CAST('a ' AS char(2)))`], [2, `ROW(${utc}, CAST('b' AS char(2)))`, `ROW(${berlin}, CAST('b ' AS char(2)))`]] }, // prettier-ignore
  { name: 'row with NaN', values: [[1, 'ROW(nan(), 1)', 'ROW(nan(), 1)'], [2, 'ROW(0e0, 1)', 'ROW(-0e0, 1)']], unequal: [1] }, // prettier-ignore
  { name: 'row with NULL', values: [[1, `ROW(${utc}, NULL)`, `ROW(${berlin}, NULL)`], [2, `ROW(${utc}, 1)`, `ROW(${berlin}, 1)`]], unequal: [1], indeterminate: true }, // prettier-ignore
  { name: 'array of zones', values: [[1, `ARRAY[${utc}, ${later}]`, `ARRAY[${berlin}, ${later}]`], [2, `ARRAY[${later}, ${utc}]`, `ARRAY[${later}, ${berlin}]`]] }, // prettier-ignore
  { name: 'array with NaN', values: [[1, 'ARRAY[nan()]', 'ARRAY[nan()]'], [2, 'ARRAY[0e0]', 'ARRAY[-0e0]']], unequal: [1] }, // prettier-ignore
  { name: 'array of maps', values: [[1, `ARRAY[MAP(ARRAY['a','b'], ARRAY[1,2])]`, `ARRAY[MAP(ARRAY['b','a'], ARRAY[2,1])]`], [2, `ARRAY[MAP(ARRAY['a'], ARRAY[1])]`, `ARRAY[MAP(ARRAY['a'], ARRAY[1])]`]] }, // prettier-ignore
  { name: 'array of chars', values: [[1, `ARRAY[CAST('a' AS char(2))]`, `ARRAY[CAST('a ' AS char(2))]`], [2, `ARRAY[CAST('b' AS char(2))]`, `ARRAY[CAST('b ' AS char(2))]`]] }, // prettier-ignore
]

/** Builds a statement over x and y whose answer does not show the values. */
type Statement = (x: string, y: string) => string

/** Statements that take two values as one, as DISTINCT does. */
const identical: readonly Statement[] = [
  (x) => `SELECT count(*) FROM (SELECT DISTINCT ${x} FROM t)`,
  (x, y) => `SELECT count(*) FROM (SELECT DISTINCT ${x}, ${y} FROM t)`,
  (x) => `SELECT count(*) n FROM t GROUP BY ${x} ORDER BY n`,
  (x, y) => `SELECT count(*) n FROM t GROUP BY GROUPING SETS ((${x}), (${y}), ()) ORDER BY n`,
  (x) => `SELECT count(*) n, count(id) FROM t GROUP BY CUBE (${x}, id > 2) ORDER BY n, 2`,
  (x, y) => `SELECT count(*) FROM (SELECT ${x} FROM t UNION SELECT ${y} FROM t)`,
  (x, y) => `SELECT count(*) FROM (SELECT ${x} FROM t INTERSECT SELECT ${y} FROM t)`,
  (x, y) => `SELECT count(*) FROM (SELECT ${x} FROM t INTERSECT ALL SELECT ${y} FROM t WHERE id > 1)`,
  (x, y) => `SELECT count(*) FROM (SELECT ${x} FROM t EXCEPT SELECT ${y} FROM t WHERE id = 1)`,
  (x, y) => `SELECT count(*) FROM (SELECT ${x} FROM t EXCEPT ALL SELECT ${y} FROM t WHERE id = 1)`,
  (x, y) => `SELECT count_if(${x} IS DISTINCT FROM ${y}) FROM t`,
  (x, y) => `SELECT count(*) FROM t a JOIN t b ON a.${x} IS NOT DISTINCT FROM b.${y}`,
  (x) => `SELECT count(*) OVER (PARTITION BY ${x}) n FROM t ORDER BY n`,
  (x) => `SELECT row_number() OVER (PARTITION BY ${x} ORDER BY id) n FROM t ORDER BY n`,
  (x) => `SELECT count(DISTINCT ${x}), approx_distinct(${x}) FROM t`,
  (x) => `SELECT count(DISTINCT ${x}) FILTER (WHERE id > 1) FROM t`,
  (x, y) => `SELECT count(DISTINCT (${x}, ${y})) FROM t`,
  (x) => `SELECT cardinality(array_agg(DISTINCT ${x})) FROM t`,
  (x) => `SELECT cardinality(array_agg(DISTINCT ${x}) FILTER (WHERE id <> 2)) n FROM t GROUP BY id > 3 ORDER BY n`,
  (x) => `SELECT cardinality(histogram(${x})), array_sort(map_values(histogram(${x}))) FROM t`,
  (x) => `SELECT array_sort(map_values(histogram(DISTINCT ${x}))) FROM t`,
  (x) => `SELECT map_values(map_agg(${x}, 1)) FROM t`,
  (x) => `SELECT array_sort(transform(map_values(multimap_agg(${x}, id)), v -> CAST(cardinality(v) AS bigint))) FROM t`,
  (x) =>
    `SELECT n FROM t MATCH_RECOGNIZE (PARTITION BY ${x} ORDER BY id MEASURES count(*) AS n ALL ROWS PER MATCH PATTERN (A+) DEFINE A AS true) ORDER BY n`,
  (x, y) => `SELECT count(*) FROM t a FULL JOIN t b ON a.${x} IS NOT DISTINCT FROM b.${y} AND a.id < b.id`,
  (x) =>
    `SELECT cardinality(map_agg(${x}, id)), min(id), count(DISTINCT ROW(${x}, id > 2)) FROM t GROUP BY ROLLUP (${x}) ORDER BY 1, 2`,
  (x, y) =>
    `SELECT count(*) FROM (SELECT ${x} z FROM t INTERSECT SELECT ${y} FROM t EXCEPT SELECT ${x} FROM t WHERE id = 1)`,
  (x, y) => `SELECT cardinality(array_distinct(ARRAY[${x}, ${y}, NULL, NULL])) FROM t ORDER BY id`,
  (x, y) => `SELECT cardinality(array_union(ARRAY[${x}], ARRAY[${y}, NULL])) FROM t ORDER BY id`,
  (x, y) => `SELECT cardinality(array_intersect(ARRAY[${x}, ${y}], ARRAY[${y}])) FROM t ORDER BY id`,
  (x, y) => `SELECT cardinality(array_except(ARRAY[${x}, NULL], ARRAY[${y}])) FROM t ORDER BY id`,
  (x, y) => `SELECT arrays_overlap(ARRAY[${x}], ARRAY[${y}]) FROM t ORDER BY id`,
  (x, y) => `SELECT contains_sequence(ARRAY[NULL, ${x}], ARRAY[${y}]) FROM t ORDER BY id`,
  (x, y) => `SELECT map_values(array_histogram(ARRAY[${x}, ${y}, NULL])) FROM t ORDER BY id`,
]

/** Statements that order values. Equal values have the same rank. */
const ranked: readonly Statement[] = [
  (x, y) => `SELECT count_if(${x} < ${y}), count_if(${x} >= ${y}), count_if(${x} BETWEEN ${y} AND ${x}) FROM t`,
  (x) =>
    `SELECT rank() OVER (ORDER BY ${x}) r, dense_rank() OVER (ORDER BY ${x} DESC NULLS FIRST) d FROM t ORDER BY 1, 2`,
  (x) => `SELECT count(*) OVER (ORDER BY ${x} GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) n FROM t ORDER BY n`,
  (x) => `SELECT count(*) FROM (SELECT ${x} FROM t ORDER BY ${x} FETCH FIRST 1 ROW WITH TIES)`,
  (x) => `SELECT id FROM t ORDER BY ${x} DESC NULLS LAST, id DESC`,
  (x) => `SELECT array_agg(id ORDER BY ${x} NULLS FIRST, id) FROM t`,
  (x, y) => `SELECT count_if(greatest(${x}, ${y}) = ${y}), count_if(least(${x}, ${y}) = ${x}) FROM t`,
  (x, y) => `SELECT count_if(${x} = (SELECT max(${y}) FROM t)), count_if(i = (SELECT min_by(i, ${y}) FROM t)) FROM t`,
  (x, y) => `SELECT count(*) FROM t a JOIN t b ON a.${x} < b.${y}`,
]

/** Statements that compare values with `=`. */
const equal: readonly Statement[] = [
  (x, y) => `SELECT count(*), count(a.id), count(b.id) FROM t a FULL JOIN t b ON a.${x} = b.${y} AND a.id <> b.id`,
  (x, y) => `SELECT count(*) FROM t a WHERE (SELECT count(*) FROM t b WHERE a.${x} = b.${y}) > 1`,
  (x, y) => `SELECT count_if(${x} = ${y}) FROM t`,
  (x, y) => `SELECT count_if(${x} IN (${y})), count_if(${x} IN (${y}, ${y})) FROM t`,
  (x, y) => `SELECT count_if(CASE ${x} WHEN ${y} THEN true ELSE false END) FROM t`,
  (x, y) => `SELECT count(*) FROM t a JOIN t b ON a.${x} = b.${y}`,
  (x, y) => `SELECT count(*) FROM t a LEFT JOIN t b ON a.${x} = b.${y}`,
  (x, y) => `SELECT count(*) FROM t a, t b WHERE a.${x} = b.${y} AND a.id < b.id`,
  (x, y) => `SELECT count(*) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE a.${x} = b.${y} AND b.id <> a.id)`,
  (x) => `SELECT count(*) FROM t a JOIN t b USING (${x})`,
]

/** Statements with IN or ANY over a query. They are not for rows: a row before IN needs a query of as many columns. */
const queried: readonly Statement[] = [
  (x, y) => `SELECT count(*) FROM t WHERE ${x} IN (SELECT ${y} FROM t WHERE ${y} IS NOT NULL)`,
  (x, y) => `SELECT count(*) FROM t WHERE ${x} = ANY (SELECT ${y} FROM t WHERE ${y} IS NOT NULL)`,
  (x, y) => `SELECT count(*) FROM t a JOIN t b ON a.id = b.id AND a.${x} IN (SELECT ${y} FROM t)`,
  (x, y) => `SELECT count_if(${x} IN (SELECT b.${y} FROM t b WHERE b.id = t.id)) FROM t`,
  (x, y) => `SELECT count(b.id) FROM t a LEFT JOIN t b ON a.id = b.id AND b.${x} IN (SELECT ${y} FROM t)`,
  (x, y) => `SELECT count_if(${x} = ANY (SELECT b.${y} FROM t b WHERE b.id = t.id)) FROM t`,
]

/** Statements that use the result of IN or ANY as a value take equal values as DISTINCT does. */
const marked: readonly Statement[] = [
  (x, y) => `SELECT count_if(${x} IN (SELECT ${y} FROM t WHERE ${y} IS NOT NULL)) FROM t`,
  (x, y) => `SELECT count(*) FROM t WHERE ${x} NOT IN (SELECT ${y} FROM t WHERE ${y} IS NOT NULL AND id <> 1)`,
  (x, y) => `SELECT count(*) FROM t WHERE ${x} = ANY (SELECT ${y} FROM t WHERE ${y} IS NOT NULL) OR id = 1`,
  (x, y) => `SELECT count(*) FROM t a LEFT JOIN t b ON a.id = b.id AND a.${x} IN (SELECT ${y} FROM t)`,
]

/** Statements that compare values with `=`, for values without NULL in them. */
const determinate: readonly Statement[] = [
  (x, y) => `SELECT count(nullif(${x}, ${y})) FROM t`,
  (x, y) => `SELECT array_position(ARRAY[NULL, ${x}], ${y}) FROM t WHERE ${x} IS NOT NULL ORDER BY id`,
  (x, y) => `SELECT count_if(contains(ARRAY[${x}], ${y})) FROM t`,
  (x, y) => `SELECT cardinality(array_remove(ARRAY[${x}, ${x}], ${y})) FROM t WHERE ${x} IS NOT NULL ORDER BY id`,
  (x, y) =>
    `SELECT coalesce(element_at(MAP(ARRAY[${x}], ARRAY[1]), ${y}), 0) FROM t WHERE ${x} IS NOT NULL ORDER BY id`,
  (x, y) => `SELECT coalesce(TRY(MAP(ARRAY[${x}], ARRAY[1])[${y}]), 0) FROM t WHERE ${x} IS NOT NULL ORDER BY id`,
  (x, y) => `SELECT count_if(MAP(ARRAY[${x}], ARRAY[1]) = MAP(ARRAY[${y}], ARRAY[1])) FROM t WHERE ${x} IS NOT NULL`,
  (x, y) => `SELECT count_if(MAP(ARRAY[1], ARRAY[${x}]) = MAP(ARRAY[1], ARRAY[${y}])) FROM t`,
  (x, y) => `SELECT count_if(ARRAY[${x}] = ARRAY[${y}]), count_if(ROW(${x}, 1) = ROW(${y}, 1)) FROM t`,
]

/** Statements that use the values as keys of maps. */
const keys: readonly Statement[] = [
  (x, y) => `SELECT TRY(MAP(ARRAY[${x}, ${y}], ARRAY[1, 2])) IS NULL FROM t WHERE ${x} IS NOT NULL ORDER BY id`,
  (x, y) => `SELECT TRY(map_from_entries(ARRAY[ROW(${x}, 1), ROW(${y}, 2)])) IS NULL FROM t WHERE ${x} IS NOT NULL ORDER BY id`, // prettier-ignore
  (x, y) => `SELECT map_values(multimap_from_entries(ARRAY[ROW(${x}, 1), ROW(${y}, 2)])) FROM t WHERE ${x} IS NOT NULL ORDER BY id`, // prettier-ignore
  (x, y) => `SELECT map_values(map_concat(MAP(ARRAY[${x}], ARRAY[1]), MAP(ARRAY[${y}], ARRAY[2]))) FROM t WHERE ${x} IS NOT NULL ORDER BY id`, // prettier-ignore
  (x, y) => `SELECT cardinality(map_union(m)) FROM (SELECT MAP(ARRAY[${x}], ARRAY[1]) m FROM t WHERE ${x} IS NOT NULL UNION ALL SELECT MAP(ARRAY[${y}], ARRAY[2]) FROM t WHERE ${y} IS NOT NULL)`, // prettier-ignore
  (x, y) => `SELECT TRY(transform_keys(MAP(ARRAY[1, 2], ARRAY[1, 2]), (k, v) -> if(k = 1, ${x}, ${y}))) IS NULL FROM t WHERE ${x} IS NOT NULL ORDER BY id`, // prettier-ignore
  (x, y) => `SELECT count(*) FROM (SELECT DISTINCT m FROM (SELECT MAP(ARRAY[${x}], ARRAY[1]) m FROM t WHERE id IN (1, 2) UNION ALL SELECT MAP(ARRAY[${y}], ARRAY[1]) FROM t WHERE id IN (1, 2)))`, // prettier-ignore
]

const zipped: Statement = (x, y) =>
  `SELECT map_values(map_zip_with(MAP(ARRAY[${x}], ARRAY[1]), MAP(ARRAY[${y}], ARRAY[2]), (k, a, b) -> a + b)) FROM t WHERE ${x} IS NOT NULL ORDER BY id`

describe('Equal values with different representations give the answers of equal numbers', { timeout: 600_000 }, () => {
  let runner: TableRunner
  beforeAll(async () => void (runner = await openTableRunner()))
  afterAll(() => runner.close())

  /** The answers of statements over numbers, by the numbers of the rows. Only few combinations of numbers exist. */
  const answers = new Map<string, unknown>()
  const meantOf = async (sql: string, numbers: string): Promise<unknown> => {
    const key = `${numbers}: ${sql}`
    if (!answers.has(key)) answers.set(key, await runner.outcome(sql))
    return answers.get(key)
  }

  it.each(kinds)('$name', async ({ name, values, unequal = [], indeterminate, ordered }) => {
    // Each value occurs in both representations, and NULL twice. `i` is the number, `e` too if the value is equal to
    // itself.
    const rows = [...values, ...values.map(([number, x, y]) => [number, y, x] as const)]
    const row = (number: number, x: string, y: string, id: number): string =>
      `(${id}, ${number}, ${unequal.includes(number) ? 'NULL' : number}, ${x}, ${y})`
    const listed = rows.map(([number, x, y], at) => row(number, x, y, at + 1))
    const all = [
      ...listed,
      `(${rows.length + 1}, NULL, NULL, NULL, NULL)`,
      `(${rows.length + 2}, NULL, NULL, NULL, NULL)`,
    ]
    await runner.createTable('t', `SELECT * FROM (VALUES ${all.join(', ')}) v(id, i, e, x, y)`)
    const numbers = rows.map(([number]) => (unequal.includes(number) ? `${number} NULL` : number)).join()
    const wrong: unknown[] = []
    const check = async (statements: readonly Statement[], number: string): Promise<void> => {
      for (const of of statements) {
        const sql = of('x', 'y')
        // The value for `e` is not NULL, although `e` is.
        const expected = of(number, number)
          .replaceAll(`${number} IS NOT NULL`, 'i IS NOT NULL')
          // CASE finds its operand if the same text is repeated, even if it is NULL.
          .replaceAll(`CASE ${number} WHEN ${number} `, `CASE ${number} WHEN ${number} + 0 `)
        const [answer, meant] = [await runner.outcome(sql), await meantOf(expected, numbers)]
        if (JSON.stringify(answer) !== JSON.stringify(meant)) wrong.push({ sql, answer, meant })
      }
    }
    await check(identical, 'i')
    await check(equal, 'e')
    if (!name.startsWith('row')) {
      await check(queried, 'e')
      await check(marked, 'i')
    }
    if (ordered) await check(ranked, 'i')
    if (indeterminate === undefined) {
      await check(unequal.length === 0 ? [...keys, zipped] : keys.slice(0, -1), 'i')
      if (unequal.length === 0) await check(determinate, 'e')
    }
    expect(wrong).toEqual([])
  })
})

describe('NaN in arrays, maps and rows', () => {
  let runner: TableRunner
  beforeAll(async () => {
    runner = await openTableRunner()
    await runner.createTable('t', 'SELECT * FROM (VALUES (1, nan()), (2, 1e0)) v(id, d)')
  })
  afterAll(() => runner.close())

  it.each([
    ['array_position(ARRAY[d], d)', 0, 1],
    ['contains(ARRAY[d], d)', false, true],
    ['cardinality(array_distinct(ARRAY[d, d]))', 1, 1],
    ['cardinality(array_remove(ARRAY[d], d))', 1, 0],
    ['element_at(MAP(ARRAY[d], ARRAY[1]), d)', null, 1],
    ['TRY(MAP(ARRAY[d], ARRAY[1])[d])', null, 1],
    ['MAP(ARRAY[d], ARRAY[1]) = MAP(ARRAY[d], ARRAY[1])', false, true],
    ['MAP(ARRAY[1], ARRAY[d]) = MAP(ARRAY[1], ARRAY[d])', false, true],
    ['ROW(d, 1) = ROW(d, 1)', false, true],
  ])('%s', async (expression, ofNaN, ofOne) => {
    expect(await runner.outcome(`SELECT ${expression} FROM t ORDER BY id`)).toEqual([[ofNaN], [ofOne]])
  })
})

it('The key of a map may not contain NULL', async () => {
  const runner = await openTableRunner()
  await runner.createTable('n', 'SELECT CAST(NULL AS integer) x')
  const maps = [
    `MAP(ARRAY[ROW(1, x)], ARRAY[1])`,
    `MAP(ARRAY[ARRAY[x]], ARRAY[1])`,
    `MAP(ARRAY[MAP(ARRAY[1], ARRAY[x])], ARRAY[1])`,
    `map_from_entries(ARRAY[ROW(ROW(1, x), 1)])`,
  ]
  for (const map of maps)
    expect(await runner.outcome(`SELECT ${map} FROM n`), map).toMatch(
      /^INVALID_FUNCTION_ARGUMENT: map key cannot be indeterminate/,
    )
  runner.close()
})
