import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { lakeConnector } from '../../../src/connectors/lake/lake-connector.ts'
import type { TablePoint } from '../../../src/connectors/spi/connector.ts'
import type { TableChange } from '../../../src/connectors/spi/table-writer.ts'
import { openDuckDb } from '../../support/duckdb.ts'
import { inspectedBy } from '../../support/inspected-files.ts'
import { column, tableWrites } from '../../support/table-writes.ts'
import { connectorContext } from '../../support/connector-context.ts'

const HOUR = 3_600_000
const START = Date.parse('2026-03-01T00:00:00Z')
const root = realpathSync(mkdtempSync(join(tmpdir(), 'quipu-history-')))
afterAll(() => rmSync(root, { recursive: true }))
const duckdb = await openDuckDb()
const connector = lakeConnector.create(
  'lake',
  { connector: 'lake', location: root, keepVersions: '48h', expireSnapshotsMinRetention: '1h' },
  connectorContext(root, inspectedBy(duckdb)),
)
const writes = tableWrites(connector, duckdb)

/** Goes on at an hour since the start. */
const at = (hour: number): void => void vi.setSystemTime(START + hour * HOUR)
afterEach(() => vi.useRealTimers())

const version = (number: number): TablePoint => ({ kind: 'version', version: String(number) })
const time = (hour: number): TablePoint => ({ kind: 'time', millis: START + hour * HOUR })

async function rowsAt(table: string, point: TablePoint, schema = 's'): Promise<unknown> {
  const found = await connector.getTable(schema, table, point).catch((error: Error) => error.message)
  return typeof found === 'object' ? writes.read(schema, found) : found
}

