import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lakeConnector } from '../../../src/connectors/lake/lake-connector.ts'
import type { Connector, ConnectorContext } from '../../../src/connectors/spi/connector.ts'
import { connectorContract } from '../../contract/connector.contract.ts'
import { connectorContext } from '../../support/connector-context.ts'
import { openDuckDb } from '../../support/duckdb.ts'
import { scanText } from '../../../src/execution/engine/scan-text.ts'
import { inspectedBy } from '../../support/inspected-files.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), "quipu lake's ü-")))
const location = join(root, 'lake')
const outside = join(root, 'outside')
afterAll(() => rmSync(root, { recursive: true }))

const duckdb = await openDuckDb()
/** Writes a file of a table; the path may contain any characters. */
async function write(path: string, select: string, options = 'FORMAT parquet'): Promise<void> {
  mkdirSync(join(path, '..'), { recursive: true })
  await duckdb.run(`COPY (${select}) TO '${path.replaceAll("'", "''")}' (${options})`)
}
function open(folder = location): Connector {
  return opened(folder, inspectedBy(duckdb))
}
function opened(folder: string, inspect: ConnectorContext['inspect']): Connector {
  return lakeConnector.create(
    'lake',
    { connector: 'lake', location: folder },
    { ...connectorContext(root, inspect), tablesDir: join(root, 'tables') },
  )
}
async function read(table: string, columns?: readonly string[], schema = 'sales'): Promise<unknown> {
  const connector = open()
  const found = (await connector.getTable(schema, table))!
  const names = columns ?? found.columns.map(({ name }) => name)
  return duckdb.query(
    `FROM (${scanText(await connector.tableSource(await connector.listSplits(found.handle), names))}) ORDER BY ALL`,
  )
}

const many = `SELECT i AS Id, 'row ' || i AS name, i % 7 AS grp FROM range(50000) t(i)`

beforeAll(async () => {
  await write(`${location}/Sales/many/a 'b' ü.parquet`, many, 'FORMAT parquet, ROW_GROUP_SIZE 2048')
  await write(
    `${location}/Sales/many/second.parquet`,
    `SELECT i + 50000 AS Id, 'x' AS name, 0::BIGINT AS grp FROM range(3) t(i)`,
  )
})

const truth = () =>
  `SELECT Id AS id, name, grp FROM read_parquet('${location.replaceAll("'", "''")}/Sales/many/*.parquet')`
connectorContract('lake of Parquet', async () => ({
  connector: open(),
  schema: 'sales',
  table: 'many',
  knowsColumns: true,
  truth: truth(),
}))
connectorContract('lake of CSV', async () => {
  await write(`${location}/Sales/text/1.csv`, `FROM range(100) t(n)`, 'FORMAT csv')
  await write(`${location}/Sales/text/2.csv`, `SELECT n, 'é, "q"' AS note FROM range(3) t(n)`, 'FORMAT csv')
  const path = location.replaceAll("'", "''")
  return {
    connector: open(),
    schema: 'sales',
    table: 'text',
    truth: `FROM read_csv(['${path}/Sales/text/1.csv', '${path}/Sales/text/2.csv'], union_by_name=true)`,
  }
})

