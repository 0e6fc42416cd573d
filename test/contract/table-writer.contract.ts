import { beforeAll, describe, expect, it } from 'vitest'
import type { Connector } from '../../src/connectors/spi/connector.ts'
import { conflicts, preparedWriteSchema, writeTargetSchema } from '../../src/connectors/spi/table-writer.ts'
import type { TableChange, ViewDefinition } from '../../src/connectors/spi/table-writer.ts'
import { openDuckDb } from '../support/duckdb.ts'
import { column, tableWrites, type TableWrites } from '../support/table-writes.ts'

const view: ViewDefinition = {
  sql: 'SELECT a\nFROM numbers -- all',
  catalog: 'lake',
  schema: 'contract',
  columns: [{ ...column('a', 'bigint'), comment: 'the first' }],
  owner: 'ana',
  runAsInvoker: false,
  comment: 'numbers again',
}

/** Declares the tests that every connector with writes must pass. */
export function tableWriterContract(name: string, open: () => Promise<Connector>): void {
  describe(`The table writer of ${name}`, async () => {
    const duckdb = await openDuckDb()
    let connector: Connector
    let writes: TableWrites
    const schema = 'contract'
    beforeAll(async () => {
      connector = await open()
      writes = tableWrites(connector, duckdb)
      await writes.write({ kind: 'createSchema', schema })
    })
    const create = (table: string, type = 'bigint'): Extract<TableChange, { kind: 'createTable' }> => ({
      kind: 'createTable',
      schema,
      table,
      columns: [column('a', type)],
      replace: false,
    })
    const insert = (table: string) => ({ kind: 'insert', schema, table }) as const
    const drop = (table: string) => ({ kind: 'dropTable', schema, table }) as const

    it('reports its abilities for schemas, tables, inserts and views', () => {
      expect(connector.abilities).toMatchObject({ createSchema: true, createTable: true, insert: true, views: true })
    })

    it('creates a schema once, and drops it when it is empty', async () => {
      await writes.write({ kind: 'createSchema', schema: 'passing' })
      expect(await connector.listSchemas()).toContain('passing')
      await expect(writes.prepare({ kind: 'createSchema', schema: 'passing' })).rejects.toMatchObject({
        errorName: 'SCHEMA_ALREADY_EXISTS',
      })
      await writes.write({ kind: 'dropSchema', schema: 'passing', cascade: false })
      expect(await connector.listSchemas()).not.toContain('passing')
      await expect(writes.prepare({ kind: 'dropSchema', schema: 'passing', cascade: false })).rejects.toMatchObject({
        errorName: 'SCHEMA_NOT_FOUND',
      })
      await writes.write({ kind: 'createSchema', schema: 'passing' })
      expect(await connector.listSchemas()).toContain('passing')
    })

    it('drops a schema with its tables and views only with CASCADE', async () => {
      await writes.write({ kind: 'createSchema', schema: 'full' })
      await writes.write({ ...create('t'), schema: 'full' }, 'SELECT 1')
      await writes.write({ kind: 'createView', schema: 'full', table: 'v', definition: view, replace: false })
      await expect(writes.prepare({ kind: 'dropSchema', schema: 'full', cascade: false })).rejects.toMatchObject({
        errorName: 'SCHEMA_NOT_EMPTY',
      })
      const prepared = await writes.prepare({ kind: 'dropSchema', schema: 'full', cascade: true })
      await writes.writer.commit(prepared)
      await writes.writer.commit(prepared)
      expect(await connector.listSchemas()).not.toContain('full')
      await writes.write({ kind: 'createSchema', schema: 'full' })
      expect(await connector.listTables('full')).toEqual([])
    })

    it('creates an empty table that readers can read', async () => {
      await writes.write(create('empty', 'row(x varchar(5), y array(decimal(20, 3)))'))
      expect(await writes.table(schema, 'empty')).toMatchObject({
        kind: 'TABLE',
        columns: [{ name: 'a', type: 'row(x varchar(5), y array(decimal(20, 3)))', nullable: true }],
      })
      expect(await writes.read(schema, 'empty')).toEqual([])
      const { handle } = (await writes.table(schema, 'empty'))!
      expect(await connector.getStatistics(handle)).toEqual({ rows: 0, bytes: 0 })
    })

    it('creates a table with rows, and inserts more rows', async () => {
      await writes.write(create('numbers'), 'SELECT i FROM range(3) t(i)')
      await writes.write(insert('numbers'), 'SELECT i + 10 FROM range(2) t(i)')
      expect(await writes.read(schema, 'numbers')).toEqual([0, 1, 2, 10, 11].map((a) => ({ a })))
      expect(await connector.listTables(schema)).toContainEqual({ schema, table: 'numbers', kind: 'TABLE' })
      const { handle } = (await writes.table(schema, 'numbers'))!
      expect(await connector.getStatistics(handle)).toMatchObject({ rows: 5 })
      expect(await connector.getColumnStatistics!(handle)).toMatchObject({ a: { nulls: 0, low: 0, high: 11 } })
    })

    it('accepts an insert of no rows', async () => {
      await writes.write(create('none'), 'SELECT 1')
      await writes.write(insert('none'), 'SELECT 1 WHERE false')
      expect(await writes.read(schema, 'none')).toEqual([{ a: 1 }])
    })

    it('commits a prepared write once, even with concurrent commits and after later writes', async () => {
      await writes.write(create('once'))
      const prepared = await writes.prepare(insert('once'), 'SELECT 7')
      expect(await writes.writer.find(prepared)).toBeUndefined()
      const [first] = await Promise.all([1, 2, 3].map(() => writes.writer.commit(prepared)))
      await writes.write(insert('once'), 'SELECT 8')
      expect(await writes.writer.commit(prepared)).toEqual({ version: first!.version, changed: false })
      expect(await writes.writer.find(prepared)).toEqual({ version: first!.version, changed: false })
      expect(await writes.read(schema, 'once')).toEqual([{ a: 7 }, { a: 8 }])
      // The prepared write is the same after its way through an event.
      expect(await writes.writer.commit(preparedWriteSchema.parse(JSON.parse(JSON.stringify(prepared))))).toMatchObject(
        {
          changed: false,
        },
      )
    })

    it('shows nothing of a write before it is committed', async () => {
      const prepared = await writes.prepare(create('later'), 'SELECT 1')
      expect(await writes.table(schema, 'later')).toBeUndefined()
      expect((await connector.listTables(schema)).map(({ table }) => table)).not.toContain('later')
      await writes.writer.commit(prepared)
      expect(await writes.read(schema, 'later')).toEqual([{ a: 1 }])
    })

    it('reads the version of the looked-up table after later inserts, drops and creates', async () => {
      await writes.write(create('versions'), 'SELECT 1')
      const before = (await writes.table(schema, 'versions'))!
      await writes.write(insert('versions'), 'SELECT 2')
      const between = (await writes.table(schema, 'versions'))!
      expect(between.version).toBeGreaterThan(before.version!)
      await writes.write(drop('versions'))
      expect(await writes.table(schema, 'versions')).toBeUndefined()
      expect(await writes.read(schema, before)).toEqual([{ a: 1 }])
      await writes.write(create('versions', 'varchar'), `SELECT 'new'`)
      expect(await writes.read(schema, between)).toEqual([{ a: 1 }, { a: 2 }])
      expect(await writes.read(schema, 'versions')).toEqual([{ a: 'new' }])
    })

    it('replaces a table in one step', async () => {
      await writes.write(create('replaced'), 'SELECT 1')
      const before = (await writes.table(schema, 'replaced'))!
      await writes.write({ ...create('replaced', 'varchar(3)'), replace: true }, `SELECT 'abc'`)
      expect(await writes.read(schema, 'replaced')).toEqual([{ a: 'abc' }])
      expect(await writes.read(schema, before)).toEqual([{ a: 1 }])
    })

    it('drops a table once: the same drop does not affect a table that was created later', async () => {
      await writes.write(create('again'), 'SELECT 1')
      const dropped = await writes.prepare(drop('again'))
      await writes.writer.commit(dropped)
      await writes.write(create('again'), 'SELECT 2')
      await writes.writer.commit(dropped)
      expect(await writes.read(schema, 'again')).toEqual([{ a: 2 }])
    })

    it('refuses names that are taken or do not exist', async () => {
      await writes.write(create('taken'))
      await expect(writes.prepare(create('taken'))).rejects.toMatchObject({ errorName: 'TABLE_ALREADY_EXISTS' })
      await expect(writes.prepare(insert('missing'))).rejects.toMatchObject({ errorName: 'TABLE_NOT_FOUND' })
      await expect(writes.prepare(drop('missing'))).rejects.toMatchObject({ errorName: 'TABLE_NOT_FOUND' })
      await expect(writes.prepare({ ...create('t'), schema: 'missing' })).rejects.toMatchObject({
        errorName: 'SCHEMA_NOT_FOUND',
      })
      const createView = { kind: 'createView', schema, table: 'taken', definition: view, replace: true } as const
      await expect(writes.prepare(createView)).rejects.toMatchObject({ errorName: 'TABLE_ALREADY_EXISTS' })
      await expect(writes.prepare({ kind: 'dropView', schema, table: 'taken' })).rejects.toMatchObject({
        errorName: 'TABLE_NOT_FOUND',
      })
    })

    it('fails with TRANSACTION_CONFLICT when another write made a prepared change impossible', async () => {
      const first = await writes.prepare(create('raced'), 'SELECT 1')
      const second = await writes.prepare(create('raced'), 'SELECT 2')
      await writes.writer.commit(first)
      await expect(writes.writer.commit(second)).rejects.toMatchObject({ errorName: 'TRANSACTION_CONFLICT' })
      const late = await writes.prepare(insert('raced'), 'SELECT 3')
      await writes.write(drop('raced'))
      await writes.write(create('raced'), 'SELECT 4')
      await expect(writes.writer.commit(late)).rejects.toMatchObject({ errorName: 'TRANSACTION_CONFLICT' })
      expect(await writes.read(schema, 'raced')).toEqual([{ a: 4 }])
    })

    it('refuses to prepare rows for a table that was replaced meanwhile', async () => {
      await writes.write(create('moved'))
      const target = await writes.writer.begin(writes.nextQuery(), insert('moved'))
      expect(writeTargetSchema.parse(JSON.parse(JSON.stringify(target)))).toEqual(target)
      await writes.write(drop('moved'))
      await writes.write(create('moved'))
      await expect(writes.writer.prepare(target, [])).rejects.toMatchObject({ errorName: 'TRANSACTION_CONFLICT' })
    })

    it('creates, replaces and drops views, and returns their definitions unchanged', async () => {
      const createView = { kind: 'createView', schema, table: 'seen', definition: view, replace: false } as const
      await writes.write(createView)
      expect(await connector.listTables(schema)).toContainEqual({ schema, table: 'seen', kind: 'VIEW' })
      expect(await writes.table(schema, 'seen')).toMatchObject({
        kind: 'VIEW',
        columns: view.columns,
        comment: 'numbers again',
        view: { sql: view.sql, catalog: 'lake', schema: 'contract', owner: 'ana', runAsInvoker: false },
      })
      await expect(writes.prepare(createView)).rejects.toMatchObject({ errorName: 'TABLE_ALREADY_EXISTS' })
      const { owner: _, ...anonymous } = view
      await writes.write({
        ...createView,
        replace: true,
        definition: { ...anonymous, sql: 'SELECT 2', runAsInvoker: true },
      })
      expect((await writes.table(schema, 'seen'))!.view).toEqual({
        sql: 'SELECT 2',
        catalog: 'lake',
        schema: 'contract',
        runAsInvoker: true,
      })
      await expect(writes.prepare(insert('seen'), 'SELECT 1')).rejects.toMatchObject({ errorName: 'TABLE_NOT_FOUND' })
      await writes.write({ kind: 'dropView', schema, table: 'seen' })
      expect(await writes.table(schema, 'seen')).toBeUndefined()
      await writes.write(create('seen'), 'SELECT 5')
      expect(await writes.read(schema, 'seen')).toEqual([{ a: 5 }])
    })

    it.each(['_hidden', '.dot', 'a/b', '..', 'with space', "o'brien", 'ünï', '100%', 'a%2fb'])(
      'accepts the name %s for a table and a column',
      async (odd) => {
        await writes.write(
          { kind: 'createTable', schema, table: odd, columns: [column(odd, 'integer')], replace: false },
          'SELECT 1',
        )
        expect(await connector.listTables(schema)).toContainEqual({ schema, table: odd, kind: 'TABLE' })
        expect(await writes.read(schema, odd)).toEqual([{ [odd]: 1 }])
        await writes.write(drop(odd))
        expect((await connector.listTables(schema)).map(({ table }) => table)).not.toContain(odd)
      },
    )

    it('removes the files of a dropped attempt', async () => {
      await writes.write(create('canceled'))
      const target = await writes.writer.begin(writes.nextQuery(), insert('canceled'))
      const folder = await writes.writer.openAttempt(target, 'x.1.0-1')
      await duckdb.run(`COPY (SELECT 1 AS a) TO '${folder.replaceAll("'", "''")}/f.parquet' (FORMAT parquet)`)
      await writes.writer.dropAttempt(target, 'x.1.0-1')
      await writes.writer.dropAttempt(target, 'x.1.0-1')
      expect(await writes.read(schema, 'canceled')).toEqual([])
      expect(await writes.writer.openAttempt(target, 'x.1.0-2')).not.toBe(folder)
    })

    it('reports that two changes of one object conflict, except two inserts into one table', () => {
      expect(conflicts(insert('t'), insert('t'))).toBe(false)
      expect(conflicts(insert('t'), drop('t'))).toBe(true)
      expect(conflicts(create('t'), create('t'))).toBe(true)
      expect(conflicts(create('t'), create('u'))).toBe(false)
      expect(conflicts({ kind: 'dropSchema', schema, cascade: true }, insert('t'))).toBe(true)
      expect(conflicts({ kind: 'createSchema', schema: 'other' }, insert('t'))).toBe(false)
    })
  })
}
