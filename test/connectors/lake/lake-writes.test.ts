import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { lakeConnector, memoryConnector } from '../../../src/connectors/lake/lake-connector.ts'
import type { Connector } from '../../../src/connectors/spi/connector.ts'
import type { TableChange } from '../../../src/connectors/spi/table-writer.ts'
import { connectorContract } from '../../contract/connector.contract.ts'
import { tableWriterContract } from '../../contract/table-writer.contract.ts'
import { connectorContext } from '../../support/connector-context.ts'
import { openDuckDb } from '../../support/duckdb.ts'
import { column, filesBelow, tableWrites } from '../../support/table-writes.ts'
import { inspectedBy } from '../../support/inspected-files.ts'
import { parseQueryId } from '../../../src/shared/ids.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), "quipu writes' ü-")))
afterAll(() => rmSync(root, { recursive: true }))
const duckdb = await openDuckDb()
const context = { ...connectorContext(root, inspectedBy(duckdb)), tablesDir: join(root, 'tables') }
const emptyLake = (location = mkdtempSync(join(root, 'lake-'))): Connector =>
  lakeConnector.create('lake', { connector: 'lake', location }, context)
const memory = (catalog: string): Connector => memoryConnector.create(catalog, { connector: 'memory' }, context)

tableWriterContract('lake', async () => emptyLake())
tableWriterContract('memory', async () => memory('memory'))

const squares = 'SELECT i, i * i, CAST(i AS VARCHAR) FROM range(1000) t(i)'
for (const [name, connector] of [
  ['lake with manifests', emptyLake()],
  ['memory with manifests', memory('other_memory')],
] as const) {
  connectorContract(name, async () => {
    const writes = tableWrites(connector, duckdb)
    const columns = [column('i', 'bigint'), column('sq', 'bigint'), column('txt', 'varchar')]
    await writes.write({ kind: 'createSchema', schema: 's' })
    await writes.write({ kind: 'createTable', schema: 's', table: 'squares', columns, replace: false }, squares)
    await writes.write({ kind: 'insert', schema: 's', table: 'squares' }, `SELECT -1, 1, 'minus'`)
    return {
      connector,
      schema: 's',
      table: 'squares',
      knowsColumns: true,
      truth: `SELECT i, i * i AS sq, CAST(i AS VARCHAR) AS txt FROM range(1000) t(i) UNION ALL SELECT -1, 1, 'minus'`,
    }
  })
}

describe('The memory connector', () => {
  it('creates the schema `default` only once', async () => {
    const connector = memory('fresh')
    expect(await connector.listSchemas()).toEqual(['default'])
    expect(statSync(join(root, 'tables/fresh')).mode & 0o777).toBe(0o700)
    await tableWrites(connector, duckdb).write({ kind: 'dropSchema', schema: 'default', cascade: false })
    expect(await memory('fresh').listSchemas()).toEqual([])
  })
})

describe('A table in a folder with a path that the engine cannot read', () => {
  it.each([
    ['of the table', 'b\\*', (location: string) => renameSync(join(location, 's/b'), join(location, 's/b\\*')), 's'],
    ['of the schema', 'b', (location: string) => renameSync(join(location, 's'), join(location, 's\\[')), 's\\['],
  ])('is refused with its name, and can be dropped: the folder %s', async (_kind, table, rename, schema) => {
    const location = mkdtempSync(join(root, 'odd-'))
    const connector = emptyLake(location)
    const writes = tableWrites(connector, duckdb)
    const columns = [column('i', 'bigint'), column('sq', 'bigint'), column('txt', 'varchar')]
    await writes.write({ kind: 'createSchema', schema: 's' })
    await writes.write({ kind: 'createTable', schema: 's', table: 'b', columns, replace: false }, squares)
    rename(location)
    const refused = {
      errorName: 'NOT_SUPPORTED',
      message: expect.stringContaining(`Table '${schema}.${table}' cannot be read`),
    }
    const { handle } = (await connector.getTable(schema, table))!
    await expect(connector.listSplits(handle)).rejects.toMatchObject(refused)
    await expect(connector.getStatistics(handle)).rejects.toMatchObject(refused)
    const begin = (change: TableChange) => connector.writer!.begin(parseQueryId('20260101_000000_00000_00001'), change)
    await expect(begin({ kind: 'insert', schema, table })).rejects.toMatchObject(refused)
    await writes.write({ kind: 'dropTable', schema, table })
    expect(await connector.listTables(schema)).toEqual([])
    // The new table would get the same folder.
    const again = { kind: 'createTable', schema, table, columns, replace: false } as const
    await expect(begin(again)).rejects.toMatchObject(refused)
  })

  it('gets a different folder if it is created with that name', async () => {
    const connector = emptyLake()
    const writes = tableWrites(connector, duckdb)
    const columns = [column('i', 'bigint'), column('sq', 'bigint'), column('txt', 'varchar')]
    await writes.write({ kind: 'createSchema', schema: 's' })
    await writes.write({ kind: 'createTable', schema: 's', table: 'b\\*', columns, replace: false }, squares)
    expect(await writes.read('s', 'b\\*')).toHaveLength(1000)
  })
})

