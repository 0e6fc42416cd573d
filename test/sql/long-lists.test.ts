import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLibraryRunner, type LibraryRunner } from '../support/library-runner.ts'

// A list of 500 or more constants goes to the engine as one array. Its answers are compared with those of the same
// constants in shorter lists.

const COUNT = 600

const items = (item: (i: number) => string, from = 0, to = COUNT): string =>
  Array.from({ length: to - from }, (_, i) => item(from + i)).join(', ')

/** Constants of each type, and values to look for. Some of the values are in the list. */
const lists: Readonly<Record<string, { readonly item: (i: number) => string; readonly values: readonly string[] }>> = {
  integers: { item: (i) => `${i * 3}`, values: ["BIGINT '9'", "BIGINT '10'", 'CAST(NULL AS bigint)'] },
  'integers of both signs and beyond 32 bits': {
    item: (i) => `${(i - 300) * 10_000_000_000}`,
    values: ['-2000000000000', '0', '-7', '2990000000000'],
  },
  'small integers': { item: (i) => `SMALLINT '${i - 300}'`, values: ["SMALLINT '-300'", "SMALLINT '300'"] },
  'integers with zeros in front': { item: (i) => `00${i}`, values: ['5', '600'] },
  'integers and decimals': {
    item: (i) => (i % 2 ? `${i}` : `${i}.50`),
    values: ['5', '4', '4.5', '1e0', "DOUBLE '4.5'"],
  },
  'integers beside a double': { item: (i) => `${i}`, values: ['5e0', 'nan()', 'infinity()', '-0e0', "REAL '5'"] },
  'decimals beside a double': { item: (i) => `${i}.1`, values: ['5.1e0', '5e0', 'nan()'] },
  'doubles with NaN among them': {
    item: (i) => (i === 7 ? `DOUBLE 'NaN'` : `${i}e0`),
    values: ['nan()', '5e0', '700e0'],
  },
  'long decimals': { item: (i) => `${i}.0000000000000000000000001`, values: ['5.0000000000000000000000001', '5.0'] },
  'NULL among integers': { item: (i) => (i === 300 ? 'NULL' : `${i}`), values: ['5', '-5', 'CAST(NULL AS integer)'] },
  texts: {
    item: (i) => (i === 0 ? `'it''s "\\\\ \u{1F600} \n'` : i === 1 ? `U&'a\\0000b'` : i === 2 ? `''` : `'text ${i}'`),
    values: [`'it''s "\\\\ \u{1F600} \n'`, `U&'a\\0000b'`, `''`, `'text 5'`, `'text 5 '`, `'TEXT 5'`],
  },
  'texts beside a char': { item: (i) => `'t${i}'`, values: [`CAST('t5' AS char(8))`, `CAST('t' AS char(8))`] },
  chars: { item: (i) => `CHAR 't${i}'`, values: [`CAST('t5' AS char(8))`, `'t5'`] },
  bytes: { item: (i) => `X'00${(1000 + i).toString(16).padStart(4, '0')}FF'`, values: [`X'0003E9FF'`, `X'00'`] },
  booleans: { item: (i) => (i === 5 ? 'NULL' : 'true'), values: ['true', 'false'] },
  dates: { item: (i) => `DATE '${1900 + (i % 150)}-02-03'`, values: [`DATE '1950-02-03'`, `DATE '1950-02-04'`] },
  'dates of far years': {
    item: (i) => (i === 0 ? `DATE '12000-01-01'` : i === 1 ? `DATE '-0044-03-15'` : `DATE '2020-01-01'`),
    values: [`DATE '12000-01-01'`, `DATE '-0044-03-15'`, `DATE '2020-01-02'`],
  },
  'dates beside a timestamp': {
    item: (i) => `DATE '${1900 + (i % 150)}-02-03'`,
    values: [`TIMESTAMP '1950-02-03 00:00:00.000'`, `TIMESTAMP '1950-02-03 00:00:00.001'`],
  },
  timestamps: {
    item: (i) => `TIMESTAMP '1969-12-31 23:59:59.${String(i).padStart(6, '0')}'`,
    values: [
      `TIMESTAMP '1969-12-31 23:59:59.000005'`,
      `TIMESTAMP '1969-12-31 23:59:59'`,
      `TIMESTAMP '1970-01-01 00:00:00'`,
    ],
  },
  'timestamps of picoseconds': {
    item: (i) => `TIMESTAMP '2020-01-01 00:00:00.${String(i).padStart(12, '0')}'`,
    values: [`TIMESTAMP '2020-01-01 00:00:00.000000000005'`, `TIMESTAMP '2020-01-01 00:00:00'`],
  },
  'timestamps with zones': {
    item: (i) => `TIMESTAMP '2020-01-01 00:00:00.${String(i).padStart(3, '0')} UTC'`,
    values: [`TIMESTAMP '2020-01-01 01:00:00.005 Europe/Berlin'`, `TIMESTAMP '2020-01-02 00:00:00 UTC'`],
  },
  times: {
    item: (i) => `TIME '00:00:${String(i % 60).padStart(2, '0')}.5'`,
    values: [`TIME '00:00:05.5'`, `TIME '00:00:05'`],
  },
  uuids: {
    item: (i) => `UUID '12151fd2-7586-11e9-8f9e-${String(i).padStart(12, '0')}'`,
    values: [`UUID '12151FD2-7586-11E9-8F9E-000000000005'`, `UUID '00000000-0000-0000-0000-000000000000'`],
  },
  'rows of two': { item: (i) => `ROW(${i}, 'x')`, values: [`ROW(5, 'x')`, `ROW(5, 'y')`] },
}

