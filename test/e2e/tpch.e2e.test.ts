import { readFileSync } from 'node:fs'
import { DuckDBInstance } from '@duckdb/node-api'
import { describe, expect, it } from 'vitest'
import { tpchLake, tpchViews } from '../../bench/tpch-data.mjs'
import { tpchQueries } from '../../bench/tpch-queries.mjs'
import { catalogsOf } from '../support/server-catalogs.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { run, trinoHeaders } from '../support/statement-client.ts'

const SCALE = 0.1

async function lakeFolder(): Promise<string | undefined> {
  try {
    return (await tpchLake(SCALE)) as string
  } catch (error) {
    if (process.env['CI'] === 'true') throw error
    console.warn(`SKIPPED: no TPC-H files (${String(error)})`)
    return undefined
  }
}

const lake = await lakeFolder()
const server = serverOfFile('error', (own) =>
  catalogsOf(own, {
    tpch: { connector: 'tpch' },
    ...(lake !== undefined && { lake: { connector: 'lake', location: lake } }),
  }),
)

/** Numbers may differ by the last digit of an average or by the order of a sum; other values must be equal. */
function same(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (a === null || b === null) return false
  const [x, y] = [Number(a), Number(b)]
  if (Number.isNaN(x) || Number.isNaN(y)) return String(a) === String(b)
  return Math.abs(x - y) <= 0.0051 + Math.abs(y) * 1e-9
}

function sameRows(ours: readonly (readonly unknown[])[], theirs: readonly (readonly unknown[])[]): void {
  expect(ours.length).toBe(theirs.length)
  const different = ours.filter((row, index) => !row.every((value, column) => same(value, theirs[index]![column])))
  expect(different).toEqual([])
}

describe('The 22 TPC-H queries', () => {
  it.each(Object.entries(tpchQueries))('%s runs on tpch.tiny', async (_name, sql) => {
    const { error, columns } = await run(server.url, sql)
    expect(error).toBeUndefined()
    expect(columns!.length).toBeGreaterThan(0)
  })

  const recorded = readFileSync(new URL('../conformance/tpch.jsonl', import.meta.url), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map(
      (line) =>
        JSON.parse(line) as { id: string; sql: string; rows: unknown[][]; columns: { name: string; type: string }[] },
    )
  it.each(recorded.map((one) => [one.id, one] as const))("%s returns Trino's answer", async (_id, one) => {
    const { rows, columns, error } = await run(server.url, one.sql)
    expect(error).toBeUndefined()
    expect(columns!.map(({ name, type }) => ({ name, type }))).toEqual(one.columns)
    sameRows(rows, one.rows)
  })

  describe.runIf(lake)(`The 22 TPC-H queries on Parquet in a lake, scale ${SCALE}`, () => {
    it('return the same rows as plain DuckDB on the same files', async () => {
      const connection = await (await DuckDBInstance.create(':memory:', { threads: '2' })).connect()
      for (const view of tpchViews(lake)) await connection.run(view)
      const headers = { ...trinoHeaders, 'x-trino-catalog': 'lake', 'x-trino-schema': 'tpch' }
      for (const [name, sql] of Object.entries(tpchQueries)) {
        const { rows, error } = await run(server.url, sql, headers)
        expect([name, error]).toEqual([name, undefined])
        const result = await connection.runAndReadAll(sql)
        sameRows(rows, result.getRowsJson())
      }
      connection.closeSync()
    }, 240_000)
  })
})
