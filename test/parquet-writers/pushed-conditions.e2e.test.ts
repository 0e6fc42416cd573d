import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { pythonEnvironment } from '../support/python-environment.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { run, trinoHeaders } from '../support/statement-client.ts'
import { conditionsOn, literals } from './columns.ts'
import { FULL_TESTS } from '../support/full-tests.ts'

/*
 * Conditions that the engine checks while it reads a Parquet file (with bounds, filters and dictionaries) must count
 * the same rows as conditions over values that are already read. The files come from several programs with several
 * settings: some are in the fixtures; with QUIPU_FULL_TESTS=1 the test writes all of them again.
 */

const PACKAGES = ['pyarrow==26.0.1', 'polars==2.1.0', 'duckdb==1.5.6']
const script = new URL('write_files.py', import.meta.url).pathname
const fixtures = new URL('../fixtures/parquet-writers/', import.meta.url).pathname
/** Columns that only Quipu's own tables have, computed from the other columns. */
const OWN_COLUMNS: Readonly<Record<string, readonly [expression: string, literals: readonly string[]]>> = {
  ip: [
    'CAST(b16 AS ipaddress)',
    [
      "IPADDRESS '::'",
      "IPADDRESS '3031:3233:3435:3637:3839:6162:6364:6566'",
      "IPADDRESS 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'",
    ],
  ],
  ch: ['CAST(s AS char(20))', ["CAST('A' AS char(20))", "CAST('é' AS char(20))", "CAST('' AS char(20))"]],
  vc: ['CAST(s AS varchar(5))', ["CAST('abcde' AS varchar(5))", "CAST('é' AS varchar(5))"]],
  t12: ['CAST(t9 AS time(12))', ["TIME '01:02:03.000000001000'", "TIME '12:00:00.000000000000'"]],
  ts12: [
    'CAST(ts9 AS timestamp(12))',
    ["TIMESTAMP '1970-01-01 00:00:00.000000001000'", "TIMESTAMP '1970-01-01 00:00:00.000000000000'"],
  ],
  tz9: ["with_timezone(ts9, 'Europe/Berlin')", ["TIMESTAMP '1970-01-01 01:00:00.000000000 Europe/Berlin'"]],
  ttz: ['CAST(t6 AS time(6) with time zone)', ["TIME '12:00:00.000000 +00:00'"]],
  iv: ["i32 * INTERVAL '1' SECOND", ["INTERVAL '0' SECOND", "INTERVAL '7' SECOND"]],
  ym: ["i16 * INTERVAL '1' MONTH", ["INTERVAL '0' MONTH", "INTERVAL '1' MONTH"]],
}

/** The fixtures that every run tests. */
const FEW = 'arrow-page-index duckdb-default java-filters-v1'
const names = FULL_TESTS ? [...new Set([...readdirSync(fixtures), ...writerNames()])] : FEW.split(' ')
const server = serverOfFile('error', async ({ folder }) => {
  const lake = join(folder, 'lake')
  const catalogs = join(folder, 'catalogs')
  mkdirSync(catalogs)
  cpSync(fixtures, join(lake, 'written'), { recursive: true })
  if (FULL_TESTS) {
    const programs = await pythonEnvironment('parquet-writers', PACKAGES)
    await promisify(execFile)(join(programs, 'python'), [script, join(lake, 'written')], { timeout: 200_000 })
  }
  writeFileSync(join(catalogs, 'lake.json'), JSON.stringify({ connector: 'lake', location: lake }))
  writeFileSync(join(catalogs, 'memory.json'), JSON.stringify({ connector: 'memory' }))
  return { QUIPU_CATALOG_DIR: catalogs }
})

function writerNames(): readonly string[] {
  const [, writers = ''] = readFileSync(script, 'utf8').split('\nWRITERS = {')
  return [...writers.matchAll(/^    "([a-z0-9-]+)": /gm)].map(([, name]) => name!)
}

