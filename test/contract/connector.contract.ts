import { beforeAll, describe, expect, it } from 'vitest'
import type { Connector, ConnectorSplit, ConnectorTable } from '../../src/connectors/spi/connector.ts'
import { quoteName } from '../../src/connectors/spi/duckdb-text.ts'
import { openDuckDb, type Rows } from '../support/duckdb.ts'
import { scanText } from '../../src/execution/engine/scan-text.ts'
import { askerNamed } from '../support/asker.ts'

export interface ConnectorFixture {
  readonly connector: Connector
  /** A table with some rows. `truth` is a SELECT of the same rows and column names, independent of the connector. */
  readonly schema: string
  readonly table: string
  readonly truth: string
  /** The file footers have statistics of its columns. */
  readonly knowsColumns?: true
}

/** Declares the tests that every connector must pass. */
export function connectorContract(name: string, open: () => Promise<ConnectorFixture>): void {
  describe(`The connector ${name}`, async () => {
    const duckdb = await openDuckDb()
    let fixture: ConnectorFixture
    let table: ConnectorTable
    beforeAll(async () => {
      fixture = await open()
      table = (await fixture.connector.getTable(fixture.schema, fixture.table))!
    })

    const read = (select: string): Promise<Rows> => duckdb.query(select)
    const names = () => table.columns.map(({ name }) => name)
    /** The splits in the form that an engine gets. */
    const load = async (splits: readonly ConnectorSplit[], columns: readonly string[]) =>
      (await fixture.connector.loadSplits?.(splits, columns, askerNamed('ada'))) ?? splits

    it('lists the schema and the table with names in lower case', async () => {
      expect(await fixture.connector.listSchemas()).toContain(fixture.schema)
      const tables = await fixture.connector.listTables(fixture.schema)
      expect(tables).toContainEqual({ schema: fixture.schema, table: fixture.table, kind: 'TABLE' })
      expect(await fixture.connector.listTables()).toEqual(expect.arrayContaining([...tables]))
      for (const column of names()) expect(column).toBe(column.toLowerCase())
    })

    it('describes the tables of a schema together as it describes each table', async () => {
      const { connector, schema } = fixture
      if (connector.describeTables === undefined) return
      const taken: ConnectorTable[] = []
      const describe = (of: string, named: (name: string) => boolean): Promise<void> =>
        connector.describeTables!(of, named, (one) => taken.push(one))
      await describe(schema, () => true)
      const listed = await connector.listTables(schema)
      expect(taken).toEqual(await Promise.all(listed.map((one) => connector.getTable(schema, one.table))))
      taken.length = 0
      await describe(schema, (name) => name === fixture.table)
      expect(taken).toEqual([table])
      taken.length = 0
      await describe(schema, () => false)
      await describe('no_such_schema', () => true)
      expect(taken).toEqual([])
    })

    it('returns no tables for unknown names', async () => {
      expect(await fixture.connector.listTables('no_such_schema')).toEqual([])
      expect(await fixture.connector.getTable(fixture.schema, 'no_such_table')).toBeUndefined()
      expect(await fixture.connector.getTable('no_such_schema', fixture.table)).toBeUndefined()
      for (const odd of ['..', '.', '', 'a/b', '../..', "o'brien", 'constructor', '__proto__']) {
        expect(await fixture.connector.getTable(fixture.schema, odd)).toBeUndefined()
        expect(await fixture.connector.getTable(odd, fixture.table)).toBeUndefined()
        expect(await fixture.connector.listTables(odd)).toEqual([])
      }
    })

    it('has a handle and splits that survive JSON', async () => {
      const splits = await fixture.connector.listSplits(table.handle)
      expect(JSON.parse(JSON.stringify(table.handle))).toEqual(table.handle)
      expect(JSON.parse(JSON.stringify(splits))).toEqual(splits)
      for (const split of splits) expect(split.catalog).toBe(fixture.connector.catalog)
    })

    it('reads every row exactly once over all splits together', async () => {
      const splits = await load(await fixture.connector.listSplits(table.handle), names())
      const expression = scanText(await fixture.connector.tableSource(splits, names()))
      const columns = names().map(quoteName).join(', ')
      const missing = `(SELECT ${columns} FROM (${fixture.truth}) EXCEPT ALL (${expression}))`
      const extra = `((${expression}) EXCEPT ALL SELECT ${columns} FROM (${fixture.truth}))`
      expect(await read(`SELECT (SELECT count(*) FROM ${missing}) m, (SELECT count(*) FROM ${extra}) e`)).toEqual([
        { m: 0, e: 0 },
      ])
      expect(await read(`SELECT count(*) > 0 AS some FROM (${expression})`)).toEqual([{ some: true }])
    })

    it('reads every row exactly once from its splits one by one, with the row counts of the splits', async () => {
      const splits = await fixture.connector.listSplits(table.handle)
      let rows = 0
      for (const split of splits) {
        const expression = scanText(await fixture.connector.tableSource(await load([split], []), []))
        const [counted] = await read(`SELECT count(*)::INT AS n FROM (${expression})`)
        if (split.rows !== undefined) expect(counted!.n).toBe(split.rows)
        rows += counted!.n as number
      }
      expect([{ n: rows }]).toEqual(await read(`SELECT count(*)::INT AS n FROM (${fixture.truth})`))
    })

    it('returns the requested columns in their order', async () => {
      const asked = [...names()].reverse().slice(0, 2)
      const all = await load(await fixture.connector.listSplits(table.handle), asked)
      const reported = await load(await fixture.connector.listSplits(table.handle, undefined, undefined, asked), asked)
      const [whole, part] = await Promise.all(
        [all, reported].map(async (splits) => scanText(await fixture.connector.tableSource(splits, asked))),
      )
      const described = await read(`FROM (DESCRIBE ${part})`)
      expect(described.map((column) => column.column_name)).toEqual(asked)
      // Splits that are listed for these columns only give the same source as splits of all columns.
      expect(part).toBe(whole)
    })

    it('reports column sizes that add up to the size of the split', async () => {
      for (const split of await fixture.connector.listSplits(table.handle)) {
        if (!split.columnBytes) continue
        expect(Object.keys(split.columnBytes).sort()).toEqual(expect.arrayContaining(names().sort()))
        const sum = Object.values(split.columnBytes).reduce((total, bytes) => total + bytes, 0)
        expect(split.bytes).toBe(sum)
      }
    })

    it('reports correct column statistics', async () => {
      const { connector, truth } = fixture
      const known = (await connector.getColumnStatistics?.(table.handle)) ?? {}
      const { rows } = await connector.getStatistics(table.handle)
      for (const [name, { nulls, low, high, distinct }] of Object.entries(known)) {
        const { type } = table.columns.find((column) => column.name === name)!
        const x = quoteName(name)
        if (nulls !== undefined) {
          const [counted] = await read(
            `SELECT count(*)::INT AS n, count(*)::INT - count(${x})::INT AS nulls FROM (${truth})`,
          )
          expect([name, rows, nulls]).toEqual([name, counted!.n, counted!.nulls])
        }
        if (distinct !== undefined) {
          const [counted] = await read(`SELECT count(DISTINCT ${x})::INT AS n FROM (${truth})`)
          expect([name, distinct]).toEqual([name, counted!.n])
        }
        if (low === undefined || high === undefined) continue
        const value = type === 'date' ? `${x} - DATE '1970-01-01'` : x
        const [bounds] = await read(
          `SELECT CAST(min(${value}) AS DOUBLE) AS low, CAST(max(${value}) AS DOUBLE) AS high FROM (${truth})`,
        )
        expect([name, low, high]).toEqual([name, bounds!.low, bounds!.high])
      }
      expect(Object.keys(known).length > 0).toBe(fixture.knowsColumns === true)
    })

    it('returns absolute folders for the engine', () => {
      for (const folder of fixture.connector.allowedDirectories()) expect(folder).toMatch(/^\/.*\/$/)
    })

    it('accepts unchanged splits in `verifySplits`', async () => {
      await fixture.connector.verifySplits(await fixture.connector.listSplits(table.handle))
    })
  })
}
