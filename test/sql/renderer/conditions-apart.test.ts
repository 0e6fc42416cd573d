import { describe, expect, it } from 'vitest'
import { analyzeQuery } from '../../support/front-end.ts'

const sqlOf = async (sql: string): Promise<string> => (await analyzeQuery(sql)).query.sql

/** Returns the conditions of the query in EXISTS, beginning with its innermost SELECT. */
async function conditionsOf(where: string): Promise<readonly string[]> {
  const sql = await sqlOf(`SELECT id FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE ${where})`)
  const inner = sql.slice(sql.indexOf('EXISTS ('))
  return inner.split(' WHERE ').slice(1)
}

describe('The conditions of a correlated query', () => {
  it.each([
    'c.id < o.id AND o.customer % 1000 = 0',
    'o.customer % 1000 = 0 AND c.id < o.id',
    'c.id < o.id AND 10 / o.customer > 1',
    'c.id < o.id AND CAST(o.tags[1] AS bigint) = 1',
    'c.id = o.id AND 10 / o.customer > 1',
  ])('are checked before rows are paired if they may fail and do not use the outer row: %s', async (where) => {
    const conditions = await conditionsOf(where)
    expect(conditions).toHaveLength(2)
    expect(conditions[0]).toMatch(/^CAST\(CASE WHEN /)
    expect(conditions[1]).toMatch(/^\(?x\d+ [<=] x\d+\)/)
  })

  it('keep their order', async () => {
    const [own] = await conditionsOf('o.customer <> 0 AND c.id < o.id AND 10 / o.customer > 1')
    expect(own).toMatch(/<> .* AND .*q_idiv/)
  })

  it.each([
    ['that cannot fail', 'c.id < o.id AND o.customer = 7'],
    ['that compare with the row', 'c.id < o.id AND o.customer / c.id > 1'],
    ['that change each time', 'c.id < o.id AND o.customer / CAST(random() * 10 + 1 AS bigint) > 1'],
    ['that hold a query', 'c.id < o.id AND 10 / (SELECT max(id) FROM orders) > 1'],
  ])('stay with the others if they are conditions %s', async (_which, where) => {
    const inner = await conditionsOf(where)
    expect(inner.filter((condition) => !condition.startsWith('(SELECT')).length).toBeLessThanOrEqual(1)
  })
})
