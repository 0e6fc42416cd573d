import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../src/shared/engine-error.ts'
import { openLibraryRunner, type LibraryRunner } from '../support/library-runner.ts'
import { mutate, SqlGenerator } from '../support/sql-generator.ts'

/** The number of statements of each kind. `SQL_FUZZ=25000` makes a full run. */
const count = Number(process.env['SQL_FUZZ'] ?? 400)
const seed = Number(process.env['SQL_FUZZ_SEED'] ?? 1)

/** Words of DuckDB that no message to a client may contain. */
const DUCKDB_TEXT = /\b(Binder|Parser|Catalog|Conversion|Invalid Input|Not implemented|INTERNAL) Error\b|DuckDB|u_raise/

/** Statements that are slow by their meaning, not by a fault of Quipu. */
const EXPENSIVE = /repeat|sequence|levenshtein|combinations|lpad|rpad|ngrams|\d{7,}/i

describe('Random statements', { timeout: 1_800_000 }, () => {
  let runner: LibraryRunner
  beforeAll(async () => {
    runner = await openLibraryRunner()
  })
  afterAll(() => runner.close())

  /** Describes a wrong outcome. Rows and errors in Trino's words are right and give undefined. */
  async function fault(sql: string): Promise<string | undefined> {
    try {
      await runner.run(sql)
      return undefined
    } catch (error) {
      if (!(error instanceof EngineError)) return `${sql}\n    ${error instanceof Error ? error.stack : String(error)}`
      const failed = error.errorName === 'GENERIC_INTERNAL_ERROR' && error.cause !== undefined
      if (failed) return `${sql}\n    ${error.message}: ${String(error.cause)}`
      return DUCKDB_TEXT.test(error.message) ? `${sql}\n    ${error.message}` : undefined
    }
  }

  it('give rows or an error of the dialect if the grammar generates them', async () => {
    const generator = new SqlGenerator(seed)
    const faults: string[] = []
    for (let i = 0; i < count; i++) {
      const found = await fault(generator.next())
      if (found !== undefined) faults.push(found)
    }
    expect(faults).toEqual([])
  })

  it('give rows or an error of the dialect if they are made from pieces of the corpus', async () => {
    const folder = new URL('../conformance/', import.meta.url)
    const corpus = readdirSync(folder)
      .filter((file) => file.endsWith('.jsonl') && file !== 'tpch.jsonl' && !file.startsWith('extra-'))
      .flatMap((file) => readFileSync(new URL(file, folder), 'utf8').split('\n'))
      .filter((line) => line !== '')
      .map((line) => (JSON.parse(line) as { sql: string }).sql)
    const next = mutate(corpus, seed)
    const faults: string[] = []
    for (let i = 0; i < count; i++) {
      const sql = next()
      if (EXPENSIVE.test(sql)) continue
      const found = await fault(sql)
      if (found !== undefined) faults.push(found)
    }
    expect(faults).toEqual([])
  })
})
