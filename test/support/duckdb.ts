import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll } from 'vitest'

export type Rows = readonly Readonly<Record<string, unknown>>[]

/** A DuckDB in the process of the test, closed with the test file. Tests compare answers with its results. */
export async function openDuckDb(
  settings: Readonly<Record<string, string>> = {},
): Promise<{ query(sql: string): Promise<Rows>; run(sql: string): Promise<void> }> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '2', ...settings })
  const connection = await instance.connect()
  afterAll(() => {
    connection.closeSync()
    instance.closeSync()
  })
  return {
    run: async (sql) => {
      await connection.run(sql)
    },
    query: async (sql) => {
      const result = await connection.runAndReadAll(`SELECT to_json(q) AS row FROM (${sql}) q`)
      return result.getRows().map(([row]) => JSON.parse(row as string) as Record<string, unknown>)
    },
  }
}
