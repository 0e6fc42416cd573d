import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../src/shared/engine-error.ts'
import { compareAnswers } from '../support/corpus.ts'
import { FULL_TESTS } from '../support/full-tests.ts'
import { openLibraryRunner, type LibraryRunner } from '../support/library-runner.ts'
import { literalsToColumns } from '../support/literals-to-columns.ts'

/**
 * An answer of Trino: derived from its semantics, or recorded from it later (all of queries-in-clauses and recorded).
 */
interface Derived {
  readonly sql: string
  readonly types?: readonly string[]
  readonly rows?: readonly (readonly unknown[])[]
  /** The name of the expected error. */
  readonly error?: string
  /** The line and column of the error. */
  readonly at?: readonly [number, number]
  /** `false`: the literals of the statement must stay literals. */
  readonly columns?: false
}

const folder = new URL('derived/', import.meta.url)
const topics = readdirSync(folder).map((file) => file.replace('.jsonl', ''))

const entriesOf = (topic: string): readonly Derived[] =>
  readFileSync(new URL(`${topic}.jsonl`, folder), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Derived)

describe('Answers derived from Trino, for literals and for columns', { timeout: 900_000 }, () => {
  let runner: LibraryRunner
  beforeAll(async () => {
    runner = await openLibraryRunner()
  })
  afterAll(() => runner.close())

  it.each(topics)('%s', async (topic) => {
    const differing: string[] = []
    for (const [index, entry] of entriesOf(topic).entries()) {
      // In CI every second statement also runs with columns.
      const withColumns = entry.columns !== false && (FULL_TESTS || index % 2 === 0)
      const columns = withColumns ? literalsToColumns(entry.sql) : undefined
      for (const sql of columns === undefined ? [entry.sql] : [entry.sql, columns]) {
        const difference = await differenceOf(sql, entry)
        if (difference !== undefined) differing.push(`${sql}\n    ${difference}`)
      }
    }
    expect(differing).toEqual([])
  })

  async function differenceOf(sql: string, { types, rows, error, at }: Derived): Promise<string | undefined> {
    try {
      const answer = await runner.run(sql)
      if (error !== undefined) return `succeeded, expected ${error}`
      const columns = answer.columns.map(({ name, type }, i) => ({ name, type: types?.[i] ?? type }))
      return compareAnswers({ id: '', sql, columns, rows: rows ?? [] }, answer)
    } catch (caught) {
      const name = caught instanceof EngineError ? caught.errorName : 'not an EngineError'
      const { lineNumber, columnNumber } = (caught instanceof EngineError ? caught.location : undefined) ?? {}
      const placed = at === undefined || (lineNumber === at[0] && columnNumber === at[1])
      if (name === error) return placed ? undefined : `at ${lineNumber}:${columnNumber}, expected ${at.join(':')}`
      return `${name}: ${caught instanceof Error ? caught.message : String(caught)}`
    }
  }
})
