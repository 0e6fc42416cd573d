import { cpSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { manifestAt } from '../../../src/connectors/lake/kept-manifests.ts'
import { manifestOfText } from '../../../src/connectors/lake/manifest-of-text.ts'
import { lakeConnector, memoryConnector } from '../../../src/connectors/lake/lake-connector.ts'
import type { Connector } from '../../../src/connectors/spi/connector.ts'
import type { TableChange } from '../../../src/connectors/spi/table-writer.ts'
import { tableChangesContract } from '../../contract/table-changes.contract.ts'
import { connectorContext } from '../../support/connector-context.ts'
import { openDuckDb } from '../../support/duckdb.ts'
import { inspectedBy } from '../../support/inspected-files.ts'
import { commitUntil } from '../../support/mortal-writer.ts'
import { column, filesBelow, tableWrites } from '../../support/table-writes.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), "quipu changes' ü-")))
afterAll(() => rmSync(root, { recursive: true }))
const duckdb = await openDuckDb()
const inspect = inspectedBy(duckdb)
const context = { ...connectorContext(root, inspect), tablesDir: join(root, 'tables') }
const emptyLake = (location = mkdtempSync(join(root, 'lake-'))): Connector =>
  lakeConnector.create('lake', { connector: 'lake', location }, context)

tableChangesContract('lake', async () => emptyLake())
tableChangesContract('memory', async () => memoryConnector.create('memory', { connector: 'memory' }, context))

const FIRST_FORMAT = fileURLToPath(new URL('../../fixtures/lake-format-1', import.meta.url))

describe('A lake with manifests of format 1', () => {
  const location = mkdtempSync(join(root, 'first-'))
  cpSync(FIRST_FORMAT, location, { recursive: true })
  // The time that the manifest recorded.
  utimesSync(join(location, 'shop/plain/1.csv'), 1767225600, 1767225600)
  const connector = emptyLake(location)
  const writes = tableWrites(connector, duckdb)
  const items = [
    { id: 1, name: 'pen', price: 1.5 },
    { id: 2, name: 'cup', price: 4 },
    { id: 3, name: 'hat', price: null },
  ]
  const plain = [1, 2, 3].map((n) => ({ n, d: `2020-01-0${n}` }))

  it('is read whole', async () => {
    expect(await connector.listSchemas()).toEqual(['shop', 'shop2'])
    const tables = (await connector.listTables('shop')).map(({ table, kind }) => `${kind} ${table}`)
    expect(tables).toEqual(['VIEW cheap', 'TABLE items', 'TABLE numbered', 'TABLE plain'])
    expect(await writes.read('shop', 'items')).toEqual(items)
    expect(await writes.table('shop', 'items')).toMatchObject({
      comment: 'all items',
      columns: [{ name: 'id' }, { name: 'name', type: 'varchar(10)', comment: 'of the item' }, { name: 'price' }],
    })
    expect(await writes.read('shop', 'plain')).toEqual(plain)
    const old = (await writes.table('shop', 'items'))!
    expect(await writes.read('shop', { ...old, handle: { ...old.handle, version: 1 } })).toEqual(items.slice(0, 2))
  })

  it('takes every kind of change', async () => {
    const target = { schema: 'shop', table: 'items' }
    await writes.write({ kind: 'insert', ...target }, `SELECT 4, 'tea', 2`)
    const scan = await writes.scanWithIds((await writes.table('shop', 'items'))!)
    await writes.write(
      { kind: 'changeRows', ...target, operation: 'DELETE' },
      `SELECT "$file", "$row", false, NULL, NULL, NULL, NULL FROM ${scan} WHERE id < 3`,
    )
    await writes.write({ kind: 'alterColumns', ...target, alteration: { kind: 'drop', column: 'price' } })
    await writes.write({ kind: 'renameTable', ...target, to: { schema: 'shop2', table: 'goods' } })
    expect(await writes.read('shop2', 'goods')).toEqual([{ id: 3, name: 'hat' }, { id: 4, name: 'tea' }]) // prettier-ignore
    await writes.rewrite('shop2', 'goods')
    expect(await writes.read('shop2', 'goods')).toEqual([{ id: 3, name: 'hat' }, { id: 4, name: 'tea' }]) // prettier-ignore
  })

  it('refuses changes of rows where a column has a name that the engine needs, and of files that Quipu did not write', async () => {
    for (const table of ['numbered', 'plain'])
      await expect(
        writes.prepare({ kind: 'changeRows', schema: 'shop', table, operation: 'DELETE' }),
      ).rejects.toMatchObject({ errorName: 'NOT_SUPPORTED' })
  })
})

describe('A table of plain files with a new name', () => {
  it('keeps its files until it is dropped', async () => {
    const location = mkdtempSync(join(root, 'plain-'))
    cpSync(join(FIRST_FORMAT, 'shop/plain/1.csv'), join(location, 's/t/1.csv'))
    const connector = emptyLake(location)
    const writes = tableWrites(connector, duckdb)
    const rows = [1, 2].map((n) => ({ n, d: `2020-01-0${n}` }))
    const sweep = (days: number) => writes.writer.sweep({ now: Date.now() + days * 24 * 3600_000, isOpen: () => false })
    await writes.write({ kind: 'renameTable', schema: 's', table: 't', to: { schema: 's', table: 'u' } })
    await writes.write({ kind: 'insert', schema: 's', table: 'u' }, `SELECT 3, DATE '2020-01-03'`)
    await writes.write({ kind: 'renameTable', schema: 's', table: 'u', to: { schema: 's', table: 'w' } })
    await sweep(3)
    await sweep(6)
    expect(await writes.read('s', 'w')).toEqual([...rows, { n: 3, d: '2020-01-03' }])
    await writes.write({ kind: 'dropTable', schema: 's', table: 'w' })
    await sweep(9)
    expect(filesBelow(location).filter((path) => /csv|parquet/.test(path))).toEqual([])
  })
})

describe('Two tables of plain files that exchange their names', () => {
  it('refuse rows of an insert that was begun for the other table', async () => {
    const location = mkdtempSync(join(root, 'plain-'))
    for (const table of ['t', 'u']) cpSync(join(FIRST_FORMAT, 'shop/plain/1.csv'), join(location, `s/${table}/1.csv`))
    const writes = tableWrites(emptyLake(location), duckdb)
    const insert = { kind: 'insert', schema: 's', table: 't' } as const
    const target = await writes.writer.begin(writes.nextQuery(), insert)
    for (const [table, to] of [
      ['t', 'x'],
      ['u', 't'],
      ['x', 'u'],
    ] as const)
      // prettier-ignore
      await writes.write({ kind: 'renameTable', schema: 's', table, to: { schema: 's', table: to } })
    await expect(writes.writer.prepare(target, [])).rejects.toMatchObject({ errorName: 'TRANSACTION_CONFLICT' })
  })
})

describe('A change of two names that is interrupted at any step', () => {
  const moves: readonly TableChange[] = [
    { kind: 'renameTable', schema: 's', table: 't', to: { schema: 's', table: 'u' } },
    { kind: 'renameSchema', schema: 's', to: 'r' },
  ]

  it.each(moves)('is whole or not there for every reader, and is finished later: $kind', async (move) => {
    for (let fatal = 1; ; fatal++) {
      const location = mkdtempSync(join(root, 'killed-'))
      const connector = emptyLake(location)
      const writes = tableWrites(connector, duckdb)
      const columns = [column('a', 'bigint')]
      await writes.write({ kind: 'createSchema', schema: 's' })
      for (const table of ['t', 'x'])
        await writes.write({ kind: 'createTable', schema: 's', table, columns, replace: false }, 'SELECT 1')
      const prepared = await writes.prepare(move)
      const died = await commitUntil(fatal, prepared, { location, inspect }, async () => {
        expect([before, after(move)]).toContainEqual(await objects(connector))
      })
      expect([before, after(move)]).toContainEqual(await objects(connector))
      await writes.writer.commit(prepared)
      expect(await objects(connector)).toEqual(after(move))
      const [schema, table] = after(move)[0]!.split('.') as [string, string]
      expect(await writes.read(schema, table)).toEqual([{ a: 1 }])
      expect(readdirSync(location).filter((name) => !name.startsWith('.')).length).toBeLessThanOrEqual(2)
      if (!died) return
    }
  })

  const before = ['s.t', 's.x']
  const after = (move: TableChange): string[] => (move.kind === 'renameSchema' ? ['r.t', 'r.x'] : ['s.u', 's.x'])

  /** All tables of all schemas; looking them up one by one must give the same. */
  async function objects(connector: Connector): Promise<string[]> {
    const schemas = await connector.listSchemas()
    const listed = (await connector.listTables()).map(({ schema, table }) => `${schema}.${table}`).sort()
    const all = ['s.t', 's.u', 's.x', 'r.t', 'r.x']
    const found = await Promise.all(all.map((name) => connector.getTable(...(name.split('.') as [string, string]))))
    expect(all.filter((_, index) => found[index]).sort()).toEqual(listed)
    expect(schemas).toEqual([...new Set(listed.map((name) => name.split('.')[0]))])
    return listed
  }
})

describe('A reader beside renames', () => {
  it('lists each table under exactly one name', async () => {
    const connector = emptyLake()
    const writes = tableWrites(connector, duckdb)
    await writes.write({ kind: 'createSchema', schema: 's' })
    for (const table of ['t', 'tmp'])
      await writes.write({
        kind: 'createTable',
        schema: 's',
        table,
        columns: [column(table, 'bigint')],
        replace: false,
      })
    let running = true
    const swapping = (async () => {
      for (let round = 0; round < 15; round++) {
        for (const [table, to] of [
          ['t', 'backup'],
          ['tmp', 't'],
          ['backup', 'tmp'],
        ] as const)
          // prettier-ignore
          await writes.write({ kind: 'renameTable', schema: 's', table, to: { schema: 's', table: to } })
      }
      running = false
    })()
    let seen = 0
    while (running) {
      const listed = await connector.listTables('s')
      expect(listed).toHaveLength(2)
      seen++
    }
    await swapping
    expect(seen).toBeGreaterThan(0)
  })
})

describe('A manifest that this process wrote', () => {
  it('is in memory with the content of its file', async () => {
    const paths = filesBelow(root).filter((path) => /_manifest\/v\d+\.json$/.test(path))
    expect(paths.length).toBeGreaterThan(100)
    for (const path of paths) {
      const location = path.startsWith('tables/') ? 'tables/memory' : path.slice(0, path.indexOf('/'))
      const folder = relative(location, dirname(dirname(path)))
      const text = readFileSync(join(root, path), 'utf8')
      expect(await manifestAt(join(root, path), folder), path).toStrictEqual(manifestOfText(text, path, folder))
    }
  })
})