describe('The history of a table', () => {
  beforeAll(async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    await writes.write({ kind: 'createSchema', schema: 's' })
  })

  it('finds a version by its number and by any time until the next, with the columns of that version', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    at(0)
    const named = { schema: 's', table: 't' }
    await writes.write({ kind: 'createTable', ...named, columns: [column('a', 'bigint')], replace: false }, 'SELECT 1')
    at(1)
    await writes.write({ kind: 'insert', ...named }, 'SELECT 2')
    at(2)
    await writes.write({ kind: 'alterColumns', ...named, alteration: { kind: 'rename', column: 'a', to: 'b' } })
    at(3)
    await writes.write({ kind: 'alterColumns', ...named, alteration: { kind: 'add', column: column('a', 'varchar') } })
    at(4)
    await writes.write({ kind: 'truncateTable', ...named })
    at(5)
    expect(await rowsAt('t', version(1))).toEqual([{ a: 1 }])
    expect(await rowsAt('t', version(2))).toEqual([{ a: 1 }, { a: 2 }])
    expect(await rowsAt('t', version(3))).toEqual([{ b: 1 }, { b: 2 }])
    expect(await rowsAt('t', version(4))).toEqual([{ b: 1, a: null }, { b: 2, a: null }]) // prettier-ignore
    expect(await rowsAt('t', version(5))).toEqual([])
    expect(await rowsAt('t', version(6))).toBe('Iceberg snapshot ID does not exists: 6')
    expect(await rowsAt('t', version(0))).toBe('Iceberg snapshot ID does not exists: 0')
    expect(await rowsAt('t', time(0))).toEqual([{ a: 1 }])
    expect(await rowsAt('t', time(0.99))).toEqual([{ a: 1 }])
    expect(await rowsAt('t', time(2.5))).toEqual([{ b: 1 }, { b: 2 }])
    expect(await rowsAt('t', time(9))).toEqual([])
    expect(await rowsAt('t', time(-1))).toBe('No version history table s.t at or before 2026-02-28T23:00:00Z')
    expect(await rowsAt('t', { kind: 'reference', name: 'x' })).toBe('Cannot find snapshot with reference name: x')
    // Rules name the columns of today.
    const older = await connector.getTable('s', 't', version(1))
    expect(older!.columns).toMatchObject([{ name: 'a', nameToday: 'b' }])
  })

  it('continues through new names of the table and of its schema', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const to = (table: string) => ({ schema: 's', table })
    const rename = (from: string, name: string) =>
      writes.write({ kind: 'renameTable', ...to(from), to: { schema: 's', table: name } })
    at(10)
    await writes.write(
      { kind: 'createTable', ...to('x'), columns: [column('a', 'bigint')], replace: false },
      'SELECT 1',
    )
    at(11)
    await rename('x', 'backup')
    at(12)
    await writes.write(
      { kind: 'createTable', ...to('x'), columns: [column('a', 'bigint')], replace: false },
      'SELECT 7',
    )
    at(13)
    await writes.write({ kind: 'insert', ...to('backup') }, 'SELECT 2')
    at(14)
    await rename('x', 'other')
    at(15)
    await rename('backup', 'x')
    at(16)
    await writes.write({ kind: 'insert', ...to('x') }, 'SELECT 3')
    at(17)
    await writes.write({ kind: 'renameSchema', schema: 's', to: 'r' })
    at(18)
    await writes.write({ kind: 'insert', schema: 'r', table: 'x' }, 'SELECT 4')
    const rows = (count: number) => Array.from({ length: count }, (_, i) => ({ a: i + 1 }))
    for (const [hour, count] of [
      [10, 1],
      [11, 1],
      [12, 1],
      [13, 2],
      [14.5, 2],
      [15, 2],
      [16, 3],
      [17.5, 3],
      [18, 4],
    ] as const)
      // prettier-ignore
      expect(await rowsAt('x', time(hour), 'r'), `hour ${hour}`).toEqual(rows(count))
    expect(await rowsAt('x', version(1), 'r')).toEqual(rows(1))
    expect(await rowsAt('other', time(13), 'r')).toEqual([{ a: 7 }])
    expect(await rowsAt('other', time(11.5), 'r')).toContain('No version history')
    await writes.write({ kind: 'renameSchema', schema: 'r', to: 's' })
  })

  it('has no version of another table that got the old name of the schema and the table', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const create = (schema: string, sql: string) =>
      writes.write({ kind: 'createTable', schema, table: 't', columns: [column('a', 'bigint')], replace: false }, sql)
    const insert = (schema: string, sql: string) => writes.write({ kind: 'insert', schema, table: 't' }, sql)
    at(30)
    // The versions under the new name have much higher numbers than those under the old name.
    await writes.write({ kind: 'createSchema', schema: 'new' })
    await create('new', 'SELECT 0')
    for (let i = 0; i < 5; i++) await insert('new', 'SELECT 0')
    await writes.write({ kind: 'dropTable', schema: 'new', table: 't' })
    await writes.write({ kind: 'dropSchema', schema: 'new', cascade: false })
    await writes.write({ kind: 'createSchema', schema: 'first' })
    await create('first', 'SELECT 1')
    at(31)
    await writes.write({ kind: 'renameSchema', schema: 'first', to: 'new' })
    at(32)
    await writes.write({ kind: 'createSchema', schema: 'first' })
    await create('first', 'SELECT 7')
    const { version: other } = (await connector.getTable('first', 't'))!
    at(33)
    expect(await rowsAt('t', version(other!), 'new')).toBe(`Iceberg snapshot ID does not exists: ${other}`)
    expect(await rowsAt('t', version(1), 'new')).toEqual([{ a: 1 }])
    for (const hour of [30, 31, 32, 32.5]) expect(await rowsAt('t', time(hour), 'new'), `hour ${hour}`).toEqual([{ a: 1 }]) // prettier-ignore
    expect(await rowsAt('t', time(31.5), 'first')).toContain('No version history')
  })

  it('begins anew with CREATE OR REPLACE, and keeps no version longer than the setting', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const named = { schema: 's', table: 'k' }
    const create: TableChange = { kind: 'createTable', ...named, columns: [column('a', 'bigint')], replace: true }
    at(20)
    await writes.write(create, 'SELECT 1')
    at(21)
    await writes.write(create, 'SELECT 2')
    at(22)
    await writes.write({ kind: 'insert', ...named }, 'SELECT 3')
    expect(await rowsAt('k', version(1))).toContain('does not exists')
    expect(await rowsAt('k', time(20.5))).toContain('No version history')
    const sweep = () => writes.writer.sweep({ now: Date.now(), isOpen: () => false })
    at(69.9)
    await sweep()
    const older = (await connector.getTable('s', 'k', version(2)))!
    const began = Date.now()
    expect(await rowsAt('k', version(2))).toEqual([{ a: 2 }])
    at(71)
    expect(await rowsAt('k', version(2))).toContain('does not exists')
    // A query that began before reads on.
    await writes.writer.sweep({ now: Date.now(), isOpen: () => false, oldestOpenQuery: began })
    expect(await writes.read('s', older)).toEqual([{ a: 2 }])
    await sweep()
    await expect(writes.read('s', older)).rejects.toMatchObject({ errorName: 'TRANSACTION_CONFLICT' })
    expect(await rowsAt('k', version(3))).toEqual([{ a: 2 }, { a: 3 }])
  })

  it('begins at the threshold of EXECUTE expire_snapshots, and a sweep keeps earlier files while an older query is open', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const named = { schema: 's', table: 'short' }
    const expire = (retention: string): Promise<void> =>
      writes.write({ kind: 'expireVersions', ...named, retention, startedAt: Date.now() })
    const sweep = (oldestOpenQuery?: number) =>
      writes.writer.sweep({ now: Date.now(), isOpen: () => false, ...(oldestOpenQuery !== undefined && { oldestOpenQuery }) }) // prettier-ignore
    // A table that had the name before keeps its own history.
    at(100)
    await writes.write({ kind: 'createTable', ...named, columns: [column('a', 'bigint')], replace: false }, 'SELECT 7')
    at(100.5)
    await writes.write({ kind: 'insert', ...named }, 'SELECT 8')
    await writes.write({ kind: 'renameTable', ...named, to: { schema: 's', table: 'moved' } })
    at(101)
    await writes.write({ kind: 'createTable', ...named, columns: [column('a', 'bigint')], replace: false }, 'SELECT 1')
    const first = (await connector.getTable('s', 'short'))!
    at(102)
    await writes.write({ kind: 'changeRows', ...named, operation: 'DELETE' }, `SELECT 0, 0, false, NULL, NULL`)
    at(104)
    await writes.write({ kind: 'insert', ...named }, 'SELECT 3')
    at(105)
    const reading = Date.now()
    at(106)
    await expect(expire('0.9h')).rejects.toMatchObject({ errorName: 'INVALID_PROCEDURE_ARGUMENT', message: expect.stringContaining('Retention specified (0.90h) is shorter than the minimum retention configured in the system (1.00h)') as string }) // prettier-ignore
    await expire('1h')
    await expire('3h')
    expect(await rowsAt('short', version(first.version!))).toContain('does not exists')
    expect(await rowsAt('short', time(101.5))).toContain('No version history')
    expect(await rowsAt('short', time(103))).toContain('No version history')
    expect(await rowsAt('short', time(105.5))).toEqual([{ a: 3 }])
    expect(await rowsAt('moved', time(100.2))).toEqual([{ a: 7 }])
    // The query that began before still reads the first version.
    await sweep(reading)
    expect(await writes.read('s', first)).toEqual([{ a: 1 }])
    await sweep(Date.now() + 120_000)
    await expect(writes.read('s', first)).rejects.toMatchObject({ errorName: 'TRANSACTION_CONFLICT' })
    expect(await rowsAt('short', time(105.5))).toEqual([{ a: 3 }])
    expect(await writes.read('s', 'short')).toEqual([{ a: 3 }])
    expect(await rowsAt('moved', time(100.2))).toEqual([{ a: 7 }])
  })
})
