import { describe, expect, it } from 'vitest'
import { analyze } from '../../support/front-end.ts'

describe('A lambda of reduce_agg', () => {
  it.each([
    'SELECT reduce_agg(id, 0, (x, y) -> x + customer, (x, y) -> x + y) FROM orders',
    'SELECT reduce_agg(id, 0, (x, y) -> x + y, (x, y) -> x + y + customer) FROM orders',
    'SELECT reduce_agg(id, 0, (x, y) -> x + cardinality(filter(tags, tag -> y > 0)), (x, y) -> x + y) FROM orders',
    'SELECT customer + 1, reduce_agg(id, 0, (x, y) -> x + (customer + 1), (x, y) -> x + y) FROM orders GROUP BY customer + 1',
    'SELECT 1 FROM orders GROUP BY customer HAVING reduce_agg(id, 0, (x, y) -> x + id, (x, y) -> x + y) > 0',
    'SELECT reduce_agg(id, 0, (x, y) -> x + customer, (x, y) -> x + y) OVER (PARTITION BY customer) FROM orders',
  ])('is refused if it uses a column of the query: %s', async (sql) => {
    await expect(analyze(sql)).rejects.toMatchObject({
      errorName: 'NOT_SUPPORTED',
      message: expect.stringMatching(/^line 1:\d+: Lambda of reduce_agg cannot use columns of the query/),
    })
  })

  it.each([
    'SELECT customer, reduce_agg(id, 0, (x, y) -> x + customer, (x, y) -> x + y) FROM orders GROUP BY customer',
    'SELECT reduce_agg(id, 0, (x, y) -> x + y, (x, y) -> x + y) OVER (ORDER BY customer) FROM orders',
  ])('may use its parameters and a key of its group: %s', async (sql) => {
    await expect(analyze(sql)).resolves.toMatchObject({ kind: 'query' })
  })
})
