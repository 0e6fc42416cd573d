import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ColumnStatistics } from '../../../src/connectors/spi/column-statistics.ts'
import { createStatementPlanner } from '../../../src/planner/statement-planner.ts'
import type { KnownStatistics, MetadataPort, SessionContext } from '../../../src/sql/front-end.ts'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'
import { fixedMetadata, recordedSession } from '../../support/sql/fixed-metadata.ts'
import { planText } from '../../support/plan-text.ts'
import { rightsUnder } from '../../support/rights-under.ts'

const planner = createStatementPlanner()

describe('SHOW STATS', () => {
  let database: InProcessDuckDB
  beforeAll(async () => {
    database = await openDuckDB()
  })
  afterAll(() => database.close())

  async function rowsOf(
    sql: string,
    known: KnownStatistics,
    metadata: MetadataPort = fixedMetadata,
    session: Partial<SessionContext> = {},
  ) {
    const port = { ...metadata, statistics: () => Promise.resolve(known) }
    const analyzed = await planText(planner, sql, { ...recordedSession(), ...session }, port)
    if (analyzed.kind !== 'query') throw new Error(`${sql} is ${analyzed.kind}`)
    return database.rows(analyzed.query.sql)
  }

  const orders: KnownStatistics = {
    rows: 200,
    columns: {
      orderkey: { nulls: 50, low: -3, high: 2 ** 53 },
      totalprice: { nulls: 200 },
      orderdate: { low: -719_529, high: 2_932_897 },
    },
  }
  const orderkey = ['orderkey', null, null, 0.25, null, '-3', '9007199254740992']
  const totalprice = ['totalprice', 0, 0, 1, null, null, null]
  const orderdate = ['orderdate', null, null, null, null, '-0001-12-31', '+10000-01-01']
  const of = (name: string, [, ...rest]: readonly unknown[]): unknown[] => [name, ...rest]
  const unknown = (name: string): unknown[] => [name, null, null, null, null, null, null]
  const table = (rows: number | null): unknown[] => [null, null, null, null, rows, null, null]

  it.each<[string, unknown[][]]>([
    ['SHOW STATS FOR orders', [orderkey, totalprice, orderdate, table(200)]],
    ['SHOW STATS FOR (SELECT * FROM orders)', [orderkey, totalprice, orderdate, table(200)]],
    [
      'SHOW STATS FOR (SELECT orderdate, o.orderkey AS k, orderkey + 1, 7 FROM orders o ORDER BY 1)',
      [orderdate, of('k', orderkey), unknown('_col2'), unknown('_col3'), table(200)],
    ],
    [
      'SHOW STATS FOR (SELECT k FROM (SELECT orderkey k, orderdate d FROM orders) ORDER BY k DESC)',
      [of('k', orderkey), table(200)],
    ],
    // There is no estimate after a filter, or of rows that a query makes from others.
    ...[
      'SELECT orderkey FROM orders WHERE orderkey > 3',
      'SELECT orderkey FROM orders LIMIT 1',
      'SELECT DISTINCT orderkey FROM orders',
      'SELECT orderkey FROM orders GROUP BY orderkey',
      'SELECT o.orderkey FROM orders o, orders p',
      'SELECT orderkey FROM orders UNION ALL SELECT orderkey FROM orders',
      'SELECT orderkey FROM orders TABLESAMPLE BERNOULLI (10)',
    ].map((query): [string, unknown[][]] => [`SHOW STATS FOR (${query})`, [unknown('orderkey'), table(null)]]),
  ])('%s', async (sql, rows) => {
    expect(await rowsOf(sql, orders)).toEqual(rows)
  })

  it.each<[string, object]>([
    ['a filter', { filter: 'orderkey > 3' }],
    ['a mask of the column', { columns: [{ name: 'orderkey', mask: 'NULL' }] }],
    ['a mask of another column', { columns: [{ name: 'comment', mask: 'NULL' }] }],
  ])('reveals nothing of a table under %s', async (_what, rule) => {
    const rightsOf = rightsUnder({ tables: [{ privileges: ['SELECT'], ...rule }] })
    const ana: Partial<SessionContext> = { user: 'ana', rightsOf }
    const columns = await rowsOf('SHOW STATS FOR (SELECT orderkey FROM orders)', orders, fixedMetadata, ana)
    expect(columns).toEqual([unknown('orderkey'), table(null)])
    const seen = { ...ana, rightsOf: rightsUnder({ tables: [{ privileges: ['SELECT'] }] }) }
    expect(await rowsOf('SHOW STATS FOR (SELECT orderkey FROM orders)', orders, fixedMetadata, seen)).toEqual([orderkey, table(200)]) // prettier-ignore
  })

  it('shows the statistics of its table for a view', async () => {
    const view = { sql: 'SELECT name AS title, nationkey + 0 AS n FROM nation', catalog: 'tpch', schema: 'tiny' }
    const columns = [['title', 'varchar(25)'], ['n', 'bigint']].map(([name, type]) => ({ name: name!, type: type!, nullable: true })) // prettier-ignore
    const seen = { schema: 'tiny', table: 'seen', kind: 'VIEW', handle: {}, columns, view } as const
    const metadata: MetadataPort = {
      ...fixedMetadata,
      table: (catalog, schema, name) =>
        name === 'seen' ? Promise.resolve(seen) : fixedMetadata.table(catalog, schema, name),
    }
    const known = { rows: 25, columns: { name: { nulls: 5 } } }
    const rows = [['title', null, null, 0.2, null, null, null], unknown('n'), table(25)]
    expect(await rowsOf('SHOW STATS FOR seen', known, metadata)).toEqual(rows)
  })

  it("shows the number of distinct values, and Trino's estimate of the size of texts", async () => {
    const known = { rows: 25, columns: { nationkey: { nulls: 0, distinct: 25, storedBytes: 90 }, name: { distinct: 24, storedBytes: 101 } } } // prettier-ignore
    expect(await rowsOf('SHOW STATS FOR (SELECT nationkey, name FROM nation)', known)).toEqual([
      ['nationkey', null, 25, 0, null, null, null],
      ['name', 272, 24, null, null, null, null],
      table(25),
    ])
  })

  it('shows zeros for an empty table, and NULLs for a table without statistics', async () => {
    expect(await rowsOf('SHOW STATS FOR (SELECT orderkey FROM orders)', { rows: 0 })).toEqual([['orderkey', 0, 0, 1, null, null, null], table(0)]) // prettier-ignore
    expect(await rowsOf('SHOW STATS FOR (SELECT orderkey FROM orders)', {})).toEqual([unknown('orderkey'), table(null)])
  })

  it.each<[string, ColumnStatistics, string | null, string | null]>([
    ['bigint', { low: -(2 ** 63), high: 2 ** 63 }, '-9223372036854775808', '9223372036854775807'],
    ['tinyint', { low: 0, high: 1 }, '0', '1'],
    ['double', { low: -0.5, high: 1e7 }, '-0.5', '1.0E7'],
    ['double', { low: Number.NEGATIVE_INFINITY, high: 1.5e-4 }, null, '1.5E-4'],
    ['real', { low: Math.fround(0.1), high: Math.fround(1 / 3) }, '0.1', '0.33333334'],
    ['decimal(38, 3)', { low: 1, high: 123456.789 }, '1.0', '123456.789'],
    ['date', { low: 0, high: 20_000 }, '1970-01-01', '2024-10-04'],
    ['timestamp(3)', { low: 0, high: 20_000 }, null, null],
    ['varchar', { low: 0, high: 1 }, null, null],
  ])('shows bounds of %s as Trino does', async (type, bounds, low, high) => {
    const handle = { schema: 'tiny', table: 't' }
    const found = { ...handle, kind: 'TABLE', handle, columns: [{ name: 'x', type, nullable: true }] } as const
    const metadata = { ...fixedMetadata, table: () => Promise.resolve(found) }
    const known = { rows: 4, columns: { x: { ...bounds, nulls: 1 } } }
    expect(await rowsOf('SHOW STATS FOR t', known, metadata)).toEqual([['x', null, null, 0.25, null, low, high], table(4)]) // prettier-ignore
  })

  it.each([
    ['SHOW STATS FOR nowhere', 'TABLE_NOT_FOUND'],
    ['SHOW STATS FOR (SELECT nope FROM orders)', 'COLUMN_NOT_FOUND'],
  ])('refuses %s', async (sql, errorName) => {
    await expect(rowsOf(sql, orders)).rejects.toMatchObject({ errorName })
  })
})
