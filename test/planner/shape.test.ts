import { describe, expect, it } from 'vitest'
import { createStatementPlanner } from '../../src/planner/statement-planner.ts'
import { fixedMetadata, recordedSession } from '../support/sql/fixed-metadata.ts'
import { planText } from '../support/plan-text.ts'

const planner = createStatementPlanner()

async function shapeOf(sql: string) {
  const analyzed = await planText(planner, sql, recordedSession(), fixedMetadata)
  if (analyzed.kind !== 'query') throw new Error(`${sql} is ${analyzed.kind}`)
  const { streams, risky, simple } = analyzed.query
  return { streams, risky, simple }
}

const chain = (tables: number): string =>
  `SELECT count(*) FROM ${Array.from({ length: tables }, (_, i) => `nation t${i}`).join(', ')}`

describe('The shape of a query for the planner', () => {
  it.each([
    ['SELECT name FROM nation', { streams: true, risky: false, simple: true }],
    ["SELECT upper(name) FROM nation WHERE name LIKE 'A%'", { streams: true, risky: false, simple: true }],
    ['SELECT 1', { streams: false, risky: false, simple: true }],
    ['SELECT name FROM nation ORDER BY 1', { streams: false, risky: false, simple: true }],
    ['SELECT name FROM nation LIMIT 1', { streams: false, risky: false, simple: true }],
    ['SELECT count(*) FROM nation', { streams: false, risky: false, simple: true }],
    ['SELECT row_number() OVER () FROM nation', { streams: false, risky: false, simple: true }],
    ['SELECT name FROM nation UNION ALL SELECT name FROM region', { streams: false, risky: false, simple: true }],
    // A function that makes large values from small ones.
    ["SELECT lpad(name, 100, 'x') FROM nation", { streams: true, risky: true, simple: false }],
    ['SELECT max(cardinality(repeat(1, 5))) FROM nation', { streams: false, risky: true, simple: false }],
    ["SELECT 1 WHERE EXISTS (SELECT rpad('a', 9, 'b'))", { streams: false, risky: true, simple: false }],
    // Several rows or values from one row.
    ['SELECT x FROM nation CROSS JOIN UNNEST(ARRAY[1, 2]) u(x)', { streams: true, risky: true, simple: false }],
    ['SELECT transform(ARRAY[1], x -> x) FROM nation', { streams: true, risky: true, simple: false }],
    [
      'WITH RECURSIVE t(n) AS (VALUES 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT * FROM t',
      { streams: false, risky: true, simple: false },
    ],
  ])('%s', async (sql, shape) => {
    expect(await shapeOf(sql)).toEqual(shape)
  })

  it('is not simple with more than 6 tables, and risky with more than 21', async () => {
    expect(await shapeOf(chain(6))).toMatchObject({ risky: false, simple: true })
    expect(await shapeOf(chain(7))).toMatchObject({ risky: false, simple: false })
    expect(await shapeOf(chain(21))).toMatchObject({ risky: false })
    expect(await shapeOf(chain(22))).toMatchObject({ risky: true })
  })

  it('depends on the body of a declared function, not on its name', async () => {
    const declared = 'WITH FUNCTION repeat(x bigint) RETURNS bigint RETURN x + 1 SELECT repeat(nationkey) FROM nation'
    expect(await shapeOf(declared)).toMatchObject({ risky: false })
    const growing = "WITH FUNCTION f(x bigint) RETURNS varchar RETURN lpad('', x, 'a') SELECT f(nationkey) FROM nation"
    expect(await shapeOf(growing)).toMatchObject({ risky: true, simple: false })
    const outer =
      "WITH FUNCTION f(x bigint) RETURNS varchar RETURN lpad('', x, 'a'), FUNCTION g(x bigint) RETURNS varchar RETURN f(x) SELECT g(nationkey) FROM nation"
    expect(await shapeOf(outer)).toMatchObject({ risky: true, simple: false })
  })
})
