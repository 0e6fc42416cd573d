import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { lakeConnector } from '../../../src/connectors/lake/lake-connector.ts'
import { scanText } from '../../../src/execution/engine/scan-text.ts'
import { EngineError } from '../../../src/shared/engine-error.ts'
import { openDuckDb } from '../../support/duckdb.ts'
import { inspectedBy, queryFiles } from '../../support/inspected-files.ts'
import { FULL_TESTS } from '../../support/full-tests.ts'
import { connectorContext } from '../../support/connector-context.ts'

/*
 * Random CSV and JSON files are read through the lake. Either all values are the written ones, or the read fails with
 * HIVE_BAD_DATA.
 */

const root = realpathSync(mkdtempSync(join(tmpdir(), 'quipu-texts-')))
afterAll(() => rmSync(root, { recursive: true }))
const duckdb = await openDuckDb()
const RUNS = FULL_TESTS ? 3000 : 150
/** More lines than the inspection of a file reads to find the types. */
const MANY = 20_500

let files = 0

interface Read {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rows: readonly (readonly unknown[])[]
}

/** @returns undefined if the read fails with an error about the files */
async function readTable(contents: readonly Buffer[], extension: string): Promise<Read | undefined> {
  const folder = join(root, 'lake', 's', `t${++files}`)
  mkdirSync(folder, { recursive: true })
  for (const [index, content] of contents.entries()) writeFileSync(join(folder, `${index}.${extension}`), content)
  const connector = lakeConnector.create(
    'lake',
    { connector: 'lake', location: join(root, 'lake') },
    connectorContext(root, inspectedBy(duckdb)),
  )
  try {
    const table = (await connector.getTable('s', `t${files}`))!
    const names = table.columns.map(({ name }) => name)
    if (names.length === 0) return undefined
    const splits = await connector.listSplits(table.handle)
    const source = scanText(await connector.tableSource(splits, names))
    const [rows] = await Promise.all([
      queryFiles(duckdb, source, `SELECT ${names.map(printed).join(', ')} FROM (${source})`),
      connector.verifySplits(splits),
    ])
    return { columns: table.columns, rows: rows.map((row) => names.map((name) => row[name])) }
  } catch (error) {
    // An engine reports DuckDB's own errors about lines in the same way.
    if (error instanceof EngineError && error.errorName === 'HIVE_BAD_DATA') return undefined
    if (error instanceof EngineError && error.errorName === 'AMBIGUOUS_NAME') return undefined
    throw error
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function printed(name: string): string {
  const quoted = `"${name.replaceAll('"', '""')}"`
  return `CAST(${quoted} AS VARCHAR) AS ${quoted}`
}

/** Returns whether the value that was read equals the text in the file. */
function isSame(type: string, text: string | null, value: unknown): boolean {
  if (text === null) return value === null
  if (typeof value !== 'string') return text === '' && type !== 'varchar' && value === null
  switch (type) {
    case 'double':
      return Object.is(Number(text.replace(/inf$/i, 'Infinity')), Number(value.replace(/inf$/i, 'Infinity')))
    case 'boolean':
      return text.toLowerCase() === value
    case 'timestamp(6)':
    case 'time(6)':
      return moment(text) === moment(value)
    case 'timestamp(6) with time zone':
      return (
        Date.parse(text.replace(' ', 'T').replace(/([+-]\d\d)(\d\d)?$/, (_, h, m) => `${h}:${m ?? '00'}`)) ===
        instant(value)
      )
    default:
      return text === value
  }
}

function moment(text: string): string {
  return text
    .replace('T', ' ')
    .replace(/(:\d\d:\d\d)$/, '$1.')
    .replace(/(\.\d*?)0*$/, '$1')
    .replace(/^(.*\d\d:\d\d)$/, (t) => (/:\d\d:\d\d/.test(t) ? t : `${t}:00.`))
}

/** Parses the struct that represents a timestamp with time zone. */
function instant(value: string): number {
  return Date.parse(`${/'t': '?([^',}]*)/.exec(value)![1]!.replace(' ', 'T')}Z`)
}

const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ maxLength: 8 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 6 }).filter((s) => Buffer.from(s).toString() === s) },
  fc.string({ unit: fc.constantFrom('"', ',', ';', '\t', '|', '\n', '\r', '\\', ' ', 'a', "'"), maxLength: 6 }),
)
const number = fc.oneof(
  fc.integer().map(String),
  fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.stringMatching(/^-?[0-9]{1,22}(\.[0-9]{1,22})?$/),
  fc.stringMatching(/^-?[0-9]{0,3}\.?[0-9]{0,3}(e[+-]?[0-9]{1,3})?$/).filter((s) => s !== ''),
)
const odd = fc.constantFrom(
  '00501', '1.5', '+5', '1_000', ' 7', '7 ', 'true', 'FALSE', 'TRUE', 't', 'yes', 'NaN', 'nan', 'inf', 'NULL', 'null', '2024-02-29',
  '2023-02-29', '2024-01-05', '01/02/2024', '2024-1-5', '10:00:00', '25:00:00', '10:00:00.123456', '10:00:00.1234567',
  '2024-01-05 10:00:00', '2024-01-05T10:00:00.5', '2024-01-05 10:00', '2024-01-05T10:00:00.123456789', '2024-01-05T10:00:00Z',
  '2024-01-05 10:00:00+02:00', '2024-01-05 10:00:00+0230', '-0', '0', '0x10', '1e400', '1e-400', '9223372036854775807', '9223372036854775808', '-9223372036854775808',
  '9007199254740993', '0.1', '0.10000000000000001', '90071992547409.93', '6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'Infinity', '-inf', '0000-01-01', '-', '.', '5.', '.5',
) // prettier-ignore
const ofKind = fc.constantFrom<fc.Arbitrary<string>>(text, number, odd, fc.oneof(number, odd), fc.oneof(text, odd))