async function ask(sql: string): Promise<readonly (readonly unknown[])[]> {
  const { rows, error } = await run(server.url, sql, {
    ...trinoHeaders,
    'x-trino-catalog': 'lake',
    'x-trino-schema': 'written',
  })
  if (error) throw new Error(`${error.errorName}: ${error.message}: ${sql.slice(0, 300)}`)
  return rows
}

/** Compares the count of each condition in the scan with its count over the values that were all read before. */
async function differences(table: string, column: string, own: readonly string[]): Promise<readonly string[]> {
  const conditions = conditionsOn(column, own, FULL_TESTS)
  const list = own.map((literal) => `(${literal})`).join(', ')
  const last = own.at(-1)!
  const pushed = [
    ...conditions.map((condition) => `SELECT count(*) FROM ${table} WHERE ${condition}`),
    // Keys of joins and semi-joins become conditions of the scan while the statement runs.
    `SELECT count(*) FROM ${table} JOIN (VALUES ${list}) v(k) ON ${column} = k`,
    `SELECT count(*) FROM ${table} JOIN (VALUES (${last})) v(k) ON ${column} = k`,
    `SELECT count(*) FROM ${table} WHERE ${column} IN (SELECT k FROM (VALUES ${list}) v(k))`,
    ...(FULL_TESTS
      ? [`SELECT count(*) FROM ${table} WHERE EXISTS (SELECT 1 FROM (VALUES ${list}) v(k) WHERE ${column} = k)`]
      : []),
  ]
  const read = `(SELECT x AS ${column} FROM (SELECT array_agg(${column}) AS a FROM ${table}) CROSS JOIN UNNEST(a) u(x))`
  const above = [
    ...conditions.map((condition) => `count_if(${condition})`),
    own.map((literal) => `count_if(${column} = ${literal})`).join(' + '),
    `count_if(${column} = ${last})`,
    ...(FULL_TESTS ? [1, 2] : [1]).map(
      () => `count_if(${own.map((literal) => `${column} = ${literal}`).join(' OR ')})`,
    ),
  ]
  const [[counted]] = (await ask(`SELECT ARRAY[${pushed.map((query) => `(${query})`).join(', ')}]`)) as [[number[]]]
  const [[right]] = (await ask(`SELECT ARRAY[${above.join(', ')}] FROM ${read}`)) as [[number[]]]
  return pushed.flatMap((query, index) =>
    counted[index] === right[index] ? [] : [`${query}: ${counted[index]}, above the scan ${right[index]}`],
  )
}

async function columnsOf(table: string): Promise<readonly string[]> {
  return (await ask(`SHOW COLUMNS FROM ${table}`)).map(([name]) => name as string)
}

async function differencesOf(table: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const column of await columnsOf(table)) {
    const own = literals[column]
    if (own) found.push(...(await differences(table, column, own)))
  }
  const columns = await columnsOf(table)
  if (columns.includes('st'))
    found.push(...(await differences(`(SELECT st.d AS x FROM ${table})`, 'x', literals['d']!)))
  if (columns.includes('st'))
    found.push(...(await differences(`(SELECT st.b AS x FROM ${table})`, 'x', literals['b']!)))
  if (columns.includes('li'))
    found.push(...(await differences(`(SELECT element_at(li, 1) AS x FROM ${table})`, 'x', literals['d']!)))
  return found
}

describe('Conditions on columns of Parquet files', { timeout: 600_000 }, () => {
  it.each(names.map((name) => [name]))('count the same rows in the scan as above the scan (%s)', async (name) => {
    expect(await differencesOf(`"${name}"`)).toEqual([])
  })

  it('count the same rows in the scan as above the scan (tables that Quipu wrote)', async () => {
    const own = Object.entries(OWN_COLUMNS)
    const list = own.map(([name, [expression]]) => `${expression} AS ${name}`).join(', ')
    await ask(`CREATE TABLE memory.default.own AS SELECT *, ${list} FROM "arrow-dictionary"`)
    expect(await differencesOf('memory.default.own')).toEqual([])
    for (const [name, [, values]] of own) expect(await differences('memory.default.own', name, values)).toEqual([])
  })
})
