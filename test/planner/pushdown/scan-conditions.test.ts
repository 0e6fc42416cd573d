import { describe, expect, it } from 'vitest'
import { constantOf } from '../../../src/sql/analyzer/build.ts'
import type { Expr } from '../../../src/sql/analyzer/tree.ts'
import { termsIn } from '../../../src/planner/pushdown/scan-terms.ts'
import { BOOLEAN, VARCHAR } from '../../../src/sql/types/sql-type.ts'
import { analyzeQuery } from '../../support/front-end.ts'

const conditions = async (sql: string): Promise<unknown[]> =>
  (await analyzeQuery(sql)).query.scans.map(({ where }) => where)

const ann = { name: [{ in: ['ann'] }] }

const like = (pattern: string): Expr => {
  const value: Expr = { kind: 'column', type: VARCHAR, id: 1 }
  return { kind: 'like', type: BOOLEAN, value, pattern: constantOf(VARCHAR, pattern), escape: undefined }
}

it('A scan sends no pattern to its connector that is slow to compare with a long text', () => {
  const termsOf = (pattern: string) =>
    termsIn(like(pattern), () => 'query', { zone: 'UTC', startTimeMillis: 0, valuesOf: () => undefined })
  expect(termsOf(`%${'a'.repeat(254)}%`)).toMatchObject({ terms: [{ column: 'query' }], whole: true })
  expect(termsOf(`%${'a'.repeat(255)}%`)).toEqual({ terms: [], whole: false })
})

describe('The conditions that a scan sends to its connector', () => {
  it.each([
    ["SELECT id FROM customers WHERE name = 'ann' AND id > 3", [ann]],
    ["SELECT id FROM customers WHERE 'ann' = name", [ann]],
    ["SELECT id FROM customers WHERE name IN ('ann', 'bob')", [{ name: [{ in: ['ann', 'bob'] }] }]],
    ["SELECT id FROM customers WHERE name LIKE 'a!_%' ESCAPE '!'", [{ name: [{ like: 'a!_%', escape: '!' }] }]],
    ["SELECT n FROM (SELECT name AS n FROM customers ORDER BY id) WHERE n = 'ann'", [ann]],
    ["SELECT DISTINCT name FROM customers WHERE name = 'ann'", [ann]],
    [
      "SELECT count(*) FROM customers WHERE name = 'ann' AND name LIKE 'a%'",
      [{ name: [{ in: ['ann'] }, { like: 'a%' }] }],
    ],
    ["SELECT 1 FROM customers c JOIN orders o ON c.id = o.customer AND c.name = 'ann'", [ann, undefined]],
    ["SELECT 1 FROM customers c LEFT JOIN orders o ON c.id = o.customer WHERE c.name = 'ann'", [ann, undefined]],
    ["SELECT 1 FROM orders o LEFT JOIN customers c ON c.name = 'ann'", [undefined, ann]],
  ])('%s', async (sql, expected) => {
    expect(await conditions(sql)).toEqual(expected)
  })

  it.each([
    "SELECT id FROM customers WHERE name = 'ann' OR id = 3",
    "SELECT id FROM customers WHERE name <> 'ann'",
    "SELECT id FROM customers WHERE NOT name = 'ann'",
    "SELECT id FROM customers WHERE lower(name) = 'ann'",
    // The cast may cut the value, so that different values become equal.
    "SELECT id FROM customers WHERE CAST(name AS varchar(2)) = 'an'",
    "SELECT id FROM customers WHERE CAST(name AS char(20)) = 'ann'",
    'SELECT id FROM customers WHERE name LIKE name',
    "SELECT * FROM (SELECT * FROM customers LIMIT 3) WHERE name = 'ann'",
    "SELECT * FROM (SELECT name, row_number() OVER () FROM customers) WHERE name = 'ann'",
    "SELECT 1 FROM customers c LEFT JOIN orders o ON c.name = 'ann'",
    "SELECT 1 FROM orders o LEFT JOIN customers c ON o.id = c.id WHERE c.name = 'ann'",
    "SELECT 1 FROM customers c FULL JOIN orders o ON c.name = 'ann'",
    'SELECT name FROM customers WHERE id > 1 UNION ALL SELECT name FROM customers',
    "WITH c AS (SELECT * FROM customers) SELECT 1 FROM c a, c b WHERE a.name = 'ann'",
  ])('are absent: %s', async (sql) => {
    for (const where of await conditions(sql)) expect(where).toBeUndefined()
  })
})
