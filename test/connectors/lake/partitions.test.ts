import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { filesThatMayHold } from '../../../src/connectors/lake/partition-pruning.ts'
import { createMetadataPort } from '../../../src/coordinator/dispatch/catalog-metadata.ts'
import { lakeConnector } from '../../../src/connectors/lake/lake-connector.ts'
import type { Connector } from '../../../src/connectors/spi/connector.ts'
import type { ScanPredicate } from '../../../src/connectors/spi/scan-predicate.ts'
import { scanText } from '../../../src/execution/engine/scan-text.ts'
import { openEngineConnection } from '../../support/duckdb-in-process.ts'
import { openDuckDb, type Rows } from '../../support/duckdb.ts'
import { analyze } from '../../support/front-end.ts'
import { inspectedBy, queryFiles } from '../../support/inspected-files.ts'
import { FULL_TESTS } from '../../support/full-tests.ts'
import { connectorContext } from '../../support/connector-context.ts'

/* Tables with files in folders `key=value`, as Hive, Spark and others write them. */

const root = realpathSync(mkdtempSync(join(tmpdir(), 'quipu-partitions-')))
const lake = join(root, 'lake')
mkdirSync(lake)
afterAll(() => rmSync(root, { recursive: true }))
const duckdb = await openDuckDb()

function open(tables: Readonly<Record<string, unknown>> = {}): Connector {
  return lakeConnector.create(
    'lake',
    { connector: 'lake', location: lake, tables },
    connectorContext(root, inspectedBy(duckdb)),
  )
}

async function parquet(path: string, select: string): Promise<void> {
  const file = join(lake, 's', path)
  mkdirSync(dirname(file), { recursive: true })
  await duckdb.run(`COPY (${select}) TO '${file.replaceAll("'", "''")}' (FORMAT parquet)`)
}

