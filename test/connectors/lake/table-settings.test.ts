import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { lakeConnector } from '../../../src/connectors/lake/lake-connector.ts'
import type { Connector } from '../../../src/connectors/spi/connector.ts'
import { scanText } from '../../../src/execution/engine/scan-text.ts'
import { openDuckDb, type Rows } from '../../support/duckdb.ts'
import { inspectedBy, queryFiles } from '../../support/inspected-files.ts'
import { connectorContext } from '../../support/connector-context.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'quipu-settings-')))
afterAll(() => rmSync(root, { recursive: true }))
const duckdb = await openDuckDb()

function open(tables: Readonly<Record<string, unknown>> = {}): Connector {
  mkdirSync(join(root, 'lake'), { recursive: true })
  return lakeConnector.create(
    'lake',
    { connector: 'lake', location: join(root, 'lake'), tables },
    connectorContext(root, inspectedBy(duckdb)),
  )
}

function write(path: string, content: string | Buffer): void {
  mkdirSync(join(root, 'lake', 's', dirname(path)), { recursive: true })
  writeFileSync(join(root, 'lake', 's', path), content)
}

async function read(table: string, tables: Readonly<Record<string, unknown>> = {}): Promise<Rows> {
  const connector = open(tables)
  const found = (await connector.getTable('s', table))!
  const splits = await connector.listSplits(found.handle)
  const names = found.columns.map(({ name }) => name)
  const source = scanText(await connector.tableSource(splits, names))
  const rows = await queryFiles(duckdb, source, `FROM (${source}) ORDER BY ALL`)
  await connector.verifySplits(splits)
  return rows
}

async function types(table: string, tables: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const { columns } = (await open(tables).getTable('s', table))!
  return columns.map(({ name, type }) => `${name} ${type}`).join(', ')
}

describe('The settings of a table in the catalog file', () => {
  it('determine the dialect, the names and the types of a CSV file', async () => {
    write('fixed/a.txt', "made by x\n007;'a;b';1.5;NA\n8;c;2;2024-01-05\n")
    const tables = {
      's.fixed': {
        format: 'csv',
        delimiter: ';',
        quote: "'",
        header: false,
        skip: 1,
        nullString: 'NA',
        columns: { id: 'bigint', name: 'varchar', price: 'decimal(10, 2)', day: 'date' },
      },
    }
    expect(await types('fixed', tables)).toBe('id bigint, name varchar, price decimal(10, 2), day date')
    expect(await read('fixed', tables)).toEqual([
      { id: 7, name: 'a;b', price: 1.5, day: null },
      { id: 8, name: 'c', price: 2, day: '2024-01-05' },
    ])
    expect((await open(tables).getTable('s', 'fixed'))!.properties).toEqual({
      format: 'csv',
      delimiter: ';',
      quote: "'",
      header: false,
      skip: 1,
      null_string: 'NA',
    })
  })

  it('can declare a numeric column as text, and a text column as a number', async () => {
    write('texts/a.csv', 'a,b\n1,2\n')
    expect(await types('texts', { 's.texts': { columns: { A: 'varchar' } } })).toBe('a varchar, b bigint')
    write('texts_of_json/a.json', '{"a": "1", "b": [1, "x"]}\n')
    const tables = { 's.texts_of_json': { columns: { a: 'bigint', b: 'json', c: 'double' } } }
    expect(await types('texts_of_json', tables)).toBe('a bigint, b json, c double')
  })

  it('make a read fail, with the line, at a value that does not fit its declared type exactly', async () => {
    write('wrong/a.csv', 'a,d\n1,1.25\n2,1.255\n')
    await expect(read('wrong', { 's.wrong': { columns: { d: 'decimal(10, 2)' } } })).rejects.toMatchObject({
      errorName: 'HIVE_BAD_DATA',
      message: expect.stringMatching(/Line 3: value "1\.255" in column 2 cannot be read as DECIMAL\(10,2\)/) as string,
    })
  })

  it.each([
    ['a table name without a schema', { fixed: {} }],
    ['a delimiter of two characters', { 's.t': { delimiter: '||' } }],
    ['a type that no file can have', { 's.t': { columns: { a: 'interval day to second' } } }],
    ['an unknown key', { 's.t': { separator: ',' } }],
  ])('stop the start if they contain %s', (_, tables) => {
    expect(() => open(tables)).toThrow(expect.objectContaining({ errorName: 'CONFIGURATION_INVALID' }))
  })
})

