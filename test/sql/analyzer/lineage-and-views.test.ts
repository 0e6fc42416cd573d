import { describe, expect, it } from 'vitest'
import type { MetadataPort } from '../../../src/sql/front-end.ts'
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

describe('A materialized view', () => {
  it('asks for each table of its query once, also to find out whether it is fresh', async () => {
    const asked: string[] = []
    const shop = shopMetadata(asked)
    const sources = [{ catalog: 'shop', schema: 'main', table: 'orders', snapshot: 'first' }]
    const metadata: MetadataPort = {
      ...shop,
      async table(catalog, schema, name) {
        const view = name === 'big_orders'
        const found = await shop.table(catalog, schema, name)
        return found && (view ? { ...found, materialized: { stored: { refreshedAt: 0, sources } } } : found)
      },
    }
    await analyze('SELECT * FROM big_orders', metadata)
    expect(asked.toSorted()).toEqual(['shop.main.big_orders', 'shop.main.orders'])
  })
})

describe('A view whose declared columns differ from those of its text', () => {
  const viewOf = (sql: string, declared: string): MetadataPort => ({
    ...shopMetadata(),
    async table(catalog, schema, name) {
      const orders = await shopMetadata().table(catalog, schema, 'orders')
      if (!orders || name === 'orders') return orders
      const columns = declared.split('; ').map((column) => {
        const space = column.indexOf(' ')
        return { name: column.slice(0, space), type: column.slice(space + 1), nullable: true }
      })
      return { ...orders, table: name, kind: 'VIEW', columns, view: { sql, catalog, schema } }
    },
  })

  it.each([
    [
      'SELECT id FROM orders',
      'id bigint; gone bigint',
      'stored view column count (2) does not match column count derived from the view query analysis (1)',
    ],
    [
      'SELECT id, total FROM orders',
      'id bigint; customer decimal(12,2)',
      'column [total] of type decimal(12,2) projected from query view at position 1 has a different name from column [customer] of type decimal(12,2) stored in view definition',
    ],
    [
      'SELECT id + 1 FROM orders',
      'id bigint',
      'a column of type bigint projected from query view at position 0 has no name',
    ],
    ...[
      ['total', 'decimal(12,2)', 'decimal(9,1)'],
      ['id', 'bigint', 'integer'],
      ['tags', 'array(varchar)', 'array(varchar(3))'],
      ['tags', 'array(varchar)', 'varchar'],
    ].map(([name, now, declared]) => [
      `SELECT ${name} FROM orders`,
      `${name} ${declared}`,
      `column [${name}] of type ${now} projected from query view at position 0 cannot be coerced to column [${name}] of type ${declared} stored in view definition`,
    ]),
  ])('is stale: %s as %s', async (sql, declared, reason) => {
    await expect(analyze('SELECT 1 FROM v', viewOf(sql!, declared!))).rejects.toMatchObject({
      errorName: 'VIEW_IS_STALE',
      message: expect.stringContaining(`View 'shop.main.v' is stale or in invalid state: ${reason}`),
      location: { lineNumber: 1, columnNumber: 15 },
    })
  })

  it.each([
    ['SELECT id, total FROM orders', 'id decimal(30, 2); total double'],
    [`SELECT 'abc' AS a, DATE '2020-01-01' AS b FROM orders`, 'a varchar(5); b timestamp(3)'],
    ['SELECT CAST(NULL AS row(x integer)) AS a', 'a row(y bigint)'],
    ['SELECT NULL AS a', 'a json'],
    ['SELECT id AS "ID" FROM orders', 'id bigint'],
  ])(
    'is read with its declared types where the types of its text can be coerced to them: %s as %s',
    async (sql, declared) => {
      const { columns } = await analyzeQuery('SELECT * FROM v', session, viewOf(sql, declared))
      expect(columns.map(({ name, type }) => `${name} ${type}`).join('; ')).toBe(declared)
    },
  )
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
