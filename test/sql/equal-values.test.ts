import { afterAll, beforeAll, expect, it } from 'vitest'
import { openTableRunner, type TableRunner } from '../support/table-runner.ts'

// One instant in two zones is one value, a map is its entries in any order, NaN is no number, not even itself.

let runner: TableRunner
beforeAll(async () => {
  runner = await openTableRunner()
  await runner.createTable(
    't',
    `SELECT * FROM (VALUES
       (1, TIMESTAMP '2024-01-01 12:00:00 UTC', TIMESTAMP '2024-01-01 13:00:00 +01:00', MAP(ARRAY['a','b'], ARRAY[1,2]), MAP(ARRAY['b','a'], ARRAY[2,1]), nan()),
       (2, TIMESTAMP '2024-01-01 13:00:00 +01:00', TIMESTAMP '2024-01-01 12:00:00 UTC', MAP(ARRAY['b','a'], ARRAY[2,1]), MAP(ARRAY['a','b'], ARRAY[1,2]), 1e0)
     ) v(id, x, y, m, n, d)`,
  )
})
afterAll(() => runner.close())

for (const [x, y] of [
  ['x', 'y'],
  ['m', 'n'],
] as const) {
  it.each([
    [`SELECT count(*) FROM (SELECT ${x} FROM t EXCEPT ALL SELECT ${y} FROM t WHERE id = 1)`, 1],
    [`SELECT count(*) FROM (SELECT ${x} FROM t EXCEPT SELECT ${y} FROM t WHERE id = 1)`, 0],
    [`SELECT count(*) FROM (SELECT ${x} FROM t INTERSECT ALL SELECT ${y} FROM t)`, 2],
    [`SELECT count(*) FROM (SELECT ${x} FROM t INTERSECT ALL SELECT ${y} FROM t WHERE id = 2)`, 1],
    [`SELECT count(*) FROM (SELECT ${x} FROM t INTERSECT SELECT ${y} FROM t)`, 1],
    [`SELECT count(*) FROM (SELECT ${x} FROM t UNION SELECT ${y} FROM t)`, 1],
    [`SELECT sum(cardinality(array_union(ARRAY[${x}], ARRAY[${y}, NULL]))) FROM t`, 4],
    [`SELECT sum(cardinality(array_intersect(ARRAY[${x}, ${y}], ARRAY[${y}]))) FROM t`, 2],
    [`SELECT sum(cardinality(array_except(ARRAY[${x}, NULL], ARRAY[${y}]))) FROM t`, 2],
    [`SELECT count_if(arrays_overlap(ARRAY[${x}], ARRAY[${y}])) FROM t`, 2],
    [`SELECT sum(array_position(ARRAY[NULL, ${x}], ${y})) FROM t`, 4],
    [`SELECT count_if(contains_sequence(ARRAY[NULL, ${x}], ARRAY[${y}])) FROM t`, 2],
    [`SELECT sum(cardinality(array_distinct(ARRAY[${x}, ${y}]))) FROM t`, 2],
    [`SELECT count_if(contains(ARRAY[${x}], ${y})) FROM t`, 2],
    [`SELECT count(DISTINCT ${x}) FROM t`, 1],
    [`SELECT count(*) FROM (SELECT DISTINCT ${x} FROM t)`, 1],
    [`SELECT count(*) FROM (SELECT ${x} FROM t GROUP BY ${x})`, 1],
    [`SELECT count(*) FROM t a JOIN t b ON a.${x} = b.${y}`, 4],
    [`SELECT count_if(${x} IN (${y})) FROM t`, 2],
    [`SELECT max(n) FROM (SELECT count(*) OVER (PARTITION BY ${x}) n FROM t)`, 2],
  ])('%s', async (sql, count) => {
    expect(await runner.outcome(sql)).toEqual([[count]])
  })
}

it('NaN has no position', async () => {
  expect(await runner.outcome('SELECT array_position(ARRAY[d], d) FROM t ORDER BY id')).toEqual([[0], [1]])
  expect(await runner.outcome('SELECT contains(ARRAY[d], d), cardinality(array_distinct(ARRAY[d, d])) FROM t ORDER BY id')).toEqual([[false, 1], [true, 1]]) // prettier-ignore
})
