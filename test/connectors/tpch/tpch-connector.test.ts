import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { duckdbTypeOf } from '../../../src/processes/connector-factories.ts'
import { tpchConnector } from '../../../src/connectors/tpch/tpch-connector.ts'
import { connectorContract } from '../../contract/connector.contract.ts'
import { openDuckDb } from '../../support/duckdb.ts'
import { inspectedBy } from '../../support/inspected-files.ts'
import { scanText } from '../../../src/execution/engine/scan-text.ts'

const etc = new URL('../../../etc', import.meta.url).pathname
const context = {
  dataDir: mkdtempSync(join(tmpdir(), 'quipu-tpch-')),
  shippedDir: etc,
  tablesDir: etc,
  duckdbType: duckdbTypeOf,
  catalogDir: join(etc, 'catalog'),
  inspect: inspectedBy(await openDuckDb()),
}
const connector = tpchConnector.create('tpch', { connector: 'tpch' }, context)

connectorContract('tpch', async () => ({
  connector,
  schema: 'tiny',
  table: 'orders',
  knowsColumns: true,
  truth: `SELECT o_orderkey orderkey, o_custkey custkey, o_orderstatus orderstatus, o_totalprice::DOUBLE totalprice,
    o_orderdate orderdate, o_orderpriority orderpriority, o_clerk clerk, o_shippriority shippriority, o_comment "comment"
    FROM read_parquet('${etc}/tpch/tiny/orders.parquet')`,
}))

describe('The tpch connector', async () => {
  const duckdb = await openDuckDb()

  it.each([
    ['customer', 1500],
    ['lineitem', 60175],
    ['nation', 25],
    ['orders', 15000],
    ['part', 2000],
    ['partsupp', 8000],
    ['region', 5],
    ['supplier', 100],
  ])('has as many rows as Trino in the table %s', async (table, rows) => {
    const { handle, columns } = (await connector.getTable('tiny', table))!
    expect((await connector.getStatistics(handle)).rows).toBe(rows)
    const names = columns.map(({ name }) => name)
    const sql = scanText(await connector.tableSource(await connector.listSplits(handle), names))
    expect(await duckdb.query(`SELECT count(*)::INT AS n FROM (${sql})`)).toEqual([{ n: rows }])
    // Each column has its declared type, and no text is longer than its varchar allows.
    const described = await duckdb.query(`FROM (DESCRIBE ${sql})`)
    for (const [index, { name, type }] of columns.entries()) {
      const limit = /^varchar\((\d+)\)$/.exec(type)?.[1]
      expect(described[index]!.column_type).toBe(limit ? 'VARCHAR' : type.toUpperCase())
      if (!limit) continue
      const [longest] = await duckdb.query(`SELECT max(length("${name}"))::INT AS n FROM (${sql})`)
      expect(longest!.n).toBeLessThanOrEqual(Number(limit))
    }
  })

  it('refuses unknown properties', () => {
    expect(() => tpchConnector.create('tpch', { connector: 'tpch', scale: 1 }, context)).toThrow(/scale/)
  })

  it('refuses a split whose file was changed', async () => {
    const { handle } = (await connector.getTable('tiny', 'region'))!
    const [split] = await connector.listSplits(handle)
    const changed = connector.verifySplits([{ ...split!, data: { ...split!.data, size: 1 } }])
    await expect(changed).rejects.toMatchObject({ errorName: 'GENERIC_INTERNAL_ERROR' })
  })
})