interface CsvFile {
  readonly delimiter: string
  readonly rows: readonly (readonly (string | null)[])[]
  readonly content: Buffer
}

const csvFile: fc.Arbitrary<CsvFile> = fc
  .record({
    delimiter: fc.constantFrom(',', ';', '\t', '|'),
    columns: fc.array(ofKind, { minLength: 1, maxLength: 4 }),
    lineEnd: fc.constantFrom(['\n'], ['\r\n'], ['\r'], ['\n', '\r\n']),
    quoting: fc.constantFrom('always', 'needed'),
    bom: fc.boolean(),
    lastEnd: fc.boolean(),
    late: fc.constantFrom(false, false, false, false, false, false, false, false, false, true),
  })
  .chain(({ columns, ...rest }) =>
    fc
      .record({
        rows: fc.array(fc.tuple(...columns.map((one) => fc.option(one, { freq: 5, nil: null }))), { maxLength: 12 }),
        first: fc.tuple(...columns.map((one) => one)),
      })
      .map(({ rows, first }) => ({
        ...rest,
        rows: rest.late ? [...Array<typeof first>(MANY).fill(first), ...rows] : rows,
      })),
  )
  .map(({ delimiter, rows, lineEnd, quoting, bom, lastEnd }) => {
    const width = rows[0]?.length ?? 1
    const header = Array.from({ length: width }, (_, i) => `name_${String.fromCharCode(97 + i)}`)
    const field = (value: string | null): string => {
      if (value === null) return ''
      const plain = quoting === 'needed' && value !== '' && !/[",;\t|\r\n]/.test(value) && value.trim() === value
      return plain ? value : `"${value.replaceAll('"', '""')}"`
    }
    const lines = [header, ...rows].map((row) => row.map(field).join(delimiter))
    const joined = lines.map(
      (line, i) => line + (i === lines.length - 1 && !lastEnd && width > 1 ? '' : lineEnd[i % lineEnd.length]!),
    )
    return { delimiter, rows, content: Buffer.from((bom ? '\ufeff' : '') + joined.join('')) }
  })

function sortedRows(rows: readonly (readonly unknown[])[]): readonly (readonly unknown[])[] {
  return rows.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}

/** Pairs every row with an equal row, because DuckDB returns rows in any order. */
function areSame(
  types: readonly string[],
  wanted: readonly (readonly (string | null)[])[],
  rows: readonly (readonly unknown[])[],
): boolean {
  if (wanted.length !== rows.length) return false
  const same = (a: readonly (string | null)[], b: readonly unknown[]): boolean =>
    a.every((value, column) => isSame(types[column]!, value, b[column]))
  if (wanted.every((row, index) => same(row, rows[index]!))) return true
  const left = [...rows]
  return wanted.every((row) => {
    const index = left.findIndex((one) => same(row, one))
    if (index >= 0) left.splice(index, 1)
    return index >= 0
  })
}

describe('The lake', () => {
  it('reads CSV files exactly, or refuses them', async () => {
    let read = 0
    await fc.assert(
      fc.asyncProperty(csvFile, async ({ rows, content, delimiter }) => {
        const found = await readTable([content], 'csv')
        if (!found) return
        read++
        const width = rows[0]?.length ?? 1
        // An empty line is a row if the table has one column.
        const wanted = width > 1 ? rows : rows.map((row) => row)
        expect(found.columns.length, delimiter).toBe(width)
        if (
          !areSame(
            found.columns.map(({ type }) => type),
            wanted,
            found.rows,
          )
        )
          expect({ types: found.columns, rows: sortedRows(found.rows) }).toEqual({ wanted: sortedRows(wanted) })
      }),
      { numRuns: RUNS },
    )
    expect(read).toBeGreaterThan(RUNS / 3)
  })

  it('reads damaged CSV files as a strict parser does, or refuses them', async () => {
    const damage = fc.record({
      at: fc.nat(),
      remove: fc.nat({ max: 2 }),
      insert: fc.constantFrom('', '"', ',', '\n', '\r', ' ', '\\', 'x', '""', ',,', '\0', '\xff'),
    })
    await fc.assert(
      fc.asyncProperty(
        csvFile.filter(({ rows }) => rows.length < 100),
        damage,
        async ({ content, delimiter }, { at, remove, insert }) => {
          const index = content.length === 0 ? 0 : at % content.length
          const damaged = Buffer.concat([
            content.subarray(0, index),
            Buffer.from(insert, 'latin1'),
            content.subarray(index + remove),
          ])
          const found = await readTable([damaged], 'csv')
          if (!found) return
          const wanted = [delimiter, ',', ';', '\t', '|']
            .flatMap((one) => [strictRows(damaged.toString(), one, '"'), strictRows(damaged.toString(), one, '\\')])
            .filter((rows) => rows !== undefined)
          const width = found.columns.length
          const types = found.columns.map(({ type }) => type)
          const same = wanted.some(
            (rows) =>
              rows.every((row) => row.length === width) &&
              (areSame(types, rows.slice(1), found.rows) || areSame(types, rows, found.rows)),
          )
          if (!same) expect({ text: damaged.toString(), types, rows: found.rows }).toEqual({ wanted })
        },
      ),
      { numRuns: RUNS },
    )
  })

  const json: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 2 },
      fc.constantFrom(null, true, false),
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }),
      fc.string({ unit: 'grapheme', maxLength: 5 }),
      odd,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('x', 'y', 'z', 'a b'), tie('value'), { maxKeys: 3, noNullPrototype: true }),
    ),
  })).value
  const jsonColumn = fc.constantFrom<fc.Arbitrary<unknown>>(
    fc.integer(),
    fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true })),
    odd,
    fc.oneof(fc.integer(), fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n })),
    fc.array(fc.oneof(fc.integer(), fc.constant(1.5))),
    json,
  )

  it('reads JSON files exactly, or refuses them', async () => {
    const file = fc
      .record({
        columns: fc.array(jsonColumn, { minLength: 1, maxLength: 3 }),
        layout: fc.constantFrom('lines', 'array', 'pretty'),
        late: fc.constantFrom(false, false, false, false, false, false, false, false, true),
        gzip: fc.boolean(),
      })
      .chain(({ columns, ...rest }) =>
        fc
          .array(fc.tuple(...columns.map((one) => fc.option(one, { freq: 5, nil: undefined }))), {
            minLength: 1,
            maxLength: 8,
          })
          .map((rows) => ({ ...rest, rows: rest.late ? [...Array<unknown[]>(MANY).fill(rows[0]!), ...rows] : rows })),
      )
    let read = 0
    await fc.assert(
      fc.asyncProperty(file, async ({ rows, layout, gzip }) => {
        const records = rows.map((row) =>
          Object.fromEntries(row.flatMap((value, i) => (value === undefined ? [] : [[`k${i}`, value]]))),
        )
        const texts = records.map((record) => jsonText(record, layout === 'pretty' ? 1 : 0))
        const content = Buffer.from(
          layout === 'array' ? `[\n${texts.join(',\n')}\n]\n` : texts.map((one) => `${one}\n`).join(''),
        )
        const found = await readTable([gzip ? gzipSync(content) : content], gzip ? 'json.gz' : 'json')
        if (!found) return
        read++
        expect(found.rows.length).toBe(rows.length)
        for (const [index, { name, type }] of found.columns.entries()) {
          const column = Number(name.slice(1))
          const wanted = rows.map((row) => canonical(row[column]))
          const values = found.rows.map((row) => row[index])
          // Nested values have fields by position: this compares only that no value is lost.
          if (/^(array|row|map)/.test(type))
            expect(values.filter((value) => value === null).length).toBe(
              wanted.filter((value) => value === null).length,
            )
          else if (
            !areSame(
              [type],
              wanted.map((value) => [shownAs(type, value)]),
              values.map((value) => [type === 'json' && typeof value === 'string' ? plainJson(value) : value]),
            )
          )
            expect({ type, values }).toEqual({ wanted })
        }
      }),
      { numRuns: RUNS },
    )
    expect(read).toBeGreaterThan(RUNS / 3)
  })
})