describe('A long list of constants', () => {
  let runner: LibraryRunner
  beforeAll(async () => {
    runner = await openLibraryRunner()
  })
  afterAll(() => runner.close())

  const answer = async (sql: string): Promise<unknown> => {
    try {
      const { columns, rows } = await runner.run(sql)
      return { columns, rows: rows.map((row) => JSON.stringify(row)).toSorted() }
    } catch (error) {
      return String(error)
    }
  }
  const sameAs = async (long: string, short: string): Promise<void> => {
    const [one, other] = [JSON.stringify(await answer(long)), JSON.stringify(await answer(short))]
    expect(one.slice(0, 2_000)).toBe(other.slice(0, 2_000))
    expect(one === other).toBe(true)
    expect(one.slice(0, 20)).not.toMatch(/error/i)
  }

  describe.each(Object.entries(lists))('A long list of %s', (_what, { item, values }) => {
    const table = `(VALUES ${values.map((value, i) => `(${i}, ${value})`).join(', ')}) t(n, x)`
    const inLong = `x IN (${items(item)})`
    const inShort = `(x IN (${items(item, 0, COUNT / 2)}) OR x IN (${items(item, COUNT / 2)}))`

    it.each([
      ['in WHERE', (condition: string) => `SELECT n FROM ${table} WHERE ${condition} ORDER BY n`],
      ['as a value', (condition: string) => `SELECT n, ${condition} FROM ${table} ORDER BY n`],
    ])('gives %s the same rows as short lists', async (_where, statement) => {
      await sameAs(statement(inLong), statement(inShort))
    })

    it('gives the same items as short lists in VALUES and in an array', async () => {
      const halves = `VALUES ${items(item, 0, 300)} UNION ALL VALUES ${items(item, 300)}`
      await sameAs(`SELECT * FROM (VALUES ${items(item)})`, `SELECT * FROM (${halves})`)
      await sameAs(`SELECT ARRAY[${items(item)}]`, `SELECT ARRAY[${items(item, 0, 300)}] || ARRAY[${items(item, 300)}]`)
    })
  })

  const inLong = (value: string): string => `${value} IN (${items((i) => `${i * 3}`)})`
  const inShort = (value: string): string =>
    `(${value} IN (${items((i) => `${i * 3}`, 0, 300)}) OR ${value} IN (${items((i) => `${i * 3}`, 300)}))`

  it.each([
    ['a lambda', (x: typeof inLong) => `SELECT filter(ARRAY[1, 3, 5, 6], y -> ${x('y')})`],
    ['CASE', (x: typeof inLong) => `SELECT count(CASE WHEN ${x('regionkey')} THEN 1 END) FROM tpch.tiny.nation`],
    ['FILTER', (x: typeof inLong) => `SELECT count(*) FILTER (WHERE ${x('regionkey')}) FROM tpch.tiny.nation`],
    [
      'HAVING',
      (x: typeof inLong) => `SELECT regionkey FROM tpch.tiny.nation GROUP BY 1 HAVING ${x('regionkey')} ORDER BY 1`,
    ],
    [
      'GROUP BY',
      (x: typeof inLong) =>
        `SELECT ${x('regionkey')}, count(*) FROM tpch.tiny.nation GROUP BY ${x('regionkey')} ORDER BY 1`,
    ],
    [
      'an inner join',
      (x: typeof inLong) =>
        `SELECT count(*) FROM tpch.tiny.nation n JOIN tpch.tiny.region r ON n.regionkey = r.regionkey AND ${x('r.regionkey')}`,
    ],
    [
      'an outer join',
      (x: typeof inLong) =>
        `SELECT count(r.name), count(*) FROM tpch.tiny.nation n LEFT JOIN tpch.tiny.region r ON n.regionkey = r.regionkey AND ${x('n.nationkey')}`,
    ],
    [
      'a correlated subquery',
      (x: typeof inLong) =>
        `SELECT name, EXISTS (SELECT 1 FROM tpch.tiny.nation n WHERE n.regionkey = r.regionkey AND ${x('n.nationkey')}) FROM tpch.tiny.region r ORDER BY 1`,
    ],
    [
      'a correlated subquery with the list over the outer row',
      (x: typeof inLong) =>
        `SELECT name, (SELECT count(*) FROM tpch.tiny.nation n WHERE n.regionkey = r.regionkey AND ${x('r.regionkey')}) FROM tpch.tiny.region r ORDER BY 1`,
    ],
    [
      'OR',
      (x: typeof inLong) =>
        `SELECT nationkey FROM tpch.tiny.nation WHERE ${x('nationkey')} OR name LIKE 'A%' AND NOT ${x('regionkey')} ORDER BY 1`,
    ],
    [
      'a condition before one that fails elsewhere',
      (x: typeof inLong) =>
        `SELECT nationkey FROM tpch.tiny.nation WHERE ${x('nationkey')} AND 1 / (nationkey - 1) >= 0 ORDER BY 1`,
    ],
    [
      'a condition below one that fails elsewhere',
      (x: typeof inLong) =>
        `SELECT * FROM (SELECT nationkey k FROM tpch.tiny.nation WHERE ${x('nationkey')}) WHERE 1 / (k - 1) >= 0 ORDER BY 1`,
    ],
    [
      'a list over what may fail',
      (x: typeof inLong) =>
        `SELECT nationkey FROM tpch.tiny.nation WHERE nationkey > 1 AND ${x('6 / (nationkey - 1)')} ORDER BY 1`,
    ],
    [
      'a list over a random value',
      (x: typeof inLong) => `SELECT count(*) FROM tpch.tiny.nation WHERE ${x('CAST(random() AS bigint) * 3')}`,
    ],
    ['a constant', (x: typeof inLong) => `SELECT ${x('6')}, ${x('7')}`],
    [
      'row patterns',
      (x: typeof inLong) =>
        `SELECT * FROM tpch.tiny.nation MATCH_RECOGNIZE (ORDER BY nationkey MEASURES last(A.nationkey) AS k ONE ROW PER MATCH PATTERN (A+) DEFINE A AS ${x('A.nationkey % 6')})`,
    ],
  ])('gives the same rows as short lists in %s', async (_where, statement) => {
    await sameAs(statement(inLong), statement(inShort))
  })

  it('may contain columns that are no constants in VALUES', async () => {
    const rows = (from: number, to: number): string =>
      items(
        (i) => `(${i}, 'n${i}', ${i}.25, now() - INTERVAL '${i}' DAY, ROW(${i}, 'x'), NULL, CAST('${i}' AS integer))`,
        from,
        to,
      )
    const read = (from: string): string =>
      `SELECT count(*), sum(a), max(b), sum(c), min(d), max(e[1]), count(f), sum(g), typeof(max(a)), typeof(max(c)) FROM ${from}`
    await sameAs(
      read(`(VALUES ${rows(0, COUNT)}) t(a, b, c, d, e, f, g)`),
      read(`(VALUES ${rows(0, 300)} UNION ALL VALUES ${rows(300, COUNT)}) t(a, b, c, d, e, f, g)`),
    )
  })

  it('keeps the order of VALUES', async () => {
    const { rows } = await runner.run(`VALUES ${items((i) => `(${i}, 'x${i}')`)}`)
    expect(rows).toEqual(Array.from({ length: COUNT }, (_, i) => [i, `x${i}`]))
  })

  it.each([
    [
      `SELECT 1 FROM tpch.tiny.nation WHERE nationkey IN (${items((i) => (i === 599 ? `'x'` : `${i}`))})`,
      'TYPE_MISMATCH',
    ],
    [
      `SELECT 1 FROM tpch.tiny.nation WHERE nationkey IN (${items((i) => (i === 599 ? `nokey` : `${i}`))})`,
      'COLUMN_NOT_FOUND',
    ],
    [
      `SELECT 1 FROM tpch.tiny.nation WHERE nationkey IN (${items((i) => (i === 599 ? `99999999999999999999` : `${i}`))})`,
      'SYNTAX_ERROR',
    ],
    [`VALUES ${items((i) => (i === 599 ? `(1, 2)` : `(${i})`))}`, 'TYPE_MISMATCH'],
    [
      `SELECT 1 FROM tpch.tiny.nation WHERE name IN (${items((i) => (i === 599 ? `DATE 'x'` : `'${i}'`))})`,
      'INVALID_LITERAL',
    ],
  ])('is refused for one wrong item, as short lists are', async (sql, errorName) => {
    await expect(runner.run(sql)).rejects.toMatchObject({ errorName, location: { lineNumber: 1 } })
  })

  it('is a condition of the scan of a system table', async () => {
    const analyzed = await runner.analyze(
      `SELECT column_name FROM tpch.information_schema.columns WHERE table_name IN (${items((i) => `'t${i}'`)})`,
    )
    if (analyzed.kind !== 'query') throw new Error('No query')
    const texts = Array.from({ length: COUNT }, (_, i) => `t${i}`)
    expect(analyzed.query.scans[0]?.where).toEqual({ table_name: [{ in: texts }] })
  })

  it("adds a text of fixed length and one literal to the engine's SQL", async () => {
    const numbers = Array.from({ length: 100_000 }, (_, i) => i * 7).join(', ')
    const where = await runner.analyze(`SELECT count(*) FROM tpch.tiny.orders WHERE orderkey IN (${numbers})`)
    const rows = Array.from({ length: 20_000 }, (_, i) => `(${i},'n${i}',${i}.25,DATE '2020-01-01',NULL)`).join(',')
    const values = await runner.analyze(`SELECT * FROM (VALUES ${rows}) t(a, b, c, d, e)`)
    for (const analyzed of [where, values]) {
      if (analyzed.kind !== 'query') throw new Error('No query')
      expect(analyzed.query.sql.replaceAll(/'(?:[^']|'')*'/g, `''`).length).toBeLessThan(1_000)
    }
  })
})
