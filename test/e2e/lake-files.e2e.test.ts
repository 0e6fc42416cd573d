import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { describe, expect, it } from 'vitest'
import { serverOfFile } from '../support/server-of-file.ts'
import { run, trinoHeaders } from '../support/statement-client.ts'

/* Tables over files that other programs wrote, as clients see them. */

const fixtures = new URL('../fixtures/', import.meta.url).pathname

const headers = { ...trinoHeaders, 'x-trino-catalog': 'lake', 'x-trino-schema': 's' }

const server = serverOfFile('error', async ({ folder }) => {
  const lake = join(folder, 'lake')
  const catalogs = join(folder, 'catalogs')
  mkdirSync(catalogs)
  const tables = { 's.events': { columns: { zip: 'varchar' } } }
  writeFileSync(join(catalogs, 'lake.json'), JSON.stringify({ connector: 'lake', location: lake, tables }))
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  for (const [year, month, from] of [
    ['2023', '12', 0],
    ['2024', '01', 10],
    ['2024', '02', 20],
    ['__HIVE_DEFAULT_PARTITION__', '01', 30],
  ] as const) {
    const path = join(lake, 's', 'sales', `year=${year}`, `month=${month}`, 'x.parquet')
    mkdirSync(dirname(path), { recursive: true })
    await connection.run(`COPY (SELECT i + ${from} AS id FROM range(10) t(i)) TO '${path}' (FORMAT parquet)`)
  }
  connection.closeSync()
  instance.closeSync()
  for (const zip of ["0'5%20=ü", '123']) {
    const path = join(lake, 's', 'events', `zip=${zip}`, 'x.csv')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, 'id,name\n1,a\n2,b\n')
  }
  for (const name of ['int96', 'int96-micros', 'utc-nanos']) {
    mkdirSync(join(lake, 'times', name), { recursive: true })
    cpSync(join(fixtures, `${name}.parquet`), join(lake, 'times', name, 'a.parquet'))
  }
  // Root starts the server, which then runs as another user.
  for (const path of ['', 's', 's/sales', 's/events']) chmodSync(join(lake, path), 0o777)
  return { QUIPU_CATALOG_DIR: catalogs }
})

async function rows(sql: string): Promise<unknown> {
  const { rows: found, error } = await run(server.url, sql, headers)
  if (error) throw new Error(`${error.errorName}: ${error.message}`)
  return found
}

describe('A table in Hive layout', () => {
  it('has its partition keys as columns', async () => {
    expect(await rows('SELECT year, month, count(*), sum(id) FROM sales GROUP BY 1, 2 ORDER BY 1, 2')).toEqual([
      [2023, 12, 10, 45],
      [2024, 1, 10, 145],
      [2024, 2, 10, 245],
      [null, 1, 10, 345],
    ])
    expect(await rows('SELECT count(*) FROM sales WHERE year = 2024 AND month BETWEEN 1 AND 1')).toEqual([[10]])
    expect(await rows('SELECT count(*) FROM sales WHERE year > 3000')).toEqual([[0]])
    expect(await rows(`SELECT * FROM events WHERE zip = '0''5 =ü' ORDER BY 1`)).toEqual([
      [1, 'a', "0'5 =ü"],
      [2, 'b', "0'5 =ü"],
    ])
    expect(await rows('SELECT zip, count(*) FROM events GROUP BY 1 ORDER BY 1')).toEqual([
      ["0'5 =ü", 2],
      ['123', 2],
    ])
  })

  it('is described like a Hive table in Trino', async () => {
    const columns = [
      ['id', 'bigint', '', ''],
      ['year', 'bigint', 'partition key', ''],
      ['month', 'bigint', 'partition key', ''],
    ]
    expect(await rows('DESCRIBE sales')).toEqual(columns)
    expect(await rows('SHOW COLUMNS FROM sales')).toEqual(columns)
    const asked = `SELECT column_name, extra_info FROM information_schema.columns WHERE table_name = 'sales' ORDER BY ordinal_position` // prettier-ignore
    expect(await rows(asked)).toEqual([
      ['id', null],
      ['year', 'partition key'],
      ['month', 'partition key'],
    ])
    expect(await rows('SHOW TABLES')).toEqual([['events'], ['sales']])
    expect(await rows('SHOW CREATE TABLE sales')).toEqual([
      [
        "CREATE TABLE lake.s.sales (\n   id bigint,\n   year bigint,\n   month bigint\n)\nWITH (\n   partitioned_by = ARRAY['year', 'month']\n)",
      ],
    ])
    expect(await rows('SHOW STATS FOR sales')).toEqual([
      ['id', null, null, 0, null, '0', '39'],
      ['year', null, 2, 0.25, null, '2023', '2024'],
      ['month', null, 3, 0, null, '1', '12'],
      [null, null, null, null, 40, null, null],
    ])
  })

  it('shows in EXPLAIN the keys that rule out files', async () => {
    const [[plan]] = (await rows('EXPLAIN SELECT id FROM sales WHERE year = 2024 AND month = 2')) as [[string]]
    expect(plan).toContain('[table = lake:s:sales, constraint = [year, month]]')
  })

  it('refuses UPDATE, accepts INSERT, and can be dropped', async () => {
    await expect(rows('UPDATE sales SET id = 1')).rejects.toThrow('NOT_SUPPORTED')
    expect(await rows('INSERT INTO sales VALUES (100, 2024, 7), (101, NULL, 1)')).toEqual([[2]])
    expect(await rows('SELECT year, month, sum(id) FROM sales WHERE year = 2024 GROUP BY 1, 2 ORDER BY 2')).toEqual([
      [2024, 1, 145],
      [2024, 2, 245],
      [2024, 7, 100],
    ])
    expect(await rows('SELECT count(*) FROM sales WHERE year IS NULL')).toEqual([[11]])
    expect(await rows('DROP TABLE sales')).toEqual([])
    expect(await rows('SHOW TABLES')).toEqual([['events']])
    expect(await rows('DROP TABLE events')).toEqual([])
    expect(await rows('SHOW TABLES')).toEqual([])
  })
})

describe('Timestamps of nanoseconds that the engine reads as microseconds', () => {
  it('are read where they are exact, and fail the statement where they are finer', async () => {
    expect(await rows('SELECT t FROM lake.times."int96-micros" WHERE n IN (0, 4) ORDER BY n')).toEqual([
      ['2023-11-14 22:13:20.123456'],
      ['1970-01-01 00:00:00.000001'],
    ])
    for (const table of ['int96', 'utc-nanos']) {
      await expect(rows(`SELECT t FROM lake.times."${table}"`)).rejects.toThrow(
        `HIVE_BAD_DATA: Malformed file. Column "t" has a timestamp finer than microseconds, which would be cut [times/${table}/a.parquet]`,
      )
      expect(await rows(`SELECT sum(n) FROM lake.times."${table}"`)).toEqual([[3]])
    }
  })
})
