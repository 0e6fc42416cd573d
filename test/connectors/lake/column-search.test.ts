import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { namesOneOf } from '../../../src/connectors/lake/column-search.ts'
import { lakeConnector } from '../../../src/connectors/lake/lake-connector.ts'
import type { TextCondition } from '../../../src/connectors/spi/scan-conditions.ts'
import { withInformationSchema } from '../../../src/connectors/system/information-schema.ts'
import { askerNamed } from '../../support/asker.ts'
import { connectorContext } from '../../support/connector-context.ts'

const location = realpathSync(mkdtempSync(join(tmpdir(), 'quipu-columns-')))
afterAll(() => rmSync(location, { recursive: true }))

const column = (name: string) => ({ name, type: 'varchar', nullable: true, duckdbType: 'VARCHAR' })
const manifest = (content: object, version = 1) => ({ format: 1, version, time: 1, committed: [], content })
const table = (...names: string[]) => manifest({ kind: 'table', id: 'i', columns: names.map(column), files: [] })

function put(name: string, text: string, version = 1): void {
  const folder = join(location, 's', name, '_manifest')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `v${String(version).padStart(8, '0')}.json`), text)
}

const lake = withInformationSchema(
  lakeConnector.create(
    'lake',
    { connector: 'lake', location },
    connectorContext(location, async () => []),
  ),
)

/** Lists the tables with a matching row in `columns`, for a user without access to `hidden` and to `masked` columns. */
async function tablesWith(condition: TextCondition): Promise<string[]> {
  const { handle } = (await lake.getTable('information_schema', 'columns'))!
  const splits = await lake.listSplits(handle, { table_schema: [{ in: ['s'] }], column_name: [condition] })
  const sight = {
    showsCatalog: () => true,
    showsSchema: () => true,
    showsTable: (name: { readonly table: string }) => name.table !== 'hidden',
    showsColumn: (_: object, name: string) => name !== 'masked',
    showsSize: () => true,
  }
  const [split] = await lake.loadSplits!(splits, ['table_name', 'column_name'], { ...askerNamed('ada'), sight })
  return (split!.data['rows'] as string[][]).map((row) => row[2]!)
}
const named = (name: string) => tablesWith({ in: [name] })

describe('An invalid manifest', () => {
  it.each(['link to nothing', 'pipe', 'folder', 'empty file'])(
    'is refused if it is a %s, and hides no other table',
    async (kind) => {
      const folder = join(location, 's', 'none', '_manifest')
      mkdirSync(folder, { recursive: true })
      const path = join(folder, 'v00000001.json')
      put('beside', JSON.stringify(table('besides')))
      if (kind === 'link to nothing') symlinkSync(join(location, 'nowhere'), path)
      else if (kind === 'pipe') execFileSync('mkfifo', [path])
      else if (kind === 'folder') mkdirSync(path)
      else writeFileSync(path, '')
      await expect(lake.getTable('s', 'none')).rejects.toThrow(/Manifest .*v00000001.json cannot be read/)
      expect(await named('besides')).toEqual(['beside'])
      rmSync(join(location, 's', 'none'), { recursive: true })
    },
  )
})

describe('The search of a column by name only', () => {
  it('skips no manifest text that contains the column as JSON', () => {
    const text = fc.oneof(fc.constantFrom('name', 'type', 'varchar', 'a', 'a"', '\\', 'ß', '\ud800', '\ufffd', ''), fc.string()) // prettier-ignore
    const written = fc.constantFrom<((value: object) => string)[]>(
      (value) => JSON.stringify(value),
      (value) => JSON.stringify(value, undefined, '\t'),
      (value) => JSON.stringify(value).replaceAll('"name":', '"name" \r\n: '),
      (value) => JSON.stringify(value).replaceAll('"a"', '"\\u0061"').replaceAll('"name":', '"n\\u0061me":'),
    )
    fc.assert(
      fc.property(
        fc.array(text, { maxLength: 3 }),
        fc.array(text, { maxLength: 3 }),
        written,
        (names, asked, write) => {
          const bytes = Buffer.from(write(table(...names)))
          const read = JSON.parse(bytes.toString()) as { content: { columns: { name: string }[] } }
          const has = read.content.columns.some(({ name }) => asked.includes(name))
          if (has) expect(namesOneOf(asked)?.(bytes) ?? true).toBe(true)
        },
      ),
      { numRuns: 300 },
    )
  })

  it('skips manifest texts that contain the name only elsewhere', () => {
    const bytes = Buffer.from(JSON.stringify(table('a', 'name')))
    for (const name of ['type', 'varchar', 'columns', 'table', '', 'A']) expect(namesOneOf([name])!(bytes)).toBe(false)
    for (const name of ['a', 'name']) expect(namesOneOf(['x', name])!(bytes)).toBe(true)
    expect(namesOneOf(Array.from({ length: 17 }, (_, i) => `c${i}`))).toBeUndefined()
  })

  it('finds any name in any spelling, in tables and views, but not hidden ones', async () => {
    const odd = ['a"b', 'a\\b', 'straße', 'x\ny', 'plain', '😀', 'name', 'c_1', 'cx1']
    for (const [i, name] of odd.entries()) put(`t${i}`, JSON.stringify(table('other', name)))
    put('hidden', JSON.stringify(table('plain', 'secret')))
    put('masks', JSON.stringify(table('masked')))
    put('escaped', JSON.stringify(table('plain')).replace('"plain"', '"pl\\u0061in"'))
    put('damaged', JSON.stringify(table('plain')).slice(0, -9))
    put('dropped', JSON.stringify(manifest({ kind: 'dropped' })))
    put('view', JSON.stringify(manifest({ kind: 'view', definition: { sql: 'SELECT 1', columns: [column('plain')], runAsInvoker: true } }))) // prettier-ignore
    for (const again of ['unread', 'read']) {
      for (const [i, name] of odd.entries()) {
        const found = name === 'plain' ? ['escaped', `t${i}`, 'view'] : [`t${i}`]
        expect([again, name, await named(name)]).toEqual([again, name, found])
      }
      for (const name of ['secret', 'masked', 'PLAIN', 'type', 'varchar', 'nowhere', '\ud800', '']) {
        expect([name, await named(name)]).toEqual([name, []])
      }
      expect(await tablesWith({ like: 'c!_1', escape: '!' })).toEqual(['t7'])
      expect(await tablesWith({ like: 'c_1' })).toEqual(['t7', 't8'])
      expect(await tablesWith({ in: ['c_1', 'cx1', 'nowhere'] })).toEqual(['t7', 't8'])
    }
  })

  it('reads a manifest again after the table was changed, dropped, repaired, created again or removed', async () => {
    put('changing', JSON.stringify(table('before')))
    expect(await named('after')).toEqual([])
    put('changing', JSON.stringify({ ...table('after'), version: 2 }), 2)
    expect([await named('before'), await named('after')]).toEqual([[], ['changing']])
    put('changing', JSON.stringify(manifest({ kind: 'dropped' }, 3)), 3)
    expect(await named('after')).toEqual([])
    put('changing', '{"format":1', 4)
    expect(await named('after')).toEqual([])
    put('changing', JSON.stringify({ ...table('again'), version: 4 }), 4)
    expect(await named('again')).toEqual(['changing'])
    rmSync(join(location, 's', 'changing'), { recursive: true })
    expect(await named('again')).toEqual([])
    put('changing', JSON.stringify(table('once_more')))
    expect(await named('once_more')).toEqual(['changing'])
  })
})
