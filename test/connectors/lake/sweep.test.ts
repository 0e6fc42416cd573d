import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { lakeConnector } from '../../../src/connectors/lake/lake-connector.ts'
import type { Connector } from '../../../src/connectors/spi/connector.ts'
import type { SweepOptions, SweepReport, TableChange } from '../../../src/connectors/spi/table-writer.ts'
import { openDuckDb } from '../../support/duckdb.ts'
import { column, filesBelow, tableWrites, type TableWrites } from '../../support/table-writes.ts'
import { inspectedBy } from '../../support/inspected-files.ts'
import { parseQueryId } from '../../../src/shared/ids.ts'
import { connectorContext } from '../../support/connector-context.ts'

const HOUR = 3600 * 1000
const root = realpathSync(mkdtempSync(join(tmpdir(), 'quipu-sweep-')))
afterAll(() => rmSync(root, { recursive: true }))
const duckdb = await openDuckDb()

let location: string
let connector: Connector
let writes: TableWrites
beforeEach(async () => {
  location = mkdtempSync(join(root, 'lake-'))
  connector = lakeConnector.create('lake', { connector: 'lake', location }, connectorContext(root, inspectedBy(duckdb)))
  writes = tableWrites(connector, duckdb)
  await writes.write({ kind: 'createSchema', schema: 's' })
})

const insert = { kind: 'insert', schema: 's', table: 't' } as const
const drop = { kind: 'dropTable', schema: 's', table: 't' } as const
const create = (replace = false): Extract<TableChange, { kind: 'createTable' }> => ({
  kind: 'createTable',
  schema: 's',
  table: 't',
  columns: [column('a', 'bigint')],
  replace,
})

/** Sweeps as a coordinator does, at a time `hours` from now. */
function sweep(hours: number, options: Partial<SweepOptions> = {}): Promise<SweepReport> {
  return writes.writer.sweep({ now: Date.now() + hours * HOUR, isOpen: () => false, ...options })
}
const data = (): string[] => filesBelow(location).filter((path) => path.endsWith('.parquet'))
const manifests = (): string[] => filesBelow(location).filter((path) => path.includes('_manifest/v'))