describe('The lake connector', () => {
  it('reads the rows and compressed bytes of a table from the footers', async () => {
    const connector = open()
    const { handle } = (await connector.getTable('sales', 'many'))!
    const path = `${location.replaceAll("'", "''")}/Sales/many/*.parquet`
    const [metadata] = await duckdb.query(
      `SELECT sum(total_compressed_size)::INT AS bytes FROM parquet_metadata('${path}')`,
    )
    expect(await connector.getStatistics(handle)).toEqual({ rows: 50_003, bytes: metadata!.bytes })
  })

  it('combines the column statistics of the footers of all files', async () => {
    await write(
      `${location}/Sales/kinds/1.parquet`,
      `SELECT if(i > 1, i::INTEGER, NULL) AS "Some", (i / 4)::DOUBLE AS x, if(i = 3, 'nan'::DOUBLE, i::DOUBLE) AS odd,
        DATE '1969-12-30' + i::INT AS day, (i - 2)::DECIMAL(38, 3) AS d, 'v' || i AS v, [i] AS list, {'some': i} AS s,
        NULL::INTEGER AS no, i AS "list, list, element" FROM range(5) t(i)`,
    )
    await write(`${location}/Sales/kinds/2.parquet`, `SELECT 9::INTEGER AS some, 7::DOUBLE AS x FROM range(2)`)
    await write(`${location}/Sales/kinds/3.parquet`, `SELECT 9::INTEGER AS some, 7::DOUBLE AS x WHERE false`)
    const connector = open()
    const { handle } = (await connector.getTable('sales', 'kinds'))!
    expect(await connector.getStatistics(handle)).toMatchObject({ rows: 7 })
    const known = await connector.getColumnStatistics!(handle)
    const withoutBytes = Object.entries(known).map(([name, { storedBytes, ...rest }]) => {
      expect([name, storedBytes === undefined || storedBytes > 0]).toEqual([name, true])
      return [name, rest]
    })
    expect(Object.fromEntries(withoutBytes)).toEqual({
      some: { nulls: 2, low: 2, high: 9 },
      x: { nulls: 0, low: 0, high: 7 },
      odd: { nulls: 2 },
      day: { nulls: 2, low: -2, high: 2 },
      d: { nulls: 2, low: -2, high: 2 },
      v: { nulls: 2 },
      no: { nulls: 7 },
    })
  })

  it('reports the number of distinct values only if it is certain', async () => {
    const rows = (from: number): string =>
      `SELECT i % 5 AS k, (i % 5)::VARCHAR AS s, i % 2 * 3 AS gap, DATE '2020-01-01' + (i % 3)::INT AS day, (i % 3)::DOUBLE AS zero, (i % 3 + 1)::DOUBLE AS x,
        uuid()::VARCHAR AS u, 'ab'::BLOB AS b FROM range(${from}, ${from + 200}) t(i)`
    const distinctOf = async (table: string): Promise<unknown> => {
      const connector = open()
      const { handle } = (await connector.getTable('sales', table))!
      const known = await connector.getColumnStatistics!(handle)
      return Object.fromEntries(Object.entries(known).map(([name, { distinct }]) => [name, distinct]))
    }
    await write(`${location}/Sales/one_group/1.parquet`, rows(0))
    expect(await distinctOf('one_group')).toEqual({ k: 5, s: 5, gap: 2, day: 3, x: 3, b: 1 })
    await write(`${location}/Sales/two_files/1.parquet`, rows(0))
    await write(`${location}/Sales/two_files/2.parquet`, rows(1000))
    expect(await distinctOf('two_files')).toEqual({ k: 5, day: 3 })
  })

  it('reports no statistics that the footers do not prove', async () => {
    const knownOf = async (table: string): Promise<unknown> => {
      const connector = open()
      const { handle } = (await connector.getTable('sales', table))!
      const known = await connector.getColumnStatistics!(handle)
      return Object.fromEntries(Object.entries(known).map(([name, { storedBytes: _, ...rest }]) => [name, rest]))
    }
    const odd = `${location}/Sales/odd`
    // Infinite dates and numbers, a dictionary with unused values, and one JSON value in several spellings.
    await write(
      `${odd}/1.parquet`,
      `SELECT DATE 'infinity' + i::INT * 0 AS day, if(i = 1, 'infinity'::DOUBLE, i::DOUBLE) AS x, 'infinity' AS s,
        'a'::ENUM('b', 'a') AS member, ('{"a":' || repeat(' ', (i % 3)::INT) || '1}')::JSON AS j FROM range(300) t(i)`,
    )
    expect(await knownOf('odd')).toEqual({
      day: { nulls: 0 },
      x: { nulls: 0, low: 0 },
      s: { nulls: 0, distinct: 1 },
      member: { nulls: 0 },
      j: { nulls: 0 },
    })

    // Different bounds that are the same double.
    await write(`${location}/Sales/near/1.parquet`, 'SELECT 1152921504606846976::BIGINT AS b')
    await write(`${location}/Sales/near/2.parquet`, 'SELECT 1152921504606846977::BIGINT AS b')
    expect(await knownOf('near')).toEqual({ b: { nulls: 0, low: 2 ** 60, high: 2 ** 60 } })

    // A column and a field of another column that have the same name in footers.
    await write(`${location}/Sales/parts/1.parquet`, "SELECT {'x': i} AS s FROM range(5) t(i)")
    await write(`${location}/Sales/parts/2.parquet`, 'SELECT if(i < 3, i, NULL) AS "s, x" FROM range(5) t(i)')
    expect(await knownOf('parts')).toEqual({})

    // Two columns whose names differ only in case, which DuckDB itself cannot write.
    const cases = `${location}/Sales/cases/1.parquet`
    await write(cases, 'SELECT 1 AS column_a, 2 AS column_b')
    writeFileSync(cases, readFileSync(cases, 'latin1').replaceAll('column_b', 'COLUMN_A'), 'latin1')
    expect(await knownOf('cases')).toEqual({ column_a: {}, column_a_1: {} })
    expect(await read('cases')).toEqual([{ column_a: 1, column_a_1: 2 }])
  })

  it('handles columns with the names of built-in object properties', async () => {
    await write(`${location}/Sales/born/1.parquet`, 'SELECT 1 AS constructor, 2 AS "__proto__", 3 AS a')
    const connector = open()
    const [split] = await connector.listSplits((await connector.getTable('sales', 'born'))!.handle)
    const named = Object.entries(split!.columnBytes!).map(([name, bytes]) => [name, typeof bytes])
    expect(named.toSorted()).toEqual([['__proto__', 'number'], ['a', 'number'], ['constructor', 'number']]) // prettier-ignore
  })

  it('maps types, with the fields of nested types by position', async () => {
    await write(
      `${location}/Sales/types/t.parquet`,
      `SELECT true AS b, 1::UBIGINT AS ub, 1.5::FLOAT AS r, 1.25::DECIMAL(9,2) AS d, 'x' AS v, 'ab'::BLOB AS bin,
        DATE '2020-01-02' AS day, TIMESTAMP '2020-01-02 03:04:05.678' AS ts, TIMESTAMPTZ '2020-01-02 03:04:05+02' AS tz,
        TIMESTAMP_NS '1969-12-31 23:59:59.123456789' AS ns, [1, 2] AS l, {'a b': 1, 'C': [{'x': 1::UTINYINT}]} AS s,
        MAP {'k': 1::UINTEGER} AS m, INTERVAL 1 DAY AS iv, 'a'::ENUM('a', 'b') AS e`,
    )
    const { columns } = (await open().getTable('sales', 'types'))!
    expect(columns.map(({ name, type }) => `${name} ${type}`)).toEqual([
      'b boolean',
      'ub decimal(20, 0)',
      'r real',
      'd decimal(9, 2)',
      'v varchar',
      'bin varbinary',
      'day date',
      'ts timestamp(6)',
      'tz timestamp(6) with time zone',
      'ns timestamp(9)',
      'l array(integer)',
      's row("a b" integer, "c" array(row("x" smallint)))',
      'm map(varchar, bigint)',
      'iv varchar',
      'e varchar',
    ])
    expect(await read('types', ['tz', 'ns', 's', 'm'])).toEqual([
      {
        tz: { t: '2020-01-02 01:04:05', z: 'UTC' },
        ns: { t: '1969-12-31 23:59:59.123456', p: 789000 },
        s: { f0: 1, f1: [{ f0: 1 }] },
        m: { k: 1 },
      },
    ])
  })

  it('reads files with different columns by column name', async () => {
    await write(`${location}/Sales/grown/1.parquet`, `SELECT 1::INTEGER AS a, 'x' AS b`)
    await write(`${location}/Sales/grown/2.parquet`, `SELECT 2.5::DOUBLE AS a, DATE '2020-01-01' AS c`)
    expect(await read('grown')).toEqual([
      { a: 1, b: 'x', c: null },
      { a: 2.5, b: null, c: '2020-01-01' },
    ])
  })

  it('reads files without rows, alone and beside other files', async () => {
    await write(`${location}/Sales/hollow/1.parquet`, `SELECT 1::INTEGER AS a WHERE false`)
    expect(await read('hollow')).toEqual([])
    await write(`${location}/Sales/hollow/2.parquet`, `SELECT 2.5::DOUBLE AS b`)
    expect(await read('hollow')).toEqual([{ a: null, b: 2.5 }])
  })

  it('reads only the named file if a path contains pattern characters', async () => {
    const folder = `${location}/Sales/patterns [x]=1/`
    const names = ['[ab]', '*', '?', 'a', 'b', '[!a]', '{a,b}', 'a]', '[]', '**', '[', 'a=7']
    for (const [index, name] of names.entries()) {
      await write(`${folder}${name}.parquet`, `SELECT ${index} AS n, 0 AS a`)
      await write(`${location}/Sales/csv [x]=1/${name}.csv`, `SELECT ${index} AS n, 0 AS a`, 'FORMAT csv')
      mkdirSync(`${location}/Sales/json [x]=1`, { recursive: true })
      writeFileSync(`${location}/Sales/json [x]=1/${name}.json`, `{"n": ${index}, "a": 0}\n`)
    }
    for (const format of ['patterns', 'csv', 'json']) {
      const rows = (await read(`${format} [x]=1`)) as readonly Readonly<Record<string, unknown>>[]
      expect(rows.map((row) => ({ n: Number(row['n']), a: Number(row['a']) }))).toEqual(
        names.map((_, n) => ({ n, a: 0 })),
      )
      expect(Object.keys(rows[0]!)).toEqual(['n', 'a'])
    }
    await write(`${location}/Sales/backslash/a\\[b].parquet`, 'SELECT 1 AS n')
    await expect(open().getTable('sales', 'backslash')).rejects.toMatchObject({
      errorName: 'NOT_SUPPORTED',
      message: expect.stringContaining(`File 'a\\[b].parquet' of table 'sales.backslash' cannot be read`),
    })
    await write(`${location}/Sales/plain backslash/a\\b.parquet`, 'SELECT 1 AS n')
    expect(await read('plain backslash')).toEqual([{ n: 1 }])
  })

  it('makes no column from the folder name of a table or of a schema', async () => {
    await write(`${location}/Sales/a=x/1.parquet`, 'SELECT 1 AS a, 2 AS b')
    expect(await read('a=x')).toEqual([{ a: 1, b: 2 }])
    await write(`${location}/year=2024/months/1.csv`, 'SELECT 1 AS month', 'FORMAT csv')
    expect(await read('months', undefined, 'year=2024')).toEqual([{ month: 1 }])
  })

  it('reads columns with any name', async () => {
    const columns = ['a, b', 'a', 'a.b', '"', '$e', 'filename', 'file_index', `'`, 'x, list, element'].map(
      (name, n) => `${n} AS "${name.replaceAll('"', '""')}"`,
    )
    const list = `${columns.join(', ')}, {'x, y': [9, 10], 'z': 11} AS "s, t", map {'k': 12} AS m`
    const expected = [
      { 'a, b': 0, a: 1, 'a.b': 2, '"': 3, $e: 4, filename: 5, file_index: 6, "'": 7, 'x, list, element': 8 },
    ].map((row) => ({ ...row, 's, t': { f0: [9, 10], f1: 11 }, m: { k: 12 } }))
    await write(`${location}/Sales/names/1.parquet`, `SELECT ${list}`)
    expect(await read('names')).toEqual(expected)
    const connector = open()
    const [split] = await connector.listSplits((await connector.getTable('sales', 'names'))!.handle)
    expect(Object.keys(split!.columnBytes!)).toEqual(Object.keys(expected[0]!))
    const { handle } = (await connector.getTable('sales', 'names'))!
    const [reported] = await connector.listSplits(handle, undefined, undefined, ['$e', 'a'])
    expect(reported!.data).toMatchObject({ columns: [{ name: 'a' }, { name: '$e' }] })
    // The files have different columns: each file is read by its own.
    await write(`${location}/Sales/names/2.parquet`, 'SELECT 20 AS "a, b"')
    const rows = (await read('names')) as readonly unknown[]
    expect(rows).toHaveLength(2)
    expect(rows[0]).toEqual(expected[0])
    expect(rows[1]).toMatchObject({ 'a, b': 20, a: null })
  })

  it('refuses JSON column names that are empty or contain NUL, and reads objects with such keys as maps', async () => {
    mkdirSync(`${location}/Sales/nul`, { recursive: true })
    writeFileSync(
      `${location}/Sales/nul/1.json`,
      String.raw`{"a": 1, "d": {"e\u0000": 3, "f": 4}, "g": {"h": 6}}` + '\n',
    )
    expect(await read('nul')).toEqual([{ a: 1, d: { 'e\0': '3', f: '4' }, g: { f0: 6 } }])
    for (const [index, name] of ['b\\u0000c', ''].entries()) {
      mkdirSync(`${location}/Sales/nul_${index}`, { recursive: true })
      writeFileSync(`${location}/Sales/nul_${index}/1.json`, `{"a": 1, "${name}": 2}\n`)
      await expect(read(`nul_${index}`)).rejects.toMatchObject({ errorName: 'HIVE_BAD_DATA' })
    }
  })

  it('reads large files with a column named file_row_number, as DuckDB’s own row number', async () => {
    const select = 'SELECT -i AS file_row_number, sha256(i::VARCHAR) AS text FROM range(500000) t(i)'
    await write(`${location}/Sales/numbered/1.parquet`, select, 'FORMAT parquet, ROW_GROUP_SIZE 20480')
    const connector = open()
    const { handle } = (await connector.getTable('sales', 'numbered'))!
    const splits = await connector.listSplits(handle)
    expect(splits[0]!.bytes).toBeGreaterThan(16 * 2 ** 20)
    const sources = await Promise.all(splits.map((split) => connector.tableSource([split], ['file_row_number'])))
    const sums = await Promise.all(
      sources.map((source) => duckdb.query(`SELECT sum(file_row_number)::BIGINT AS s FROM (${scanText(source)})`)),
    )
    expect(sums.flat().reduce((sum, { s }) => sum + Number(s), 0)).toBe((-499_999 * 500_000) / 2)
  })

  it('reads JSON lines', async () => {
    mkdirSync(join(location, 'Sales/events'), { recursive: true })
    writeFileSync(join(location, 'Sales/events/e.jsonl'), '{"id": 1, "tags": ["a"]}\n{"id": 2}\n')
    expect(await read('events')).toEqual([
      { id: 1, tags: ['a'] },
      { id: 2, tags: null },
    ])
  })

  it('refuses names that differ only in case', async () => {
    await write(`${location}/Sales/Twice/a.parquet`, 'SELECT 1 AS a')
    await write(`${location}/Sales/twice/a.parquet`, 'SELECT 1 AS a')
    await expect(open().getTable('sales', 'twice')).rejects.toMatchObject({
      errorName: 'AMBIGUOUS_NAME',
      retry: 'later',
    })
    const tables = await open().listTables('sales')
    expect(tables.map(({ table }) => table)).not.toContain('twice')
    rmSync(join(location, 'Sales/Twice'), { recursive: true })
  })

  it('refuses several formats in one table', async () => {
    await write(`${location}/Sales/mixed/a.parquet`, 'SELECT 1 AS a')
    await write(`${location}/Sales/mixed/b.csv`, 'SELECT 1 AS a', 'FORMAT csv')
    await expect(open().getTable('sales', 'mixed')).rejects.toMatchObject({
      errorName: 'NOT_SUPPORTED',
      retry: 'never',
    })
  })

  it('inspects a file again if the engine could not read it, because it may have been incomplete', async () => {
    mkdirSync(join(location, 'Sales/half'), { recursive: true })
    const file = join(location, 'Sales/half/a.parquet')
    writeFileSync(file, 'PAR1 and no more')
    const connector = open()
    await expect(connector.getTable('sales', 'half')).rejects.toMatchObject({ retry: 'later' })
    await write(file, 'SELECT 1 AS a')
    expect(await connector.getTable('sales', 'half')).toMatchObject({ columns: [{ name: 'a' }] })
  })

  it.each(['file', 'table', 'schema'])(
    'refuses a link in place of a %s if it leads out of the location',
    async (what) => {
      await write(`${outside}/s/t/secret.parquet`, 'SELECT 42 AS secret')
      mkdirSync(join(location, 'links', 'own'), { recursive: true })
      const link = {
        file: join(location, 'links/own/a.parquet'),
        table: join(location, 'links/linked'),
        schema: join(location, 'linkedschema'),
      }[what]!
      symlinkSync(
        { file: `${outside}/s/t/secret.parquet`, table: `${outside}/s/t`, schema: `${outside}/s` }[what]!,
        link,
      )
      const [schema, table] = { file: ['links', 'own'], table: ['links', 'linked'], schema: ['linkedschema', 't'] }[
        what
      ]!
      await expect(open().getTable(schema!, table!)).rejects.toMatchObject({
        errorName: 'PERMISSION_DENIED',
        retry: 'later',
      })
      rmSync(link)
    },
  )

  it('follows links that stay inside the location', async () => {
    mkdirSync(join(location, 'Sales/alias'), { recursive: true })
    symlinkSync(join(location, 'Sales/many/second.parquet'), join(location, 'Sales/alias/l.parquet'))
    expect(await read('alias', ['id'])).toEqual([{ id: 50000 }, { id: 50001 }, { id: 50002 }])
  })

  it('lists and describes linked tables only if they are inside the location', async () => {
    await write(`${outside}/s/t/secret.parquet`, 'SELECT 42 AS secret')
    mkdirSync(join(location, 'some_linked'), { recursive: true })
    symlinkSync(join(location, 'Sales/many'), join(location, 'some_linked/inside'))
    symlinkSync(`${outside}/s/t`, join(location, 'some_linked/out'))
    await write(`${location}/some_linked/plain/1.parquet`, 'SELECT 1 AS a')
    const connector = open()
    const listed = (await connector.listTables('some_linked')).map(({ table }) => table)
    const described: string[] = []
    await connector.describeTables!(
      'some_linked',
      () => true,
      ({ table }) => void described.push(table),
    )
    expect([listed, described]).toEqual([['inside', 'plain'], ['inside', 'plain']]) // prettier-ignore
  })

  it('refuses splits of a file that was changed, replaced or removed', async () => {
    const path = join(location, 'Sales/changing/a.parquet')
    const refused = { errorName: 'TRANSACTION_CONFLICT' }
    await write(path, 'SELECT 1 AS a')
    const connector = open()
    const { handle } = (await connector.getTable('sales', 'changing'))!
    const splits = await connector.listSplits(handle)
    await connector.verifySplits(splits)

    // Same size and time, but different content: the footer differs.
    await write(`${path}.new`, 'SELECT 2 AS a')
    const { mtime } = splits[0]!.data as { mtime: string }
    const seconds = Number(BigInt(mtime) / 1000n) / 1e6
    renameSync(`${path}.new`, path)
    utimesSync(path, seconds, seconds)
    await expect(connector.verifySplits(splits)).rejects.toMatchObject(refused)
    // The connector no longer knows the files of a handle that was copied from the record.
    await expect(connector.listSplits({ ...handle })).rejects.toMatchObject(refused)
    expect(await connector.listSplits(handle)).toEqual(splits)

    rmSync(path)
    await expect(connector.verifySplits(splits)).rejects.toMatchObject(refused)
    symlinkSync(path, path)
    await expect(connector.verifySplits(splits)).rejects.toMatchObject(refused)
    rmSync(dirname(path), { recursive: true })
    writeFileSync(dirname(path), '')
    await expect(connector.verifySplits(splits)).rejects.toMatchObject(refused)
    rmSync(dirname(path))
  })

  it('reads many small text files in little memory', async () => {
    const [folder, rows] = [join(location, 'Sales/log [1]'), Array.from({ length: 60 }, (_, n) => ({ n: String(n) }))]
    mkdirSync(folder, { recursive: true })
    for (const { n } of rows) writeFileSync(join(folder, `${n}.csv`), `n,${Number(n) % 2 ? 'a' : 'b'}\n${n},x\n`)
    const connector = open()
    const { handle } = (await connector.getTable('sales', 'log [1]'))!
    const text = scanText(await connector.tableSource(await connector.listSplits(handle), ['n']))
    const small = await openDuckDb({ memory_limit: '400MB' })
    expect(await small.query(`SELECT n::VARCHAR AS n FROM (${text}) s ORDER BY s.n`)).toEqual(rows)
  })

  it('inspects at most four text files concurrently, and each file once', async () => {
    const folder = join(location, 'Sales/lines')
    mkdirSync(folder, { recursive: true })
    for (let n = 0; n < 9; n++) writeFileSync(join(folder, `${n}.json`), `{"${n % 3 ? 'a' : 'b'}": ${n}}\n`)
    const asked: string[] = []
    let [open, most] = [0, 0]
    const connector = opened(location, async (question) => {
      asked.push(question.kind)
      most = Math.max(most, ++open)
      return inspectedBy(duckdb)(question).finally(() => open--)
    })
    const { columns } = (await connector.getTable('sales', 'lines'))!
    expect(columns.map(({ name }) => name)).toEqual(['b', 'a'])
    await connector.getTable('sales', 'lines')
    expect(asked).toEqual(Array<string>(9).fill('jsonShape'))
    expect(most).toBeLessThanOrEqual(4)
  })

  it('refuses column names that differ only in case between files', async () => {
    const folder = join(location, 'Sales/spelt')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, '1.json'), '{"a": 1}\n')
    writeFileSync(join(folder, '2.json'), '{"A": 2}\n')
    await expect(open().getTable('sales', 'spelt')).rejects.toMatchObject({ errorName: 'AMBIGUOUS_NAME' })
  })

  it('fails a read of decimals with more than 38 digits, with the table and the column', async () => {
    mkdirSync(join(location, 'Sales/wide'), { recursive: true })
    cpSync(
      join(import.meta.dirname, '../../fixtures/decimals-of-50-digits.parquet'),
      join(location, 'Sales/wide/1.parquet'),
    )
    const { columns } = (await open().getTable('sales', 'wide'))!
    expect(columns.map(({ name }) => name)).toEqual(['n', 'd38', 'd50', 's'])
    expect(await read('wide', ['n', 'd38'])).toEqual([{ n: 1, d38: 1.5 }])
    await expect(read('wide')).rejects.toMatchObject({
      errorName: 'NOT_SUPPORTED',
      message: `Column 'd50' of table 'sales.wide' cannot be read: its decimals have 50 digits, Trino's 38 at most [Sales/wide/1.parquet]`,
    })
  })

  it('reads TIME_NS, geometries and variants, and names a column that it cannot read', async () => {
    await write(
      `${location}/Sales/rare/t.parquet`,
      `SELECT TIME_NS '01:02:03.000000001' AS t, 'POINT(1 2)'::GEOMETRY AS g, {'x': [1, NULL]}::VARIANT AS v,
        [{'t': TIME_NS '00:00:00.000000002'}] AS l, TIMETZ '10:00:00+00' AS tz, INTERVAL 1 MONTH AS i, 1 AS n, union_value(k := 1) AS un`,
    )
    const { columns } = (await open().getTable('sales', 'rare'))!
    expect(columns.map(({ name, type }) => `${name} ${type}`)).toEqual([
      't time(9)',
      'g varbinary',
      'v json',
      'l array(row("t" time(9)))',
      'tz time(6)',
      'i varchar',
      'n integer',
      'un varchar',
    ])
    const point = '\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\xF0?\\x00\\x00\\x00\\x00\\x00\\x00\\x00@'
    expect(await read('rare', ['t', 'g', 'v', 'l', 'tz', 'n'])).toEqual([
      { t: 3_723_000_000_001_000, g: point, v: '{"x":[1,null]}', l: [{ f0: 2000 }], tz: '10:00:00', n: 1 },
    ])
    await expect(read('rare', ['n', 'i'])).rejects.toMatchObject({
      errorName: 'NOT_SUPPORTED',
      message: `Column 'i' of table 'sales.rare' cannot be read: Trino has no type for INTERVAL [Sales/rare/t.parquet]`,
    })
  })

  describe('Timestamps with nanoseconds that DuckDB reads as microseconds', () => {
    const rowsOf = async (fixture: string, columns: readonly string[]): Promise<unknown> => {
      mkdirSync(join(location, 'Sales', fixture), { recursive: true })
      cpSync(
        join(import.meta.dirname, `../../fixtures/${fixture}.parquet`),
        join(location, 'Sales', fixture, '1.parquet'),
      )
      const connector = open()
      const { handle } = (await connector.getTable('sales', fixture))!
      const splits = await connector.listSplits(handle, undefined, undefined, columns)
      await connector.verifySplits(splits)
      return duckdb.query(scanText(await connector.tableSource(splits, columns)))
    }
    const micros = [
      '2023-11-14 22:13:20.123456',
      null,
      '1969-12-31 23:59:59.999999',
      '1970-01-01 00:00:00',
      '1970-01-01 00:00:00.000001',
      '0001-01-01 00:00:00',
      '9999-12-31 23:59:59.999999',
    ]

    it('are read if they are exact in microseconds: INT96 and UTC in nanoseconds, by several writers', async () => {
      expect(await rowsOf('int96-micros', ['t'])).toEqual(micros.map((t) => ({ t })))
      expect(await rowsOf('int96-micros', ['l'])).toEqual(micros.map((t) => ({ l: [t] })))
      expect(await rowsOf('int96-spark', ['t'])).toEqual([{ t: '2023-11-14 22:13:20.123456' }, { t: null }])
      expect(await rowsOf('utc-nanos-micros', ['t'])).toEqual(
        [...micros.slice(0, 5), null, null].map((t) => ({ t: t === null ? null : { t, z: 'UTC' } })),
      )
    })

    it('make a read fail with HIVE_BAD_DATA, file and column if they are finer than microseconds', async () => {
      for (const fixture of ['int96', 'utc-nanos']) {
        await expect(rowsOf(fixture, ['n', 't'])).rejects.toMatchObject({
          errorName: 'HIVE_BAD_DATA',
          message: expect.stringMatching(
            /Column "t" has a timestamp finer than microseconds, which would be cut \[.*1\.parquet\]/,
          ) as string,
        })
        expect(await rowsOf(fixture, ['n'])).toEqual([{ n: 1 }, { n: 2 }])
      }
      // pyarrow wrote this file, and copied a key of Spark into it.
      await expect(rowsOf('int96-spark-copied', ['t'])).rejects.toMatchObject({ errorName: 'HIVE_BAD_DATA' })
    })
  })

  it('does not use text bounds that old programs wrote in the order of signed bytes', async () => {
    const fixture = join(import.meta.dirname, '../../fixtures/old-bounds.parquet')
    mkdirSync(join(location, 'Sales/old_bounds'), { recursive: true })
    cpSync(fixture, join(location, 'Sales/old_bounds/1.parquet'))
    const connector = open()
    const { handle } = (await connector.getTable('sales', 'old_bounds'))!
    const source = scanText(await connector.tableSource(await connector.listSplits(handle), ['s']))
    expect(await duckdb.query(`FROM (${source}) WHERE s = 'é'`)).toEqual([{ s: 'é' }])
    expect(await duckdb.query(`FROM (${source}) WHERE s < 'z' ORDER BY s`)).toEqual([{ s: 'a' }, { s: 'b' }])
  })

  it('refuses a pipe in place of an empty file with the same time, and does not block on it', async () => {
    const path = join(location, 'Sales/empty_text/a.csv')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, '')
    const connector = open()
    const { mtimeNs } = statSync(path, { bigint: true })
    const footer = createHash('sha256').digest('hex')
    const data = { file: 'Sales/empty_text/a.csv', size: 0, format: 'csv', footer, unionByName: false, columns: [] }
    const none = { firstRow: 0, rows: 0, fileRows: 0 }
    const splits = (at: bigint) => [{ catalog: 'lake', data: { ...data, ...none, mtime: String(at) } }]
    await connector.verifySplits(splits(mtimeNs))
    rmSync(path)
    execFileSync('mkfifo', [path])
    const piped = statSync(path, { bigint: true }).mtimeNs
    await expect(connector.verifySplits(splits(piped))).rejects.toMatchObject({ errorName: 'TRANSACTION_CONFLICT' })
  })

  it('refuses splits of a file that was replaced by a link to an identical file outside', async () => {
    const path = join(location, 'Sales/moved/a.parquet')
    const outside = join(root, 'outside.parquet')
    await write(path, 'SELECT 1 AS a')
    const connector = open()
    const splits = await connector.listSplits((await connector.getTable('sales', 'moved'))!.handle)
    await connector.verifySplits(splits)
    cpSync(path, outside, { preserveTimestamps: true })
    rmSync(path)
    symlinkSync(outside, path)
    const seconds = Number(BigInt((splits[0]!.data as { mtime: string }).mtime) / 1000n) / 1e6
    utimesSync(outside, seconds, seconds)
    const refusal = { errorName: expect.stringMatching(/^(PERMISSION_DENIED|TRANSACTION_CONFLICT)$/) as string }
    await expect(connector.verifySplits(splits)).rejects.toMatchObject(refusal)
  })

  it('stops the start if the location does not exist', () => {
    expect(() => open(join(root, 'nowhere'))).toThrow(/nowhere.*not a folder/)
  })
})
