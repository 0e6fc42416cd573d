import { describe, expect, it } from 'vitest'
import { analyze, analyzeQuery, session, shopMetadata } from '../../support/front-end.ts'

const lineageOf = async (sql: string): Promise<readonly (readonly string[])[]> =>
  (await analyzeQuery(sql)).columns.map((column) => column.lineage)

describe('Lineage of output columns', () => {
  it('names the source columns, through expressions, subqueries and common tables', async () => {
    expect(await lineageOf('SELECT id, total * 2, 1 FROM orders')).toEqual([
      ['shop.main.orders.id'],
      ['shop.main.orders.total'],
      [],
    ])
    expect(
      await lineageOf(
        'WITH t AS (SELECT customer AS c, sum(total) AS s FROM orders GROUP BY 1) SELECT name, s FROM t JOIN customers ON id = c',
      ),
    ).toEqual([['shop.main.customers.name'], ['shop.main.orders.total']])
  })

  it('covers both sides of set operations, and all inputs of a window', async () => {
    expect(await lineageOf('SELECT id FROM orders UNION ALL SELECT id FROM customers')).toEqual([
      ['shop.main.customers.id', 'shop.main.orders.id'],
    ])
    expect(await lineageOf('SELECT rank() OVER (PARTITION BY customer ORDER BY total) FROM orders')).toEqual([
      ['shop.main.orders.customer', 'shop.main.orders.total'],
    ])
  })

  it('leads from the elements of an unnested array to the array', async () => {
    expect(await lineageOf('SELECT tag FROM orders CROSS JOIN UNNEST(tags) AS u (tag)')).toEqual([
      ['shop.main.orders.tags'],
    ])
  })
})

describe('Views', () => {
  it('are read as their text, with their declared types', async () => {
    const { query, columns } = await analyzeQuery('SELECT * FROM big_orders')
    expect(columns.map(({ name, type }) => `${name} ${type}`)).toEqual(['id bigint', 'total double'])
    expect(columns[1]!.lineage).toEqual(['shop.main.orders.total'])
    expect(query.scans.map((scan) => scan.table)).toEqual(['orders'])
  })

  it('resolve names in their own schema, not in that of the session', async () => {
    const elsewhere = { ...session, schema: 'other' }
    const { query } = await analyzeQuery('SELECT id FROM shop.main.big_orders', elsewhere)
    expect(query.scans[0]!.schema).toBe('main')
  })

  it.each([
    ['SELECT * FROM stale', 'VIEW_IS_STALE'],
    ['SELECT * FROM broken', 'INVALID_VIEW'],
    ['SELECT * FROM itself', 'INVALID_VIEW'],
  ])('refuse %s with %s', async (sql, errorName) => {
    await expect(analyze(sql)).rejects.toMatchObject({ errorName, location: { lineNumber: 1, columnNumber: 15 } })
  })
})

it('A statement that reads more than 1,000 views is refused', async () => {
  const reads = (count: number): string =>
    `SELECT ${Array.from({ length: count }, () => '(SELECT max(id) FROM big_orders)').join(', ')}`
  await expect(analyze(reads(1001))).rejects.toMatchObject({ errorName: 'QUERY_EXCEEDED_COMPILER_LIMIT' })
})

describe('The resolution of table names', () => {
  it('asks once for each table, also of views, and never for a name of a WITH clause', async () => {
    const asked: string[] = []
    await analyze(
      'WITH orders AS (SELECT id FROM big_orders) SELECT * FROM orders a JOIN orders b ON a.id = b.id JOIN customers c ON c.id = a.id',
      shopMetadata(asked),
    )
    expect(asked.sort()).toEqual(['shop.main.big_orders', 'shop.main.customers', 'shop.main.orders'])
  })

  it("finds the table with the name of a common table inside this table's own query", async () => {
    const { query } = await analyzeQuery('WITH orders AS (SELECT id FROM orders) SELECT * FROM orders')
    expect(query.scans.map((scan) => scan.table)).toEqual(['orders'])
  })
})