describe('The sweep of a lake', () => {
  it('keeps all data of a table at any age', async () => {
    await writes.write(create(), 'SELECT 1')
    await writes.write(insert, 'SELECT 2')
    const before = data()
    expect(await sweep(1000)).toEqual({ filesRemoved: 0, bytesRemoved: 0, worthRewriting: [] })
    expect(data()).toEqual(before)
    expect(await writes.read('s', 't')).toEqual([{ a: 1 }, { a: 2 }])
    // The older versions of the table are removed.
    expect(manifests()).toEqual(['s/_manifest/v00000001.json', 's/t/_manifest/v00000002.json'])
    await writes.write(insert, 'SELECT 3')
    expect(await writes.read('s', 't')).toEqual([{ a: 1 }, { a: 2 }, { a: 3 }])
  })

  it('keeps the files of an older version for a day, and while an older query is open', async () => {
    await writes.write(create(), 'SELECT 1')
    const began = Date.now()
    const read = (await writes.table('s', 't'))!
    await new Promise((resolve) => setTimeout(resolve, 2))
    await writes.write(create(true), 'SELECT 2')
    await writes.write(drop)
    expect((await sweep(23)).filesRemoved).toBe(0)
    expect(await writes.read('s', read)).toEqual([{ a: 1 }])
    expect((await sweep(100, { oldestOpenQuery: began })).filesRemoved).toBe(0)
    expect(await writes.read('s', read)).toEqual([{ a: 1 }])
    expect(await sweep(25)).toMatchObject({ filesRemoved: 2 })
    expect(data()).toEqual([])
    await expect(writes.read('s', read)).rejects.toMatchObject({ errorName: 'TRANSACTION_CONFLICT' })
  })

  it('keeps the record of a drop, so that a late repeated commit of it changes nothing', async () => {
    await writes.write(create(), 'SELECT 1')
    const slept = await writes.prepare(drop)
    await writes.writer.commit(slept)
    await sweep(30)
    await writes.write(create(), 'SELECT 2')
    await writes.writer.commit(slept)
    expect(await writes.read('s', 't')).toEqual([{ a: 2 }])
  })

  it('removes attempts without a commit after a day, but not those of an open query', async () => {
    await writes.write(create(), 'SELECT 1')
    const prepared = await writes.prepare(insert, 'SELECT 2')
    const unborn = await writes.prepare({ ...create(), table: 'unborn' }, 'SELECT 3')
    expect((await sweep(23)).filesRemoved).toBe(0)
    const isOpen = (queryId: string) => queryId === prepared.queryId
    expect((await sweep(25, { isOpen })).filesRemoved).toBe(1)
    expect(existsSync(join(location, 's/unborn', unborn.files[0]!.path))).toBe(false)
    await writes.writer.commit(prepared)
    expect(await writes.read('s', 't')).toEqual([{ a: 1 }, { a: 2 }])
    await sweep(50)
    expect(await writes.read('s', 't')).toEqual([{ a: 1 }, { a: 2 }])
    // The folder of a table that was never created is removed.
    await sweep(80)
    expect(existsSync(join(location, 's/unborn'))).toBe(false)
  })

  it('removes the files of a lost attempt beside the committed attempt', async () => {
    await writes.write(create())
    const target = await writes.writer.begin(parseQueryId('20260101_000000_99999_tests'), insert)
    for (const attempt of ['lost', 'good']) {
      const folder = await writes.writer.openAttempt(target, attempt)
      await duckdb.run(`COPY (SELECT 7::BIGINT AS a) TO '${folder}/f.parquet' (FORMAT parquet)`)
    }
    const folder = join(location, 's/t/_data/20260101_000000_99999_tests')
    const { size } = statSync(join(folder, 'good/f.parquet'))
    const files = await writes.writer.sealAttempt(target, 'good', [
      { path: join(folder, 'good/f.parquet'), rows: 1, bytes: size },
    ])
    await writes.writer.commit(await writes.writer.prepare(target, files))
    expect((await sweep(25)).filesRemoved).toBe(1)
    expect(existsSync(join(folder, 'lost'))).toBe(false)
    expect(await writes.read('s', 't')).toEqual([{ a: 7 }])
  })

  it('removes the plain files of a dropped table, but not the targets of links', async () => {
    mkdirSync(join(location, 's/t'))
    mkdirSync(join(location, 's/other'))
    writeFileSync(join(location, 's/t/1.csv'), 'n\n1\n')
    writeFileSync(join(location, 's/other/2.csv'), 'n\n2\n')
    symlinkSync(join(location, 's/other/2.csv'), join(location, 's/t/2.csv'))
    await writes.write(insert, 'SELECT 3')
    expect((await sweep(100)).filesRemoved).toBe(0)
    expect(await writes.read('s', 't')).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
    await writes.write(drop)
    expect((await sweep(25)).filesRemoved).toBe(2)
    expect(existsSync(join(location, 's/t/1.csv'))).toBe(false)
    expect(existsSync(join(location, 's/other/2.csv'))).toBe(true)
    expect(await writes.read('s', 'other')).toEqual([{ n: 2 }])
  })

  it('ignores folders that it does not manage', async () => {
    mkdirSync(join(location, 's/plain/deeper'), { recursive: true })
    writeFileSync(join(location, 's/plain/1.csv'), 'n\n1\n')
    writeFileSync(join(location, 's/plain/deeper/notes.txt'), 'mine')
    mkdirSync(join(location, 'empty'))
    mkdirSync(join(location, 's/empty'))
    expect(await sweep(10_000)).toEqual({ filesRemoved: 0, bytesRemoved: 0, worthRewriting: [] })
    expect(existsSync(join(location, 's/plain/deeper/notes.txt'))).toBe(true)
    expect(existsSync(join(location, 's/empty'))).toBe(true)
    expect(await connector.listSchemas()).toEqual(['empty', 's'])
  })

  it('reports a table with many removed rows or many changes until it is rewritten', async () => {
    const table = { schema: 's', table: 't' }
    const remove = async (where: string): Promise<void> => {
      const found = (await writes.table('s', 't'))!
      const rows = `SELECT "$file", "$row", false, NULL, NULL FROM ${await writes.scanWithIds(found)} WHERE ${where}`
      await writes.write({ kind: 'changeRows', ...table, operation: 'DELETE', version: found.version }, rows)
    }
    const reported = async (): Promise<unknown> => (await sweep(0)).worthRewriting
    await writes.write(create(), 'SELECT i FROM range(100) t(i)')
    await remove('a < 30')
    expect(await reported()).toEqual([])
    await remove('a = 30')
    expect(await reported()).toEqual([table])
    await writes.rewrite('s', 't')
    expect(await reported()).toEqual([])
    for (let a = 40; a < 49; a++) await remove(`a = ${a}`)
    expect(await reported()).toEqual([table])
    await writes.rewrite('s', 't')
    expect(await reported()).toEqual([])
    await sweep(30)
    expect(data()).toHaveLength(1)
    expect(await writes.read('s', 't')).toHaveLength(60)
  })

  it('removes temporary manifests of dead committers', async () => {
    await writes.write(create())
    writeFileSync(join(location, 's/t/_manifest/.v2-dead.tmp'), '{')
    await sweep(23)
    expect(filesBelow(location)).toContain('s/t/_manifest/.v2-dead.tmp')
    await sweep(25)
    expect(filesBelow(location)).not.toContain('s/t/_manifest/.v2-dead.tmp')
  })

  it('removes the hidden folders of renamed schemas whose queries have ended', async () => {
    const ended = '20261127_100000_00001_00001-0b6b3a1c-5a4e-4c55-8a33-0c6f5d1a2b3c'
    const open = '20261127_100000_00002_00001-0b6b3a1c-5a4e-4c55-8a33-0c6f5d1a2b3c'
    for (const name of [`.${ended}`, `.${open}`, '.hidden', '.hidden-0b6b3a1c-5a4e-4c55-8a33-0c6f5d1a2b3c'])
      mkdirSync(join(location, name, '_manifest'), { recursive: true })
    await sweep(0, { isOpen: (queryId) => queryId === '20261127_100000_00002_00001' })
    expect(
      readdirSync(location)
        .filter((name) => name.startsWith('.'))
        .toSorted(),
    ).toEqual([`.${open}`, '.hidden', '.hidden-0b6b3a1c-5a4e-4c55-8a33-0c6f5d1a2b3c'])
  })
})