function text(path: string, content: string): void {
  const file = join(lake, 's', path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
}

interface Reading {
  readonly tables?: Readonly<Record<string, unknown>>
  readonly columns?: readonly string[]
  readonly partitions?: ScanPredicate
}

async function read(table: string, { tables, columns, partitions }: Reading = {}): Promise<Rows> {
  const connector = open(tables)
  const found = (await connector.getTable('s', table))!
  const names = columns ?? found.columns.map(({ name }) => name)
  const splits = await connector.listSplits(found.handle, undefined, undefined, names, partitions)
  const source = scanText(await connector.tableSource(splits, names))
  const rows = await queryFiles(duckdb, source, `FROM (${source}) ORDER BY ALL`)
  await connector.verifySplits(splits)
  return rows
}

async function described(table: string, tables: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const { columns } = (await open(tables).getTable('s', table))!
  return columns.map(({ name, type, partitionKey }) => `${name} ${type}${partitionKey ? ' *' : ''}`).join(', ')
}

describe('A partitioned table with folders key=value', () => {
  it('has the keys as columns after the columns of its Parquet files', async () => {
    await parquet('sales/year=2024/month=01/x.parquet', `SELECT 1 AS a`)
    await parquet('sales/year=2024/month=12/x.parquet', `SELECT 2 AS a`)
    await parquet('sales/year=2023/month=02/x.parquet', `SELECT 3 AS a UNION ALL SELECT 4`)
    expect(await described('sales')).toBe('a integer, year bigint *, month bigint *')
    expect(await read('sales')).toEqual([
      { a: 1, year: 2024, month: 1 },
      { a: 2, year: 2024, month: 12 },
      { a: 3, year: 2023, month: 2 },
      { a: 4, year: 2023, month: 2 },
    ])
    expect(await read('sales', { columns: [] })).toHaveLength(4)
    expect(await read('sales', { columns: ['month'] })).toEqual([1, 2, 2, 12].map((month) => ({ month })))
    const { properties } = (await open().getTable('s', 'sales'))!
    expect(properties).toEqual({ partitioned_by: ['year', 'month'] })
    expect((await open().listTables('s')).map(({ table }) => table)).toContain('sales')
  })

  it('can have CSV or JSON files', async () => {
    text('csv/day=2024-01-31/a.csv', 'id,name\n1,x\n')
    text('csv/day=2024-02-01/a.csv', 'id,name\n2,y\n')
    text('json/at=2024-01-31 10%3A00%3A00/a.json', '{"id": 1}\n')
    text('json/at=2024-02-01 10%3A00%3A00.5/a.json', '{"id": 2, "more": true}\n')
    expect(await described('csv')).toBe('id bigint, name varchar, day date *')
    expect(await read('csv')).toEqual([
      { id: 1, name: 'x', day: '2024-01-31' },
      { id: 2, name: 'y', day: '2024-02-01' },
    ])
    expect(await described('json')).toBe('id bigint, more boolean, at timestamp(6) *')
    expect(await read('json')).toEqual([
      { id: 1, more: null, at: '2024-01-31 10:00:00' },
      { id: 2, more: true, at: '2024-02-01 10:00:00.5' },
    ])
  })

  it.each([
    ['bigint', ['1', '-5', '9223372036854775807']],
    ['bigint', ['01', '1', '12']],
    ['varchar', ['00501', '12345']],
    ['varchar', ['9223372036854775808']],
    ['varchar', ['1', 'x']],
    ['varchar', ['1.5']],
    ['varchar', ['-0']],
    ['varchar', ['true']],
    ['date', ['2024-02-29', '__HIVE_DEFAULT_PARTITION__']],
    ['varchar', ['2023-02-29']],
    ['varchar', ['2024-01-01', '2024-01-01 10:00:00']],
    ['varchar', ['__HIVE_DEFAULT_PARTITION__']],
    ['varchar', ['1', '']],
  ])('has a key of type %s for the values %j', async (type, values) => {
    const table = `types_${Buffer.from(values.join(' ')).toString('hex')}`
    for (const value of values) await parquet(`${table}/k=${value}/x.parquet`, `SELECT 1 AS a`)
    expect(await described(table)).toBe(`a integer, k ${type} *`)
    expect(await read(table)).toHaveLength(values.length)
  })

  it('keeps every text of a key value, and NULL', async () => {
    const values: Readonly<Record<string, string | null>> = {
      "it's": "it's",
      'a=b=c': 'a=b=c',
      'a%2Fb%3Ac %20': 'a/b:c  ',
      '100%': '100%',
      '%zz': '%zz',
      '%C3%BCñ🎉': 'üñ🎉',
      '{x} $1 ? -- *': '{x} $1 ? -- *',
      "');DROP TABLE x;--": "');DROP TABLE x;--",
      '%0A%0D%09': '\n\r\t',
      '..': '..',
      NULL: 'NULL',
      __HIVE_DEFAULT_PARTITION__: null,
      '': '',
      ['x'.repeat(240)]: 'x'.repeat(240),
    }
    for (const folder of Object.keys(values)) await parquet(`texts/K%20ey=${folder}/x.parquet`, `SELECT 1 AS a`)
    expect(await described('texts')).toBe('a integer, k ey varchar *')
    const rows = await read('texts', { columns: ['k ey'] })
    const sorted = (list: readonly unknown[]) => list.map((one) => JSON.stringify(one)).sort()
    expect(sorted(rows.map((row) => row['k ey']))).toEqual(sorted(Object.values(values)))
  })

  it('hides a column of the files with the name of a key', async () => {
    await parquet('hidden/Year=2024/x.parquet', `SELECT 1 AS a, 1999 AS "YEAR"`)
    await parquet('only/year=2024/x.parquet', `SELECT 1999 AS year FROM range(3)`)
    text('hidden_json/year=2024/x.json', '{"a": 1, "year": {"x": "y"}}\n')
    text('hidden_csv/year=2024/x.csv', 'a,year\n1,1999\n')
    for (const table of ['hidden', 'hidden_json', 'hidden_csv'])
      expect(await read(table)).toEqual([{ a: 1, year: 2024 }])
    expect(await read('only')).toEqual([{ year: 2024 }, { year: 2024 }, { year: 2024 }])
  })

  it('uses the types of keys that the catalog file declares', async () => {
    await parquet('fixed/zip=00501/ok=true/x.parquet', `SELECT 1 AS a`)
    await parquet('fixed/zip=12345/ok=false/x.parquet', `SELECT 2 AS a`)
    const declared = (columns: Readonly<Record<string, string>>) => ({ 's.fixed': { columns } })
    expect(await read('fixed', { tables: declared({ zip: 'integer', OK: 'boolean' }) })).toEqual([
      { a: 1, zip: 501, ok: true },
      { a: 2, zip: 12_345, ok: false },
    ])
    await expect(read('fixed', { tables: declared({ ok: 'date' }) })).rejects.toMatchObject({
      errorName: 'HIVE_BAD_DATA',
      message: "Folder 'zip=00501/ok=true' of table 's.fixed' has a value of 'ok' that is not a valid date",
    })
    text('named/year=2024/x.csv', '1,x\n')
    const tables = { 's.named': { header: false, columns: { id: 'bigint', name: 'varchar', year: 'varchar' } } }
    expect(await read('named', { tables })).toEqual([{ id: 1, name: 'x', year: '2024' }])
  })

  it.each([
    [
      'files beside folders',
      ['t/a.parquet', 't/year=2024/a.parquet'],
      "Table 's.t' has files in folders of different partition keys: none in its own folder, and 'year' in 'year=2024'",
    ],
    [
      'other keys',
      ['t/year=2023/a.parquet', 't/month=1/a.parquet'],
      "Table 's.t' has files in folders of different partition keys: 'month' in 'month=1', and 'year' in 'year=2023'",
    ],
    [
      'another order',
      ['t/a=1/b=1/a.parquet', 't/b=2/a=2/a.parquet'],
      "Table 's.t' has files in folders of different partition keys: 'a', 'b' in 'a=1/b=1', and 'b', 'a' in 'b=2/a=2'",
    ],
    ['one key twice', ['t/a=1/A=2/a.parquet'], "Table 's.t' has the folder 'a=1/A=2', which names the key 'a' twice"],
    ['no key', ['t/=1/a.parquet'], "Table 's.t' has the folder '=1' of a partition without a key"],
    [
      'no UTF-8',
      ['t/a=%ff/a.parquet'],
      "Table 's.t' has the folder 'a=%ff' of a partition whose text is not valid: %XX must be UTF-8 without %00",
    ],
    [
      'U+0000',
      ['t/a=%00/a.parquet'],
      "Table 's.t' has the folder 'a=%00' of a partition whose text is not valid: %XX must be UTF-8 without %00",
    ],
  ])('is refused with HIVE_BAD_DATA and the name of the folder: %s', async (_, paths, message) => {
    rmSync(join(lake, 's', 't'), { recursive: true, force: true })
    for (const path of paths) await parquet(path, `SELECT 1 AS a`)
    await expect(open().getTable('s', 't')).rejects.toMatchObject({ errorName: 'HIVE_BAD_DATA', message })
  })

  it('is refused if a folder with files is not a partition', async () => {
    await parquet('nested/a.parquet', `SELECT 1 AS a`)
    await parquet('nested/old/more/b.parquet', `SELECT 1 AS a`)
    const what = (folder: string) => `has files in the folder '${folder}', which is none of a partition (key=value)`
    await expect(open().getTable('s', 'nested')).rejects.toMatchObject({
      errorName: 'NOT_SUPPORTED',
      message: `Table 's.nested' ${what('old')}`,
    })
    await parquet('inner/k=1/part/b.parquet', `SELECT 1 AS a`)
    await expect(open().getTable('s', 'inner')).rejects.toMatchObject({
      message: `Table 's.inner' ${what('k=1/part')}`,
    })
  })

  it('ignores folders without data and names that begin with _ or a dot, but not keys that begin so', async () => {
    await parquet('hush/_year=2024/a.parquet', `SELECT 1 AS a`)
    await parquet('hush/_temporary/b.parquet', `SELECT 2 AS a`)
    await parquet('hush/_year=2024/.tmp/b.parquet', `SELECT 3 AS a`)
    mkdirSync(join(lake, 's', 'hush', 'empty', 'more'), { recursive: true })
    mkdirSync(join(lake, 's', 'hush', 'other=1'), { recursive: true })
    symlinkSync('..', join(lake, 's', 'hush', 'empty', 'back'))
    expect(await read('hush').catch((error: unknown) => error)).toMatchObject({ errorName: 'NOT_SUPPORTED' })
    rmSync(join(lake, 's', 'hush', 'empty', 'back'))
    expect(await read('hush')).toEqual([{ a: 1, _year: 2024 }])
  })

  it('follows links to folders inside the location, and refuses link loops and links to the outside', async () => {
    await parquet('links/k=1/a.parquet', `SELECT 1 AS a`)
    symlinkSync('k=1', join(lake, 's', 'links', 'k=2'))
    expect(await read('links')).toEqual([
      { a: 1, k: 1 },
      { a: 1, k: 2 },
    ])
    symlinkSync('..', join(lake, 's', 'links', 'k=1', 'j=1'))
    await expect(open().getTable('s', 'links')).rejects.toMatchObject({ errorName: 'HIVE_BAD_DATA' })
    rmSync(join(lake, 's', 'links', 'k=1', 'j=1'))
    mkdirSync(join(root, 'outside'))
    symlinkSync(join(root, 'outside'), join(lake, 's', 'links', 'k=3'))
    await expect(open().getTable('s', 'links')).rejects.toMatchObject({
      errorName: 'PERMISSION_DENIED',
      message: "Folder 'k=3' of table 's.links': A link in the catalog leads out of its location",
    })
  })

  it('has row counts and column statistics of its keys', async () => {
    await parquet('stats/day=2024-01-01/n=01/a.parquet', `SELECT i AS a FROM range(3) t(i)`)
    await parquet('stats/day=2024-01-03/n=1/a.parquet', `SELECT i AS a FROM range(2) t(i)`)
    await parquet('stats/day=2030-01-01/n=9/a.parquet', `SELECT 1 AS a WHERE false`)
    await parquet('stats/day=__HIVE_DEFAULT_PARTITION__/n=7/a.parquet', `SELECT 1 AS a`)
    const connector = open()
    const { handle } = (await connector.getTable('s', 'stats'))!
    expect(await connector.getStatistics(handle)).toMatchObject({ rows: 6 })
    expect(await connector.getColumnStatistics!(handle)).toMatchObject({
      day: { nulls: 1, distinct: 2, low: 19_723, high: 19_725 },
      n: { nulls: 0, distinct: 2, low: 1, high: 7 },
    })
  })

  it('keeps all rows if its files differ in their columns', async () => {
    await parquet('differ/k=1/a.parquet', `SELECT 1 AS a`)
    await parquet('differ/k=2/a.parquet', `SELECT 2::BIGINT AS a, 'x' AS b`)
    await parquet('differ/k=2/b.parquet', `SELECT 3 AS a`)
    expect(await read('differ')).toEqual([
      { a: 1, b: null, k: 1 },
      { a: 2, b: 'x', k: 2 },
      { a: 3, b: null, k: 2 },
    ])
  })

  it('is read by one reader if it has many partitions, and each row has the values of its partition', async () => {
    for (let i = 0; i < 40; i++) {
      const folder = `k=${i === 7 ? '__HIVE_DEFAULT_PARTITION__' : i}/t=${i % 3}'`
      await parquet(`crowd/${folder}/a.parquet`, `SELECT ${i} AS a, 'x' AS partition0, 'y' AS "v", 'z' AS f`)
      await parquet(`numbered/${folder}/a.parquet`, `SELECT ${i} AS a, 5 AS "FILE_index"`)
    }
    const expected = Array.from({ length: 40 }, (_, i) => ({ a: i, k: i === 7 ? null : i, t: `${i % 3}'` }))
    expect(await read('crowd', { columns: ['a', 'k', 't'] })).toEqual(expected)
    expect(await read('numbered', { columns: ['a', 'k', 't'] })).toEqual(expected)
    expect(await read('crowd', { columns: ['k'] })).toHaveLength(40)
    expect((await read('crowd', { columns: ['partition0', 'v', 'f', 't'] }))[0]).toEqual({ partition0: 'x', v: 'y', f: 'z', t: "0'" }) // prettier-ignore
    const connector = open()
    const { handle } = (await connector.getTable('s', 'crowd'))!
    const source = scanText(await connector.tableSource(await connector.listSplits(handle), ['a', 'k']))
    expect(source.split('read_parquet').length - 1).toBe(1)
  })

  it('has no rows if no partition matches the predicate', async () => {
    await parquet('none/k=1/a.parquet', `SELECT TIMESTAMP_NS '2024-01-01 00:00:00' AS t, {'x': 1} AS r`)
    expect(await read('none', { partitions: { column: 'k', compare: '>', value: '1' } })).toEqual([])
    expect(await read('none', { partitions: { column: 'k', compare: '=', value: '1' } })).toHaveLength(1)
  })
})

describe('The pruning of partitions', () => {
  const table = 'pruned'
  const texts = ['a', 'B', 'ü', '🎉', '\uE000', "it's", 'a%', '__HIVE_DEFAULT_PARTITION__']
  const days = ['2023-12-31', '2024-01-01', '2024-02-29', '1969-12-31', '__HIVE_DEFAULT_PARTITION__']
  const times = ['2024-01-01 00:00:00', '2024-01-01 00:00:00.000001', '1969-12-31 23:59:59.5']
  const numbers = ['01', '1', '-3', '12', '9223372036854775807', '__HIVE_DEFAULT_PARTITION__']
  const tables = { 's.pruned': { columns: { small: 'smallint' } } }

  const literals = {
    t: fc.constantFrom("'a'", "'b'", "'B'", "'ü'", "'🎉'", "'\uE000'", "'it''s'", "''", 'NULL'),
    d: fc.constantFrom("DATE '2024-01-01'", "DATE '2023-12-31'", "DATE '1969-12-31'", "DATE '2024-01-08' - INTERVAL '7' DAY", 'current_date', 'NULL'), // prettier-ignore
    ts: fc.constantFrom("TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '2024-01-01 00:00:00.000001'", "TIMESTAMP '2024-01-01 00:00:00.0000001'", "TIMESTAMP '1969-12-31 23:59:59.500'", "DATE '2024-01-01'", 'NULL'), // prettier-ignore
    n: fc.constantFrom('1', '-3', '12', '9223372036854775807', '1.0', '1.5', '1e0', 'NULL', "SMALLINT '12'"),
    small: fc.constantFrom('1', '12', '99999', "BIGINT '12'", '1.5', 'NULL'),
  } as const
  const atoms = fc.constantFrom(...(Object.keys(literals) as (keyof typeof literals)[])).chain((column) => {
    const literal = literals[column]
    return fc.oneof(
      fc
        .tuple(fc.constantFrom('=', '<>', '<', '<=', '>', '>=', 'IS DISTINCT FROM'), literal, fc.boolean())
        .map(([operator, value, turned]) =>
          turned ? `${value} ${operator} ${column}` : `${column} ${operator} ${value}`,
        ),
      fc.tuple(literal, literal).map(([low, high]) => `${column} BETWEEN ${low} AND ${high}`),
      fc
        .tuple(fc.array(literal, { minLength: 1, maxLength: 3 }), fc.boolean())
        .map(([list, not]) => `${column} ${not ? 'NOT ' : ''}IN (${list.join(', ')})`),
      fc.boolean().map((not) => `${column} IS ${not ? 'NOT ' : ''}NULL`),
      fc.constantFrom(`t LIKE '_'`, `t LIKE 'a!%' ESCAPE '!'`, `t NOT LIKE '%a%'`, `coalesce(t, 'a') = 'a'`, `v > 3`),
    )
  })
  const { predicate } = fc.letrec<{ predicate: string }>((tie) => ({
    predicate: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      atoms,
      fc
        .tuple(fc.constantFrom('AND', 'OR'), fc.array(tie('predicate'), { minLength: 2, maxLength: 3 }))
        .map(([operator, list]) => `(${list.join(` ${operator} `)})`),
      tie('predicate').map((one) => `NOT (${one})`),
    ),
  }))

  async function prepare(): Promise<void> {
    let v = 0
    const all = Math.max(texts.length, days.length, times.length, numbers.length)
    for (let i = 0; i < 3 * all; i++) {
      const pick = (list: readonly string[], step: number): string => list[(i * step + (i >> 2)) % list.length]!
      const small = pick(['1', '12', '-7', '__HIVE_DEFAULT_PARTITION__'], 1)
      const folders = [`t=${encodeURIComponent(pick(texts, 1))}`, `d=${pick(days, 3)}`, `ts=${pick(times, 1).replaceAll(':', '%3A')}`, `n=${pick(numbers, 5)}`, `small=${small}`] // prettier-ignore
      await parquet(`${table}/${folders.join('/')}/x.parquet`, `SELECT ${v++} AS v`)
    }
  }

  it('never loses a row under random conditions', async () => {
    await prepare()
    const engine = await openEngineConnection()
    onTestFinished(() => engine.close())
    expect(await described(table, tables)).toBe(
      'v integer, t varchar *, d date *, ts timestamp(6) *, n bigint *, small smallint *',
    )
    const connector = open(tables)
    const catalogs = { names: () => ['lake'], get: (name: string) => (name === 'lake' ? connector : undefined) }
    const metadata = createMetadataPort(catalogs)
    let spared = 0
    await fc.assert(
      fc.asyncProperty(predicate, async (condition) => {
        const analyzed = await analyze(`SELECT v FROM lake.s.${table} WHERE ${condition}`, metadata)
        if (analyzed.kind !== 'query') throw new Error(analyzed.kind)
        const [scan] = analyzed.query.scans
        if (!scan) return
        const rowsOf = async (partitions: ScanPredicate | undefined): Promise<unknown> => {
          const splits = await connector.listSplits(scan.handle, undefined, undefined, scan.columns, partitions)
          if (partitions) spared += 24 - splits.length
          const source = scanText(await connector.tableSource(splits, scan.columns))
          const sql = `WITH "$s0" AS (${source}) FROM (${analyzed.query.sql}) ORDER BY ALL`
          return (await engine.connection.runAndReadAll(sql)).getRowsJson()
        }
        expect(await rowsOf(scan.partitions)).toEqual(await rowsOf(undefined))
      }),
      { numRuns: FULL_TESTS ? 3000 : 150 },
    )
    expect(spared).toBeGreaterThan(100)
  })

  it.each([
    ["d >= DATE '2024-01-01' AND d < DATE '2025-01-01'", true],
    ['n IN (1, 12) OR n IS NULL', true],
    ["(t = 'a' AND n > 3) OR (t = 'B' AND d IS NULL)", true],
    ["d = current_date - INTERVAL '1' DAY", true],
    ["ts < TIMESTAMP '2024-01-01 00:00:00'", true],
    ['n + 1 = 2', false],
    ["t = 'a' OR v = 1", false],
  ])('skips partitions for the condition %s: %s', async (condition, expected) => {
    const connector = open(tables)
    const catalogs = { names: () => ['lake'], get: () => connector }
    const analyzed = await analyze(
      `SELECT v FROM (SELECT * FROM lake.s.${table}) x WHERE ${condition}`,
      createMetadataPort(catalogs),
    )
    const scan = analyzed.kind === 'query' ? analyzed.query.scans[0]! : undefined
    const splits = await connector.listSplits(scan!.handle, undefined, undefined, scan!.columns, scan!.partitions)
    expect(splits.length < 24).toBe(expected)
  })

  it('is omitted if terms times folders exceed a limit, so that it does not block the event loop', () => {
    const keys = [{ name: 'p', duckdbType: 'VARCHAR', type: 'varchar' }]
    const values = Array.from({ length: 3_000 }, (_, index) => [`v${index}`])
    const kept = (terms: number): number => {
      const any = Array.from({ length: terms }, () => ({ column: 'p', compare: '=', value: 'v7' }) as const)
      const mayHold = filesThatMayHold({ keys, values }, { any })
      return values.filter((_, file) => mayHold(file)).length
    }
    expect(kept(100)).toBe(1)
    expect(kept(200)).toBe(3_000)
  })
})