describe('A lake of plain files', () => {
  it('accepts writes, and the existing files stay part of the table', async () => {
    const location = mkdtempSync(join(root, 'plain-'))
    mkdirSync(join(location, 'S/T'), { recursive: true })
    writeFileSync(join(location, 'S/T/1.csv'), 'n,d\n1,2020-01-01\n2,2020-01-02\n')
    const connector = emptyLake(location)
    const writes = tableWrites(connector, duckdb)
    const before = (await writes.table('s', 't'))!
    await writes.write({ kind: 'insert', schema: 's', table: 't' }, `SELECT 3, DATE '2020-01-03'`)
    const rows = [
      { n: 1, d: '2020-01-01' },
      { n: 2, d: '2020-01-02' },
      { n: 3, d: '2020-01-03' },
    ]
    expect(await writes.read('s', 't')).toEqual(rows)
    expect((await writes.table('s', 't'))!.columns).toEqual(before.columns)
    // Splits that were listed before refer to the same files.
    const splits = await connector.listSplits({ schema: 's', table: 't', version: 1, id: 'adopted' })
    await connector.verifySplits(splits)
    // From now on the manifest determines the files of the table.
    writeFileSync(join(location, 'S/T/2.csv'), 'n,d\n9,2020-01-09\n')
    expect(await writes.read('s', 't')).toEqual(rows)
    await writes.write({ kind: 'dropTable', schema: 's', table: 't' })
    expect(await writes.table('s', 't')).toBeUndefined()
    expect(await connector.listTables('s')).toEqual([])
    await writes.write({ kind: 'dropSchema', schema: 's', cascade: false })
    expect(await connector.listSchemas()).toEqual([])
  })

  it('delays a commit if the manifest cannot be read, until it is repaired', async () => {
    const location = mkdtempSync(join(root, 'torn-'))
    const writes = tableWrites(emptyLake(location), duckdb)
    await writes.write({ kind: 'createSchema', schema: 's' })
    const columns = [column('n', 'bigint')]
    await writes.write({ kind: 'createTable', schema: 's', table: 't', columns, replace: false }, 'SELECT 1')
    const change = await writes.prepare({ kind: 'insert', schema: 's', table: 't' }, 'SELECT 2')
    const manifest = join(location, 's/t/_manifest/v00000001.json')
    const whole = readFileSync(manifest)
    writeFileSync(manifest, '{')
    await expect(writes.writer.commit(change)).rejects.toMatchObject({ retry: 'later' })
    writeFileSync(manifest, whole)
    await writes.writer.commit(change)
    expect(await writes.read('s', 't')).toHaveLength(2)
  })

  it('loses its tables with a cascading drop of the schema, but keeps the files', async () => {
    const location = mkdtempSync(join(root, 'plain-'))
    mkdirSync(join(location, 's/t'), { recursive: true })
    writeFileSync(join(location, 's/t/1.csv'), 'n\n1\n')
    const connector = emptyLake(location)
    const writes = tableWrites(connector, duckdb)
    await writes.write({ kind: 'dropSchema', schema: 's', cascade: true })
    expect(await connector.listSchemas()).toEqual([])
    expect(filesBelow(location)).toContain('s/t/1.csv')
    await writes.write({ kind: 'createSchema', schema: 's' })
    expect(await connector.listTables()).toEqual([])
  })

  it.each([
    ['dropTable', { kind: 'dropTable', schema: 's', table: 't' }],
    ['dropSchema', { kind: 'dropSchema', schema: 's', cascade: true }],
  ] as const)('refuses a change before the commit if a file cannot be read: %s', async (_kind, change) => {
    const location = mkdtempSync(join(root, 'plain-'))
    mkdirSync(join(location, 's/t'), { recursive: true })
    writeFileSync(join(location, 's/t/1.parquet'), 'no parquet')
    const { writer } = emptyLake(location)
    const target = await writer!.begin(parseQueryId('20260101_000000_00000_00001'), change)
    await expect(writer!.prepare(target, [])).rejects.toThrow()
    expect(filesBelow(location)).toEqual(['s/t/1.parquet'])
  })

  it.each(['createSchema', 'createTable'] as const)(
    'refuses a name that is too long for a folder before the commit: %s',
    async (kind) => {
      const connector = emptyLake()
      const writes = tableWrites(connector, duckdb)
      await writes.write({ kind: 'createSchema', schema: 's' })
      const writer = connector.writer!
      const changeOf = (name: string): TableChange => {
        if (kind === 'createSchema') return { kind, schema: name }
        return { kind, schema: 's', table: name, columns: [column('i', 'bigint')], replace: false }
      }
      for (const name of ['a'.repeat(201), 'é'.repeat(101), '/'.repeat(67), '\u{1f600}'.repeat(51)]) {
        const prepared = writer.begin(writes.nextQuery(), changeOf(name)).then((target) => writer.prepare(target, []))
        await expect(prepared, name).rejects.toMatchObject({ errorName: 'NOT_SUPPORTED' })
      }
    },
  )

  it('has no writer if it is configured as read-only', () => {
    const location = mkdtempSync(join(root, 'plain-'))
    const connector = lakeConnector.create('lake', { connector: 'lake', location, readOnly: true }, context)
    expect(connector.writer).toBeUndefined()
    expect(connector.abilities).toMatchObject({ createTable: false, insert: false, createSchema: false, views: false })
  })
})
