import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fileFault, pathsOf, unknownFileFault } from '../../../src/execution/engine/file-faults.ts'
import { csvPart } from '../../support/text-parts.ts'

const folder = mkdtempSync(join(tmpdir(), 'quipu-faults-'))
const roots = [`${folder}/`]
let duckdb: DuckDBConnection
let good: Buffer

beforeAll(async () => {
  duckdb = await (await DuckDBInstance.create(':memory:')).connect()
  const rows = `SELECT range AS k, 'text ' || range AS s FROM range(3000)`
  await duckdb.run(`COPY (${rows}) TO '${at('good.parquet')}' (COMPRESSION snappy)`)
  good = readFileSync(at('good.parquet'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const at = (file: string): string => `${folder}/${file}`

/** Lets DuckDB fail to read a file, and returns the fault that `fileFault` makes from its message. */
async function faultOf(file: string, bytes: Buffer | undefined, read = 'read_parquet', others: string[] = []) {
  if (bytes) writeFileSync(at(file), bytes)
  const text = await duckdb.run(`SELECT count(COLUMNS(*)) FROM ${read}`.replace('$', `'${at(file)}'`)).then(
    () => expect.unreachable(`${file} can be read`),
    (error: Error) => error.message,
  )
  const fault = fileFault(text, { paths: [at(file), ...others], roots, exists: () => false })
  return fault && [fault.errorName, fault.errorCode, fault.errorType, fault.message]
}

function damaged(from: number, to: number, value: number): Buffer {
  return Buffer.from(good).fill(value, from, to)
}

const PARQUET = 'read_parquet($)'

it.each([
  ['csv.parquet', () => Buffer.from('a,b\n1,2\n3,4\n'), PARQUET, 'It does not end as Parquet files do'],
  ['half.parquet', () => good.subarray(0, good.length / 2), PARQUET, 'It does not end as Parquet files do'],
  ['empty.parquet', () => Buffer.alloc(0), PARQUET, 'It is too small'],
  [
    'length.parquet',
    () => damaged(good.length - 8, good.length - 5, 0xff),
    PARQUET,
    'Its footer has no length that is possible',
  ],
  [
    'footer.parquet',
    () => damaged(good.length - 60, good.length - 8, 0xff),
    PARQUET,
    'Its metadata cannot be read as that of Parquet',
  ],
  [
    'cut.json',
    () => Buffer.from('{"k":1}\n{"k":'),
    `read_json($, columns={'k':'BIGINT'}, format='newline_delimited')`,
    'Line 2: It is not valid JSON',
  ],
  [
    'word.csv',
    () => Buffer.from('k\n1\nword\n'),
    `read_csv($, columns={'k':'BIGINT'}, auto_detect=false, header=true)`,
    'Line 3 cannot be read as a row of the table',
  ],
  [
    'type.json',
    () => Buffer.from('{"k":1}\n{"k":"word"}\n'),
    `read_json($, columns={'k':'BIGINT'}, format='newline_delimited')`,
    'Line 2: A value in it has not the type of its column',
  ],
  [
    'plain.csv.gz',
    () => Buffer.from('k\n1\n2 and more text\n'),
    `read_csv($)`,
    'It is not compressed as its name says',
  ],
  [
    'far.parquet',
    () => readFileSync(join(import.meta.dirname, '../../fixtures/milliseconds-beyond-timestamps.parquet')),
    PARQUET,
    'A timestamp in it is beyond what can be read',
  ],
  [
    'cases.json',
    () => Buffer.from('{"s":{"x":1,"X":2}}\n'),
    'read_json($)',
    'Names in an object of it differ only in case',
  ],
])('`fileFault` reports %s as bad data, with its path inside the catalog', async (file, bytes, read, wrong) => {
  const expected = ['HIVE_BAD_DATA', 0x0100_0007, 'EXTERNAL', `Malformed file. ${wrong} [${file}]`]
  expect(await faultOf(file, bytes(), read)).toEqual(expected)
})

it('`fileFault` reports a file as bad data if its types differ from another file of the table', async () => {
  await duckdb.run(`COPY (SELECT 'x' AS k, 's' AS s) TO '${at('other.parquet')}'`)
  const read = `read_parquet(['${at('good.parquet')}', $])`
  expect(await faultOf('other.parquet', undefined, read)).toMatchObject({
    0: 'HIVE_BAD_DATA',
    3: 'Malformed file. A value in it has not the type of its column [other.parquet]',
  })
})

it('`fileFault` reports data that cannot be decoded as bad data, wherever the page is damaged', async () => {
  const found = new Set<string>()
  for (let from = 10; from < 200; from += 7) {
    writeFileSync(at('page.parquet'), damaged(from, from + 40, 0xa5))
    const text = await duckdb.run(`SELECT max(k), max(s) FROM read_parquet('${at('page.parquet')}')`).then(
      () => undefined,
      (error: Error) => error.message,
    )
    if (text === undefined) continue
    const fault = fileFault(text, { paths: [at('page.parquet')], roots, exists: () => true })
    expect([text, fault?.errorName]).toEqual([text, 'HIVE_BAD_DATA'])
    found.add(fault!.message)
  }
  expect(found.size).toBeGreaterThan(0)
})

it('`fileFault` reports a missing file as a split that cannot be opened, and ignores a file that exists', async () => {
  expect(await faultOf('gone.parquet', undefined, PARQUET)).toEqual([
    'HIVE_CANNOT_OPEN_SPLIT',
    0x0100_0003,
    'EXTERNAL',
    'Error opening split gone.parquet: It does not exist',
  ])
  const text = `IO Error: No files found that match the pattern "${at('shut/f.parquet')}"`
  expect(fileFault(text, { paths: [at('shut/f.parquet')], roots, exists: () => true })).toBeUndefined()
})

it('`fileFault` reports pages that cannot be inflated as bad data', async () => {
  await duckdb.run(`COPY (SELECT 'text ' || range AS s FROM range(3000)) TO '${at('gzip.parquet')}' (COMPRESSION gzip)`)
  const bytes = readFileSync(at('gzip.parquet')).fill(0xff, 45, 600)
  expect(await faultOf('inflate.parquet', bytes, '(SELECT sum(length(s)) FROM read_parquet($))')).toMatchObject({
    0: 'HIVE_BAD_DATA',
    3: 'Malformed file. Its data cannot be decoded [inflate.parquet]',
  })
})

it('`fileFault` gives no file name for broken metadata if the statement read several files', async () => {
  const footer = damaged(good.length - 60, good.length - 8, 0xff)
  expect(await faultOf('footer.parquet', footer, PARQUET, [at('good.parquet')])).toMatchObject({
    0: 'HIVE_BAD_DATA',
    3: 'Malformed file. Its metadata cannot be read as that of Parquet [one of 2 files of the catalog]',
  })
})

it('`fileFault` ignores its message patterns inside values, and names only files that were read', () => {
  const files = { paths: ['/elsewhere/a.parquet', '/lake/s/t/a.parquet'], roots: ['/lake/'], exists: () => false }
  const magic = (path: string): string => `Invalid Input Error: No magic bytes found at end of file '${path}'`
  for (const text of [
    `Conversion Error: Could not convert string '${magic('/lake/s/t/a.parquet')}' to INT64`,
    magic('/lake/s/t/b.parquet'),
    magic('/lake/s/t/a.parquet.parquet'),
    '',
  ])
    expect(fileFault(text, files)).toBeUndefined()
  const longer = { ...files, paths: ['/lake/s/t/a', '/lake/s/t/a.csv.gz'] }
  expect(fileFault('IO Error: Input is not a GZIP stream: /lake/s/t/a.csv.gz', longer)?.message).toContain('a.csv.gz]')
  expect(fileFault(magic('/lake/s/t/a.parquet'), files)?.message).toContain('[s/t/a.parquet]')
  expect(fileFault(magic('/elsewhere/a.parquet'), files)?.message).toContain('[a.parquet]')
})

it('`pathsOf` returns the files of scans and of questions', () => {
  const range = { path: '/l/a', firstRow: 0, rows: 1, fileRows: 1 }
  const query = {
    sql: '',
    row: { kind: 'text' },
    scans: [
      [{ kind: 'parquet', ranges: [range, { ...range, path: '/l/b' }], columns: [] }],
      [csvPart('/l/c', []), { kind: 'empty', columns: [] }],
    ],
  } as const
  const output = { kind: 'inline', maxBytes: 1 } as const
  expect(pathsOf({ kind: 'rows', query, output, cachePrepared: false, profile: false })).toEqual([
    '/l/a',
    '/l/b',
    '/l/c',
  ])
  expect(pathsOf({ kind: 'files', question: { kind: 'footers', paths: ['/l/d'] } })).toEqual(['/l/d'])
})

it.each(['bss_i32', 'bss_dec'])(
  '`fileFault` reports an encoding that DuckDB cannot read as not supported (%s)',
  async (table) => {
    const bytes = readFileSync(join(import.meta.dirname, `../../fixtures/files-people-have/bugs/${table}/a.parquet`))
    const what = 'a column is in the encoding BYTE_STREAM_SPLIT and neither real nor double'
    expect(await faultOf(`${table}.parquet`, bytes, '(SELECT sum(i) FROM read_parquet($))')).toMatchObject({
      0: 'NOT_SUPPORTED',
      3: `The engine cannot read this file: ${what} [${table}.parquet]`,
    })
  },
)

it('`unknownFileFault` names the files read for an unknown message, unless a function may have raised it', () => {
  const files = { paths: [at('s/t/a.parquet')], roots, exists: () => true }
  const reported = (text: string, isQuestion = false, read = files): unknown => {
    const fault = unknownFileFault(text, read, isQuestion)
    return fault && [fault.errorName, fault.message]
  }
  const message = 'The engine cannot read this file [s/t/a.parquet]'
  expect(reported('Invalid Error: some new words')).toEqual(['HIVE_CURSOR_ERROR', message])
  expect(reported('Not implemented Error: some new kind of page')).toEqual(['NOT_SUPPORTED', message])
  expect(reported(`Invalid Input Error: odd data in ${at('s/t/a.parquet')}`)).toEqual(['HIVE_CURSOR_ERROR', message])
  expect(reported('Binder Error: no function')).toBeUndefined()
  expect(reported('Binder Error: no function', true)).toEqual(['HIVE_CURSOR_ERROR', message])
  expect(reported('Invalid Error: some new words', false, { ...files, paths: [] })).toBeUndefined()
  const two = { ...files, paths: [at('s/t/a.parquet'), at('s/t/b.parquet')] }
  expect(reported('Invalid Error: some new words', false, two)).toEqual([
    'HIVE_CURSOR_ERROR',
    'The engine cannot read this file [one of 2 files of s/t/]',
  ])
})
