import { beforeAll, describe, expect, it } from 'vitest'
import type { Connector } from '../../src/connectors/spi/connector.ts'
import {
  changedRows,
  conflicts,
  preparedWriteSchema,
  type PreparedWrite,
  type TableChange,
  type ViewDefinition,
} from '../../src/connectors/spi/table-writer.ts'
import { openDuckDb } from '../support/duckdb.ts'
import { column, tableWrites, type TableWrites } from '../support/table-writes.ts'

type Alteration = Extract<TableChange, { kind: 'alterColumns' }>['alteration']

/** Declares the tests that every connector must pass that changes names, columns, comments and rows of tables. */
export function tableChangesContract(name: string, open: () => Promise<Connector>): void {
  describe(`Changes of tables of ${name}`, async () => {
    const duckdb = await openDuckDb()
    let connector: Connector
    let writes: TableWrites
    const schema = 'changes'
    beforeAll(async () => {
      connector = await open()
      writes = tableWrites(connector, duckdb)
      await writes.write({ kind: 'createSchema', schema })
    })
    const view: ViewDefinition = { sql: 'SELECT a FROM t', columns: [column('a', 'bigint')], runAsInvoker: true }
    const create = (table: string, rows?: string, inSchema = schema): Promise<void> => {
      const columns = [column('a', 'integer'), column('b', 'varchar')]
      return writes.write({ kind: 'createTable', schema: inSchema, table, columns, replace: false }, rows)
    }
    const alter = (table: string, alteration: Alteration): Promise<void> =>
      writes.write({ kind: 'alterColumns', schema, table, alteration })
    const rename = (table: string, to: string, toSchema = schema) =>
      ({ kind: 'renameTable', schema, table, to: { schema: toSchema, table: to } }) as const
    const names = async (of = schema): Promise<string[]> =>
      (await connector.listTables(of)).map(({ table }) => table).sort()
    const columnsOf = async (table: string): Promise<string[]> =>
      (await writes.table(schema, table))!.columns.map(({ name: own, type }) => `${own} ${type}`)

    /** Changes rows. `rows` makes the rows of the change file from the name of the scan with row ids. */
    const change = async (
      table: string,
      operation: 'DELETE' | 'UPDATE' | 'MERGE',
      rows: (scan: string) => string,
    ): Promise<PreparedWrite> => {
      const found = (await writes.table(schema, table))!
      const scan = await writes.scanWithIds(found)
      return writes.prepare({ kind: 'changeRows', schema, table, operation, version: found.version }, rows(scan))
    }
    const changeNow = async (...parameters: Parameters<typeof change>): Promise<number> => {
      const prepared = await change(...parameters)
      await writes.writer.commit(prepared)
      return changedRows(prepared.files)
    }
    const remove = (where: string) => (scan: string) =>
      `SELECT "$file", "$row", false, NULL, NULL, NULL FROM ${scan} WHERE ${where}`
    const update = (set: string, where: string) => (scan: string) =>
      `SELECT "$file", "$row", true, NULL, a, ${set} FROM ${scan} WHERE ${where}`

    it('announces its abilities', () => {
      expect(connector.abilities).toMatchObject({ rowChanges: true, alterTable: true, comments: true })
    })

    it('renames a table: open queries continue, later changes use the new name', async () => {
      await create('before', `SELECT 1, 'x'`)
      const old = (await writes.table(schema, 'before'))!
      await writes.write(rename('before', 'after'))
      expect(await writes.table(schema, 'before')).toBeUndefined()
      expect(await names()).toEqual(['after'])
      expect(await writes.read(schema, old)).toEqual([{ a: 1, b: 'x' }])
      await writes.write({ kind: 'insert', schema, table: 'after' }, `SELECT 2, 'y'`)
      await create('before', `SELECT 9, 'new'`)
      expect(await writes.read(schema, 'after')).toEqual([
        { a: 1, b: 'x' },
        { a: 2, b: 'y' },
      ])
      expect(await writes.read(schema, 'before')).toEqual([{ a: 9, b: 'new' }])
      await changeNow('after', 'DELETE', remove('a = 1'))
      expect(await writes.read(schema, 'after')).toEqual([{ a: 2, b: 'y' }])
    })

    it('swaps two tables by three renames, again and again', async () => {
      await create('one', `SELECT 1, 'x'`)
      await create('two', `SELECT 2, 'y'`)
      for (let round = 0; round < 3; round++) {
        for (const [from, to] of [
          ['one', 'aside'],
          ['two', 'one'],
          ['aside', 'two'],
        ] as const)
          // prettier-ignore
          await writes.write(rename(from, to))
        const [one, two] = [await writes.read(schema, 'one'), await writes.read(schema, 'two')]
        expect([one[0]!['a'], two[0]!['a']]).toEqual(round % 2 === 0 ? [2, 1] : [1, 2])
      }
      expect(await names()).not.toContain('aside')
    })

    it('renames a table into another schema, and a view', async () => {
      await writes.write({ kind: 'createSchema', schema: 'elsewhere' })
      await create('wanderer', `SELECT 1, 'x'`)
      await writes.write(rename('wanderer', 'settler', 'elsewhere'))
      expect(await writes.read('elsewhere', 'settler')).toEqual([{ a: 1, b: 'x' }])
      await writes.write({ kind: 'createView', schema, table: 'seen', definition: view, replace: false })
      await writes.write({ kind: 'renameView', schema, table: 'seen', to: { schema, table: 'shown' } })
      expect(await writes.table(schema, 'seen')).toBeUndefined()
      expect(await writes.table(schema, 'shown')).toMatchObject({ kind: 'VIEW', view: { sql: view.sql } })
    })

    it('refuses new names that are taken, and objects that do not exist or are of the other kind', async () => {
      await create('source')
      await create('target')
      const refused = (made: TableChange) => writes.prepare(made)
      await expect(refused(rename('source', 'target'))).rejects.toMatchObject({ errorName: 'TABLE_ALREADY_EXISTS' })
      await expect(refused(rename('source', 'source'))).rejects.toMatchObject({ errorName: 'TABLE_ALREADY_EXISTS' })
      await expect(refused(rename('nothing', 'x'))).rejects.toMatchObject({ errorName: 'TABLE_NOT_FOUND' })
      await expect(refused(rename('source', 'x', 'nowhere'))).rejects.toMatchObject({ errorName: 'SCHEMA_NOT_FOUND' })
      await expect(refused({ ...rename('source', 'x'), kind: 'renameView' })).rejects.toMatchObject({
        errorName: 'TABLE_NOT_FOUND',
      })
    })

    it('renames a schema with its tables and views, which can be dropped and created under the old name', async () => {
      await writes.write({ kind: 'createSchema', schema: 'old' })
      await create('t', `SELECT 1, 'x'`, 'old')
      await writes.write({ kind: 'createView', schema: 'old', table: 'v', definition: view, replace: false })
      const prepared = await writes.prepare({ kind: 'renameSchema', schema: 'old', to: 'new' })
      await writes.writer.commit(prepared)
      await writes.writer.commit(prepared)
      const schemas = await connector.listSchemas()
      expect(schemas).toContain('new')
      expect(schemas).not.toContain('old')
      expect(await names('new')).toEqual(['t', 'v'])
      expect(await writes.table('old', 't')).toBeUndefined()
      await writes.write({ kind: 'createSchema', schema: 'old' })
      expect(await names('old')).toEqual([])
      await create('t', `SELECT 2, 'y'`, 'old')
      await writes.writer.commit(prepared)
      await writes.write({ kind: 'insert', schema: 'new', table: 't' }, `SELECT 3, 'z'`)
      expect(await writes.read('new', 't')).toEqual([
        { a: 1, b: 'x' },
        { a: 3, b: 'z' },
      ])
      expect(await writes.read('old', 't')).toEqual([{ a: 2, b: 'y' }])
      await expect(writes.prepare({ kind: 'renameSchema', schema: 'new', to: 'old' })).rejects.toMatchObject({
        errorName: 'SCHEMA_ALREADY_EXISTS',
      })
      await writes.write({ kind: 'renameSchema', schema: 'new', to: 'newer' })
      expect(await names('newer')).toEqual(['t', 'v'])
    })

    it('adds, drops and renames columns, and gives a column with an old name no old values', async () => {
      await create('altered', `SELECT 1, 'x'`)
      await alter('altered', { kind: 'add', column: column('c', 'double'), position: { first: true } })
      await alter('altered', { kind: 'drop', column: 'b' })
      await alter('altered', { kind: 'add', column: column('b', 'varchar'), position: { after: 'c' } })
      expect(await columnsOf('altered')).toEqual(['c double', 'b varchar', 'a integer'])
      await writes.write({ kind: 'insert', schema, table: 'altered' }, `SELECT 0.5, 'y', 2`)
      await alter('altered', { kind: 'rename', column: 'a', to: 'z' })
      await alter('altered', { kind: 'rename', column: 'b', to: 'a' })
      expect(await writes.read(schema, 'altered')).toEqual([
        { c: 0.5, a: 'y', z: 2 },
        { c: null, a: null, z: 1 },
      ])
      const { handle } = (await writes.table(schema, 'altered'))!
      expect(await connector.getColumnStatistics!(handle)).toMatchObject({ z: { low: 1, high: 2, nulls: 0 } })
    })

    it('widens types, and makes columns nullable', async () => {
      const columns = [{ ...column('a', 'integer'), nullable: false }, column('d', 'decimal(4, 2)')]
      await writes.write({ kind: 'createTable', schema, table: 'wide', columns, replace: false }, 'SELECT 7, 1.25')
      await alter('wide', { kind: 'setType', column: 'a', type: 'bigint' })
      await alter('wide', { kind: 'setType', column: 'd', type: 'decimal(20, 2)' })
      await alter('wide', { kind: 'dropNotNull', column: 'a' })
      await writes.write(
        { kind: 'insert', schema, table: 'wide' },
        'SELECT NULL, 123456789012.5 UNION ALL SELECT 3000000000, 2',
      )
      expect(await columnsOf('wide')).toEqual(['a bigint', 'd decimal(20, 2)'])
      expect((await writes.read(schema, 'wide')).map(({ a }) => a)).toEqual([7, 3000000000, null])
      const refused = (alteration: Alteration) =>
        writes.prepare({ kind: 'alterColumns', schema, table: 'wide', alteration })
      for (const [alteration, errorName] of [
        [{ kind: 'setType', column: 'a', type: 'integer' }, 'NOT_SUPPORTED'],
        [{ kind: 'dropNotNull', column: 'a' }, 'NOT_SUPPORTED'],
        [{ kind: 'drop', column: 'nope' }, 'COLUMN_NOT_FOUND'],
        [{ kind: 'rename', column: 'a', to: 'd' }, 'COLUMN_ALREADY_EXISTS'],
        [{ kind: 'add', column: column('a', 'bigint') }, 'COLUMN_ALREADY_EXISTS'],
      ] as const)
        await expect(refused(alteration), alteration.kind).rejects.toMatchObject({ errorName })
      await alter('wide', { kind: 'drop', column: 'd' })
      await expect(refused({ kind: 'drop', column: 'a' })).rejects.toMatchObject({ errorName: 'NOT_SUPPORTED' })
    })

    it('accepts an insert that was begun before a column was added, renamed or widened', async () => {
      await create('overtaken', `SELECT 1, 'x'`)
      const insert = { kind: 'insert', schema, table: 'overtaken' } as const
      const added = await writes.prepare(insert, `SELECT 2, 'y'`)
      await alter('overtaken', { kind: 'add', column: column('c', 'integer') })
      await writes.writer.commit(added)
      const renamed = await writes.prepare(insert, `SELECT 3, 'z', 30`)
      await alter('overtaken', { kind: 'rename', column: 'a', to: 'd' })
      await alter('overtaken', { kind: 'setType', column: 'd', type: 'bigint' })
      await alter('overtaken', { kind: 'rename', column: 'b', to: 'a' })
      await writes.writer.commit(renamed)
      expect(await writes.read(schema, 'overtaken')).toEqual([
        { d: 1, a: 'x', c: null },
        { d: 2, a: 'y', c: null },
        { d: 3, a: 'z', c: 30 },
      ])
    })

    it('refuses an insert that was begun before a NOT NULL column was added', async () => {
      const insert = { kind: 'insert', schema, table: 'narrowed' } as const
      await create('narrowed')
      const target = await writes.writer.begin(writes.nextQuery(), insert)
      const prepared = await writes.prepare(insert, `SELECT 1, 'x'`)
      await alter('narrowed', { kind: 'add', column: { ...column('c', 'integer'), nullable: false } })
      const conflict = { errorName: 'TRANSACTION_CONFLICT' }
      await expect(writes.writer.prepare(target, [])).rejects.toMatchObject({ ...conflict, retry: 'anew' })
      await expect(writes.writer.commit(prepared)).rejects.toMatchObject(conflict)
      expect(await writes.read(schema, 'narrowed')).toEqual([])
    })

    it('takes the rows of an insert that was begun before its columns were dropped, as if it had come before', async () => {
      const insert = { kind: 'insert', schema, table: 'dropped' } as const
      await create('dropped')
      await writes.write(insert, `SELECT 1, 'x'`)
      const prepared = await writes.prepare(insert, `SELECT 2, 'y'`)
      const late = await writes.prepare(insert, `SELECT 3, 'z'`)
      await alter('dropped', { kind: 'drop', column: 'b' })
      await writes.writer.commit(prepared)
      await writes.write(insert, 'SELECT 4')
      expect(await writes.read(schema, 'dropped')).toEqual([{ a: 1 }, { a: 2 }, { a: 4 }])
      await alter('dropped', { kind: 'add', column: column('b', 'varchar') })
      await alter('dropped', { kind: 'drop', column: 'a' })
      await writes.writer.commit(late)
      expect(await writes.read(schema, 'dropped')).toEqual(Array(4).fill({ b: null }))
      await writes.rewrite(schema, 'dropped')
      expect(await writes.read(schema, 'dropped')).toEqual(Array(4).fill({ b: null }))
    })

    it('adds a column that is not nullable only to a table without rows', async () => {
      const required: Alteration = { kind: 'add', column: { ...column('c', 'integer'), nullable: false } }
      const insert = { kind: 'insert', schema, table: 'filled' } as const
      const refused = {
        errorName: 'NOT_SUPPORTED',
        message: `Unable to add NOT NULL column 'c' for non-empty table: ${schema}.filled`,
      }
      await create('filled')
      const overtaken = await writes.prepare({ kind: 'alterColumns', schema, table: 'filled', alteration: required })
      await writes.write(insert, `SELECT 1, 'x' UNION ALL SELECT 2, 'y'`)
      await expect(alter('filled', required)).rejects.toMatchObject(refused)
      await expect(writes.writer.commit(overtaken)).rejects.toMatchObject(refused)
      await changeNow('filled', 'DELETE', remove('a = 1'))
      await expect(alter('filled', required)).rejects.toMatchObject(refused)
      await changeNow('filled', 'DELETE', remove('a = 2'))
      const late = await writes.prepare(insert, `SELECT 3, 'z'`)
      const nothing = await writes.prepare(insert)
      await alter('filled', required)
      await expect(writes.writer.commit(late)).rejects.toMatchObject({ errorName: 'TRANSACTION_CONFLICT' })
      await writes.writer.commit(nothing)
      await writes.write(insert, `SELECT 4, 'w', 40`)
      expect(await writes.read(schema, 'filled')).toEqual([{ a: 4, b: 'w', c: 40 }])
    })

    it('comments on tables, views and columns, and removes comments', async () => {
      await create('noted')
      await writes.write({ kind: 'createView', schema, table: 'sight', definition: view, replace: false })
      const comment = (table: string, object: 'table' | 'view', text?: string, of?: string): Promise<void> =>
        writes.write({ kind: 'comment', schema, table, object, ...(of !== undefined && { column: of }), ...(text !== undefined && { text }) }) // prettier-ignore
      for (const [table, object] of [
        ['noted', 'table'],
        ['sight', 'view'],
      ] as const) {
        // prettier-ignore
        await comment(table, object, 'whole')
        await comment(table, object, '', 'a')
        const found = (await writes.table(schema, table))!
        expect([found.comment, found.columns[0]!.comment]).toEqual(['whole', ''])
        await comment(table, object)
        await comment(table, object, undefined, 'a')
        const after = (await writes.table(schema, table))!
        expect([after.comment, after.columns[0]!.comment]).toEqual([undefined, undefined])
      }
      await expect(
        writes.prepare({ kind: 'comment', schema, table: 'noted', object: 'table', column: 'nope', text: 'x' }),
      ).rejects.toMatchObject({ errorName: 'COLUMN_NOT_FOUND' })
    })

    it('truncates a table, and open queries continue', async () => {
      await create('emptied', `SELECT 1, 'x'`)
      const before = (await writes.table(schema, 'emptied'))!
      await writes.write({ kind: 'truncateTable', schema, table: 'emptied' })
      expect(await writes.read(schema, 'emptied')).toEqual([])
      expect(await writes.read(schema, before)).toEqual([{ a: 1, b: 'x' }])
      await writes.write({ kind: 'insert', schema, table: 'emptied' }, `SELECT 2, 'y'`)
      expect(await writes.read(schema, 'emptied')).toEqual([{ a: 2, b: 'y' }])
    })

    it('deletes, updates and merges rows, also rows that were changed before', async () => {
      await create('rows', `SELECT i, 'v' || i FROM range(10) t(i)`)
      await writes.write({ kind: 'insert', schema, table: 'rows' }, `SELECT 10 + i, 'w' || i FROM range(3) t(i)`)
      const before = (await writes.table(schema, 'rows'))!
      expect(await changeNow('rows', 'DELETE', remove('a % 3 = 0'))).toBe(5)
      expect(await changeNow('rows', 'UPDATE', update(`b || '!'`, 'a >= 8'))).toBe(3)
      expect(await changeNow('rows', 'UPDATE', update(`b || '?'`, 'a >= 10'))).toBe(2)
      expect(await changeNow('rows', 'DELETE', remove('false'))).toBe(0)
      const merged = await changeNow(
        'rows',
        'MERGE',
        (scan) => `SELECT "$file", "$row", true, 1, a, 'merged' FROM ${scan} WHERE a = 1 UNION ALL
          SELECT "$file", "$row", false, 2, NULL, NULL FROM ${scan} WHERE a = 2 UNION ALL
          SELECT "$file", "$row", NULL, -1, NULL, NULL FROM ${scan} WHERE a = 4 UNION ALL
          SELECT NULL, NULL, true, NULL, 99, 'new'`,
      )
      expect(merged).toBe(3)
      const rows = await writes.read(schema, 'rows')
      expect(rows.map(({ a, b }) => `${a as number} ${b as string}`)).toEqual(['1 merged', '4 v4', '5 v5', '7 v7', '8 v8!', '10 w0!?', '11 w1!?', '99 new']) // prettier-ignore
      expect(await writes.read(schema, before)).toHaveLength(13)
      const { handle } = (await writes.table(schema, 'rows'))!
      expect(await connector.getStatistics(handle)).toMatchObject({ rows: 8 })
      const { a } = await connector.getColumnStatistics!(handle)
      expect(a!.nulls).toBeUndefined()
      expect(a!.low!).toBeLessThanOrEqual(1)
      expect(a!.high!).toBeGreaterThanOrEqual(99)
      await writes.rewrite(schema, 'rows')
      expect(await writes.read(schema, 'rows')).toEqual(rows)
      const after = (await writes.table(schema, 'rows'))!
      expect(await connector.listSplits(after.handle)).toHaveLength(1)
      expect(await connector.getColumnStatistics!(after.handle)).toMatchObject({ a: { nulls: 0, low: 1, high: 99 } })
    })

    it('refuses a merge in which two rows of one case change one row', async () => {
      await create('once', `SELECT 1, 'x'`)
      const twice = (first: number, second: number) => (scan: string) =>
        `SELECT "$file", "$row", true, ${first}, a, 'p' FROM ${scan} UNION ALL SELECT "$file", "$row", NULL, ${second}, NULL, NULL FROM ${scan}`
      await expect(change('once', 'MERGE', twice(1, 1))).rejects.toMatchObject({
        errorName: 'MERGE_TARGET_ROW_MULTIPLE_MATCHES',
      })
      expect(await changeNow('once', 'MERGE', twice(1, -1))).toBe(1)
      expect(await writes.read(schema, 'once')).toEqual([{ a: 1, b: 'p' }])
    })

    it('counts a row once that two cases of a merge remove', async () => {
      await create('both', `SELECT i, 'x' FROM range(2) t(i)`)
      const rows = (scan: string): string =>
        `SELECT "$file", "$row", true, v.c, a, 'p' FROM ${scan} JOIN (VALUES (1), (2)) v(c) ON true WHERE a = 0`
      expect(await changeNow('both', 'MERGE', rows)).toBe(2)
      expect(await writes.read(schema, 'both')).toEqual([{ a: 0, b: 'p' }, { a: 0, b: 'p' }, { a: 1, b: 'x' }]) // prettier-ignore
      const { handle } = (await writes.table(schema, 'both'))!
      expect(await connector.getStatistics(handle)).toMatchObject({ rows: 3 })
    })

    it('refuses a change of rows when rows were removed after its base version, but not after inserts', async () => {
      await create('raced', `SELECT i, 'x' FROM range(4) t(i)`)
      const first = await change('raced', 'DELETE', remove('a = 0'))
      const target = await writes.writer.begin(writes.nextQuery(), { kind: 'changeRows', schema, table: 'raced', operation: 'DELETE' }) // prettier-ignore
      await writes.write({ kind: 'insert', schema, table: 'raced' }, `SELECT 4, 'y'`)
      await writes.writer.commit(first)
      expect((await writes.read(schema, 'raced')).map(({ a }) => a)).toEqual([1, 2, 3, 4])
      await expect(writes.writer.prepare(target, [])).rejects.toMatchObject({
        errorName: 'TRANSACTION_CONFLICT',
        retry: 'anew',
      })
      const second = await change('raced', 'DELETE', remove('a = 1'))
      await alter('raced', { kind: 'rename', column: 'b', to: 'c' })
      await expect(writes.writer.commit(second)).rejects.toMatchObject({ errorName: 'TRANSACTION_CONFLICT' })
    })

    it('refuses a change of rows that read a version from before the table got the name', async () => {
      await create('left', `SELECT i, 'l' FROM range(4) t(i)`)
      await create('right', `SELECT i, 'r' FROM range(4) t(i)`)
      const { version } = (await writes.table(schema, 'left'))!
      for (const [from, to] of [
        ['left', 'aside'],
        ['right', 'left'],
        ['aside', 'right'],
      ] as const)
        // prettier-ignore
        await writes.write(rename(from, to))
      const begin = writes.writer.begin(writes.nextQuery(), { kind: 'changeRows', schema, table: 'left', operation: 'DELETE', version }) // prettier-ignore
      await expect(begin).rejects.toMatchObject({ errorName: 'TRANSACTION_CONFLICT', retry: 'anew' })
    })

    it('keeps rows that are inserted while the table is rewritten', async () => {
      await create('busy', `SELECT i, 'x' FROM range(4) t(i)`)
      await changeNow('busy', 'DELETE', remove('a < 2'))
      const found = (await writes.table(schema, 'busy'))!
      const rewrite = await writes.prepare(
        { kind: 'rewriteTable', schema, table: 'busy', version: found.version },
        `SELECT 2, 'x' UNION ALL SELECT 3, 'x'`,
      )
      await writes.write({ kind: 'insert', schema, table: 'busy' }, `SELECT 4, 'y'`)
      await writes.writer.commit(rewrite)
      expect((await writes.read(schema, 'busy')).map(({ a }) => a)).toEqual([2, 3, 4])
    })

    it('commits each change once, also after its way through an event', async () => {
      await create('repeated', `SELECT i, 'x' FROM range(4) t(i)`)
      const deleted = await change('repeated', 'DELETE', remove('a = 0'))
      await writes.writer.commit(deleted)
      const renamed = await writes.prepare(rename('repeated', 'moved'))
      expect(await writes.writer.find(renamed)).toBeUndefined()
      await Promise.all([1, 2].map(() => writes.writer.commit(preparedWriteSchema.parse(JSON.parse(JSON.stringify(renamed)))))) // prettier-ignore
      expect(await writes.writer.find(renamed)).toMatchObject({ changed: false })
      await create('repeated', `SELECT 7, 'new'`)
      await writes.writer.commit(renamed)
      expect((await writes.read(schema, 'moved')).map(({ a }) => a)).toEqual([1, 2, 3])
      expect(await writes.read(schema, 'repeated')).toEqual([{ a: 7, b: 'new' }])
    })

    it('has columns with the names that row ids have in the engine', async () => {
      const columns = ['file_row_number', 'file_index', '$live', 'filename'].map((own) => column(own, 'integer'))
      await writes.write({ kind: 'createTable', schema, table: 'odd', columns, replace: false }, 'SELECT 1, 2, 3, 4')
      await changeNow('odd', 'UPDATE', (scan) => `SELECT "$file", "$row", true, NULL, 5, 6, 7, 8 FROM ${scan}`)
      expect(await writes.read(schema, 'odd')).toEqual([{ file_row_number: 5, file_index: 6, $live: 7, filename: 8 }])
    })

    it('reports that two changes of one name conflict, except an insert and a change of rows', () => {
      const insert = { kind: 'insert', schema, table: 't' } as const
      const rows = { kind: 'changeRows', schema, table: 't', operation: 'UPDATE' } as const
      const moved = rename('s', 't')
      expect(conflicts(insert, rows)).toBe(false)
      expect(conflicts({ kind: 'rewriteTable', schema, table: 't' }, insert)).toBe(false)
      expect(conflicts(rows, rows)).toBe(true)
      expect(conflicts(rows, moved)).toBe(true)
      expect(conflicts(moved, insert)).toBe(true)
      expect(conflicts({ ...insert, table: 'u' }, moved)).toBe(false)
      expect(conflicts({ kind: 'renameSchema', schema: 'x', to: schema }, insert)).toBe(true)
      expect(conflicts({ kind: 'truncateTable', schema, table: 't' }, insert)).toBe(true)
    })
  })
}