/**
 * Parses a text by RFC 4180, with NULL for empty fields; returns undefined if the text is invalid. Spaces before and
 * after quotes are not part of a value.
 */
function strictRows(whole: string, delimiter: string, escape: '"' | '\\'): (string | null)[][] | undefined {
  const quotedField = escape === '"' ? /^ *"((?:[^"]|"")*)" */ : /^ *"((?:[^"\\]|\\["\\])*)" */
  const content = whole.replace(/^\ufeff/, '')
  const rows: (string | null)[][] = []
  let at = 0
  while (at < content.length) {
    const row: (string | null)[] = []
    for (;;) {
      const quoted = quotedField.exec(content.slice(at))
      let value: string | null
      if (quoted) {
        value = quoted[1]!.replaceAll(escape === '"' ? /"(")/g : /\\(.)/g, '$1')
        at += quoted[0].length
      } else {
        const end = content.slice(at).search(new RegExp(`[\\r\\n${delimiter === '|' ? '\\|' : delimiter}]`))
        const plain = end === -1 ? content.slice(at) : content.slice(at, at + end)
        value = plain === '' ? null : plain
        at += plain.length
      }
      row.push(value)
      if (content[at] !== delimiter) break
      at++
    }
    if (at < content.length) {
      if (content.startsWith('\r\n', at)) at += 2
      else if (content[at] === '\r' || content[at] === '\n') at++
      else return undefined
    }
    rows.push(row)
  }
  const width = rows.find((row) => row.length > 1)?.length ?? 1
  if (width > 1) return rows.filter((row) => row.length > 1 || row[0] !== null)
  // Empty lines before the first text are not rows.
  return rows.slice(
    Math.max(
      0,
      rows.findIndex((row) => row[0] !== null),
    ),
  )
}

function jsonText(value: unknown, indent: number): string {
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return `[${value.map((one) => jsonText(one, indent)).join(',')}]`
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? '-0.0' : JSON.stringify(value)
  const gap = indent > 0 ? '\n' : ''
  return `{${gap}${Object.entries(value)
    .map(([key, one]) => `${JSON.stringify(key)}:${jsonText(one, indent)}`)
    .join(`,${gap}`)}${gap}}`
}

/** Returns the JSON text of a value, with unchanged integers. */
function canonical(value: unknown): string | null {
  return value === undefined || value === null ? null : jsonText(value, 0)
}

/** Normalizes JSON: integers stay as they are written, other numbers are printed as doubles. */
function plainJson(text: string): string {
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g, (token) => {
    if (token.startsWith('"')) return JSON.stringify(JSON.parse(token))
    return /^-?\d+$/.test(token) ? token : String(Number(token))
  })
}

/** Converts the JSON text of a value to the text that a column of the type prints. */
function shownAs(type: string, json: string | null): string | null {
  if (json !== null && type === 'json') return plainJson(json)
  if (json === null || !json.startsWith('"')) return json
  return JSON.parse(json) as string
}
