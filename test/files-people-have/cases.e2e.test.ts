import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { describe, expect, it } from 'vitest'
import { compareAnswers } from '../support/corpus.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { run, trinoHeaders } from '../support/statement-client.ts'
import { notYetRight } from './not-yet-right.ts'

/* Statements over small files that are shaped like those of public bug reports, each with its right answer. */

interface FileCase {
  readonly id: string
  readonly class: string
  readonly catalog: string
  readonly schema: string
  /** Statements that run before `sql`. */
  readonly setup: readonly string[]
  readonly sql: string
  readonly expect:
    | { readonly error: string }
    | {
        readonly columns: readonly { readonly name: string; readonly type: string }[]
        readonly rows: readonly (readonly unknown[])[]
      }
}

const fixtures = new URL('../fixtures/files-people-have/', import.meta.url).pathname
const cases = readFileSync(join(fixtures, 'cases.jsonl'), 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line) as FileCase)

const server = serverOfFile('error', async ({ folder }) => {
  const lake = join(folder, 'lake')
  const catalogs = join(folder, 'catalogs')
  cpSync(fixtures, lake, { recursive: true })
  mkdirSync(catalogs)
  writeFileSync(join(catalogs, 'lake.json'), JSON.stringify({ connector: 'lake', location: lake }))
  writeFileSync(join(catalogs, 'memory.json'), JSON.stringify({ connector: 'memory' }))
  writeFileSync(join(catalogs, 'tpch.json'), JSON.stringify({ connector: 'tpch' }))
  await writeWideTable(join(lake, 'bugs', 'widebig'))
  return { QUIPU_CATALOG_DIR: catalogs }
})

/**
 * Writes 2,000 columns in two row groups of one row: the first row has the number of the column, the second is NULL.
 */
async function writeWideTable(folder: string): Promise<void> {
  mkdirSync(folder)
  const numbers = Array.from({ length: 2000 }, (_, i) => i)
  const row = (value: (i: number) => string): string =>
    `SELECT ${numbers.map((i) => `CAST(${value(i)} AS BIGINT) AS col_${i}`).join(', ')}`
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  const rows = `${row(String)} UNION ALL ${row(() => 'NULL')}`
  await connection.run(`COPY (${rows}) TO '${join(folder, 'a.parquet')}' (FORMAT parquet, ROW_GROUP_SIZE 1)`)
  connection.closeSync()
  instance.closeSync()
}

/** @returns how the answer differs from the right one; undefined if it does not */
async function difference(one: FileCase): Promise<string | undefined> {
  const headers = { ...trinoHeaders, 'x-trino-catalog': one.catalog, 'x-trino-schema': one.schema }
  for (const sql of one.setup) {
    const { error } = await run(server.url, sql, headers)
    if (error) return `setup: ${error.errorName}: ${error.message}`
  }
  const { columns = [], rows, error } = await run(server.url, one.sql, headers)
  const wanted = one.expect
  if ('error' in wanted) {
    return error?.errorName === wanted.error
      ? undefined
      : `${error ? `${error.errorName}: ${error.message}` : JSON.stringify(rows).slice(0, 200)}, expected ${wanted.error}`
  }
  if (error) return `${error.errorName}: ${error.message}`
  // Servers differ in the length of the type of SHOW CREATE TABLE's column.
  const described = one.class === 'show-create-table' ? wanted.columns : columns
  const plain = described.map(({ name, type }) => ({ name, type }))
  return compareAnswers({ id: one.id, sql: one.sql, ...wanted }, { columns: plain, rows })
}

describe('Statements over files in the shapes of public bug reports', () => {
  it('the list of wrong cases names only cases that exist', () => {
    const known = cases.map(({ id, class: of }) => `${id} ${of}`)
    expect(Object.entries(notYetRight).filter(([id, of]) => !known.includes(`${id} ${of}`))).toEqual([])
  })

  const right = cases.filter(({ id }) => !(id in notYetRight))
  it.each(right.map((one) => [`${one.class} (${one.id})`, one] as const))(
    '%s: returns the right answer',
    async (_, one) => {
      expect(await difference(one)).toBeUndefined()
    },
  )
})