describe('The text files of a table', () => {
  let refused = 0
  it.each([
    ['zip', 'zip,n\n00501,1\n10001,2\n', 'zip varchar, n bigint'],
    ['plus', 'phone\n+4930123456\n', 'phone varchar'],
    ['exact', 'x,y\n0.1,12345678901234567.89\n1e3,1\n', 'x double, y varchar'],
    ['wide', 'n\n9223372036854775808\n1\n', 'n decimal(38, 0)'],
    [
      'times',
      'd,t,z\n2024-02-29,2024-01-05 10:00:00,2024-01-05T10:00:00Z\n',
      'd date, t timestamp(6), z timestamp(6) with time zone',
    ],
    ['nanoseconds', 't\n2024-01-05 10:00:00.123456789\n', 't varchar'],
    ['blank', 'a,b\n"",1\n"x",""\n', 'a varchar, b bigint'],
    ['index', ',a\n0,x\n1,y\n', 'column0 bigint, a varchar'],
    ['numbers', '1,2\n3,4\n', 'column0 bigint, column1 bigint'],
  ])('get column types that can represent every CSV value: %s', async (table, content, expected) => {
    write(`types_${table}/a.csv`, content)
    expect(await types(`types_${table}`)).toBe(expected)
  })

  it.each([
    ['a header with a line break behind a byte order mark', '\ufeff"a\nx",b\n1,2\n', {}],
    ['a header with an open quote behind a byte order mark', '\ufeff"a,"\n1\n2\n', {}],
    ['a title with text behind its quotes', '"Report" of 2024\na,b\n1,2\n', { skip: 1 }],
    ['a title with a quote that nothing closes', 'Report, "of 2024\na,b\n1,2\n', { skip: 1 }],
    ['a title with a line break in its quotes', '"Report\nof 2024"\na,b\n1,2\n', { skip: 1 }],
    ['a carriage return beside CRLF', 'a;b\r\n1;x\r\r\n2;y\r\n', {}],
    ['a carriage return before a single column', '\ra\r\n', {}],
  ])('are refused as CSV with %s, because the engine would lose rows', async (_, content, settings) => {
    const name = `refused_${++refused}`
    write(`${name}/a.csv`, content)
    await expect(read(name, { [`s.${name}`]: { format: 'csv', ...settings } })).rejects.toMatchObject({
      errorName: 'HIVE_BAD_DATA',
      message: expect.stringMatching(/Line \d/) as string,
    })
  })

  it('are read as CSV after a byte order mark and after a title', async () => {
    write('marked/a.csv', '\ufeff"a, in all","b"\n"1,5",2\n')
    expect(await read('marked')).toEqual([{ 'a, in all': '1,5', b: 2 }])
    write('titled/a.csv', 'Report "of" 2024\na,b\n1,2\n')
    expect(await read('titled', { 's.titled': { format: 'csv', skip: 1 } })).toEqual([{ a: 1, b: 2 }])
  })

  it('distinguish NULL from the empty text in CSV', async () => {
    write('empty_texts/a.csv', 'a,n\n"",1\n,""\n')
    expect(await read('empty_texts')).toEqual([
      { a: '', n: 1 },
      { a: null, n: null },
    ])
  })

  it('add no column if they are empty', async () => {
    write('one_empty/a.csv', 'a,b\n1,x\n')
    write('one_empty/b.csv', '')
    write('one_empty/c.csv', 'a,b\n')
    expect(await types('one_empty')).toBe('a bigint, b varchar')
    expect(await read('one_empty')).toEqual([{ a: 1, b: 'x' }])
  })

  it.each([
    ['short', 'a.csv', 'a,b\n1,2\n3\n', 3],
    ['long', 'a.csv', 'a,b\n1,2\n3,4,5\n', 3],
    ['open', 'a.csv', 'a,b\n1,"2\n3,4\n', 2],
    ['latin', 'a.csv', Buffer.from('a,b\n1,2\n3,\xe9\n', 'latin1'), 3],
    ['utf16', 'a.csv', Buffer.from('\ufeffa,b\n1,2\n', 'utf16le'), 1],
    ['late', 'a.csv', `a\n${'1\n'.repeat(21_000)}1.5\n`, 21_002],
    ['late_zeros', 'a.csv.gz', gzipSync(`a\n${'1\n'.repeat(21_000)}007\n`), 21_002],
    ['late_width', 'a.csv', `a,b\n${'1,2\n'.repeat(21_000)}1,2,3\n`, 21_002],
    ['cut', 'a.csv.gz', gzipSync(`a\n${'1\n'.repeat(60_000)}`).subarray(0, -30), undefined],
    ['late_key', 'a.json', `${'{"a":1}\n'.repeat(21_000)}{"a":1,"b":2}\n`, 21_001],
    ['late_field', 'a.json', `${'{"a":{"x":1}}\n'.repeat(21_000)}{"a":{"x":1,"y":2}}\n`, 21_001],
    ['late_fraction', 'a.json', `${'{"a":[1]}\n'.repeat(21_000)}{"a":[1.5]}\n`, 21_001],
    ['late_whole', 'a.json', `${'{"a":1}\n'.repeat(21_000)}{"a":9223372036854775808}\n`, 21_001],
    ['deep', 'a.json', `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}\n`, 1],
    ['twice', 'a.json', '{"a":1}\n{"a":1,"a":2}\n', 2],
    ['cut_off', 'a.json', '{"a":1}\n{"a":', 2],
  ])('are refused with file and line if they cannot be read: %s', async (name, file, content, line) => {
    write(`refused_${name}/${file}`, content)
    await expect(read(`refused_${name}`)).rejects.toMatchObject({
      errorName: 'HIVE_BAD_DATA',
      message: expect.stringContaining(line === undefined ? file : `Line ${line}`) as string,
    })
  })

  it('are refused if a value exceeds the size limit', async () => {
    write('large/a.csv', `a\n${'x'.repeat(2_000_001)}\n`)
    await expect(read('large')).rejects.toThrow(/Line 2: it is longer than 2000000 bytes/)
    write('large_json/a.json.gz', gzipSync(`{"a":"${'x'.repeat(17 * 1024 * 1024)}"}\n`))
    await expect(read('large_json')).rejects.toThrow(/Line 1: a value is larger than 16777216 bytes/)
  })

  it('have row types for JSON objects with many keys, and integers stay integers', async () => {
    const keys = Array.from({ length: 250 }, (_, i) => `"k${i}": ${i === 0 ? '12345678901234567890' : i}`)
    write('many_keys/a.json', `{"o": {${keys.join(', ')}}}\n`)
    expect(await types('many_keys')).toMatch(/^o row\("k0" decimal\(38, 0\), "k1" bigint, /)
    write('many_columns/a.json', `{${keys.join(', ')}}\n`)
    expect((await open().getTable('s', 'many_columns'))!.columns).toHaveLength(250)
  })

  it('are refused by name if they are link loops or pipes', async () => {
    write('links/a.csv', 'a\n1\n')
    symlinkSync('self.csv', join(root, 'lake/s/links/self.csv'))
    await expect(read('links')).rejects.toMatchObject({
      errorName: 'HIVE_BAD_DATA',
      message: `File 'self.csv' of table 's.links' is a link that leads to itself`,
    })
    write('pipes/a.csv', 'a\n1\n')
    execFileSync('mkfifo', [join(root, 'lake/s/pipes/p.csv')])
    await expect(read('pipes')).rejects.toMatchObject({
      errorName: 'HIVE_BAD_DATA',
      message: `File 'p.csv' of table 's.pipes' is a pipe or a device`,
    })
  })

  it('are refused if a manifest names them outside of its catalog', async () => {
    const columns = [{ name: 'a', source: 'a', duckdbType: 'BIGINT' }]
    const file = { file: '../secret/s.csv', size: 4, mtime: '1', footer: '' }
    const adopted = { format: 'csv', shapesDiffer: false, columns, files: [file] }
    const content = {
      kind: 'table',
      id: 'adopted',
      columns: [{ name: 'a', type: 'bigint', nullable: true, duckdbType: 'BIGINT' }],
      files: [],
      adopted,
    }
    write('forged/_manifest/v00000001.json', JSON.stringify({ format: 1, version: 1, time: 0, committed: [], content }))
    await expect(read('forged')).rejects.toMatchObject({
      errorName: 'HIVE_BAD_DATA',
      message: 'Manifest s/forged/_manifest/v00000001.json cannot be read',
    })
  })
})
