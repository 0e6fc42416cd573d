import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { lakeConnector } from '../../../src/connectors/lake/lake-connector.ts'
import type { TableChange } from '../../../src/connectors/spi/table-writer.ts'
import { connectorContext } from '../../support/connector-context.ts'
import { openDuckDb } from '../../support/duckdb.ts'
import { inspectedBy } from '../../support/inspected-files.ts'
import { commitUntil } from '../../support/mortal-writer.ts'
import { column, filesBelow, tableWrites } from '../../support/table-writes.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'quipu-views-')))
afterAll(() => rmSync(root, { recursive: true }))
const duckdb = await openDuckDb()
const inspect = inspectedBy(duckdb)
const connector = lakeConnector.create('lake', { connector: 'lake', location: root }, connectorContext(root, inspect))
const writes = tableWrites(connector, duckdb)
await writes.write({ kind: 'createSchema', schema: 's' })

const definition = { sql: 'SELECT 1 a', columns: [column('a', 'bigint')], runAsInvoker: false, owner: 'ana' }
const sources = [{ catalog: 'lake', schema: 's', table: 'base', snapshot: 'x 1' }]

async function refreshOf(table: string): Promise<Extract<TableChange, { kind: 'refreshMaterializedView' }>> {
  const { version } = (await writes.table('s', table))!
  return { kind: 'refreshMaterializedView', schema: 's', table, version: version!, startedAt: 5, sources }
}

async function created(table: string): Promise<void> {
  await writes.write({ kind: 'createMaterializedView', schema: 's', table, definition, replace: false })
}

describe('A materialized view of a lake', () => {
  it('has no rows before the first refresh, and then those of the last', async () => {
    await created('m')
    expect(await writes.table('s', 'm')).toMatchObject({ kind: 'TABLE', view: { owner: 'ana' }, materialized: {} })
    await writes.write(await refreshOf('m'), 'SELECT 1')
    const first = (await writes.table('s', 'm'))!
    expect(first.materialized).toEqual({ stored: { refreshedAt: 5, sources } })
    await writes.write(await refreshOf('m'), 'SELECT 2 UNION ALL SELECT 3')
    expect(await writes.read('s', 'm')).toEqual([{ a: 2 }, { a: 3 }])
    // A query that has begun reads on.
    expect(await writes.read('s', first)).toEqual([{ a: 1 }])
    expect(first.snapshot).not.toBe((await writes.table('s', 'm'))!.snapshot)
    await writes.write(await refreshOf('m'), 'SELECT 1 WHERE false')
    expect(await writes.read('s', 'm')).toEqual([])
  })

  it('refuses rows that were read before it was refreshed or replaced', async () => {
    await created('late')
    const older = await refreshOf('late')
    const prepared = await writes.prepare(older, 'SELECT 1')
    await writes.write(older, 'SELECT 2')
    await expect(writes.prepare(older, 'SELECT 3')).rejects.toMatchObject({ errorName: 'TRANSACTION_CONFLICT', retry: 'anew' }) // prettier-ignore
    await writes.writer.commit(prepared)
    const begun = await writes.writer.begin(writes.nextQuery(), await refreshOf('late'))
    await writes.write({ kind: 'createMaterializedView', schema: 's', table: 'late', definition, replace: true })
    await expect(writes.writer.prepare(begun, [])).rejects.toMatchObject({ errorName: 'TRANSACTION_CONFLICT' })
    expect((await writes.table('s', 'late'))!.materialized).toEqual({})
  })

  it('has the rows of a refresh once, at whatever step its committer dies', async () => {
    await created('killed')
    for (let step = 1; step < 12; step++) {
      const prepared = await writes.prepare(await refreshOf('killed'), `SELECT ${step}`)
      await commitUntil(step, prepared, { location: root, inspect })
      await writes.writer.commit(prepared)
      expect(await writes.read('s', 'killed')).toEqual([{ a: step }])
      const again = await writes.writer.commit(prepared)
      expect(again.changed).toBe(false)
    }
  })

  it('keeps its rows after a rename and a sweep, and leaves no file when it is dropped', async () => {
    await created('moved')
    await writes.write(await refreshOf('moved'), 'SELECT 1')
    const to = { schema: 's', table: 'there' }
    await writes.write({ kind: 'renameMaterializedView', schema: 's', table: 'moved', to })
    const sweep = () => writes.writer.sweep({ now: Date.now() + 30 * 3_600_000, isOpen: () => false })
    await sweep()
    expect(await writes.read('s', 'there')).toEqual([{ a: 1 }])
    await writes.write(await refreshOf('there'), 'SELECT 2')
    await sweep()
    expect(await writes.read('s', 'there')).toEqual([{ a: 2 }])
    await writes.write({ kind: 'dropMaterializedView', ...to })
    expect(await writes.table('s', 'there')).toBeUndefined()
    await sweep()
    expect(filesBelow(join(root, 's')).filter((path) => /^(moved|there).*parquet$/.test(path))).toEqual([])
  })

  it('is dropped with its schema', async () => {
    await writes.write({ kind: 'createSchema', schema: 'all' })
    await writes.write({ kind: 'createMaterializedView', schema: 'all', table: 'm', definition, replace: false })
    expect(await connector.listTables('all')).toEqual([{ schema: 'all', table: 'm', kind: 'TABLE' }])
    await writes.write({ kind: 'dropSchema', schema: 'all', cascade: true })
    await writes.write({ kind: 'createSchema', schema: 'all' })
    expect(await connector.listTables('all')).toEqual([])
  })
})
