import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../src/shared/engine-error.ts'
import { corpusSession, openLibraryRunner, type LibraryRunner } from '../support/library-runner.ts'

interface ErrorEntry {
  readonly sql: string
  readonly errorName: string
  readonly message: string
  readonly line: number | null
  readonly column: number | null
}

const entries = readFileSync(new URL('../fixtures/analyzer-errors.jsonl', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line) as ErrorEntry)

/**
 * The minimum percentages: of statements with Trino's error name, and of located errors with Trino's line and column.
 */
const floors = { names: 98, positions: 98.5 }

describe('Errors of the analyser', { timeout: 300_000 }, () => {
  let runner: LibraryRunner
  beforeAll(async () => {
    runner = await openLibraryRunner()
  })
  afterAll(() => runner.close())

  it("have the names and locations of Trino's errors", async () => {
    const wrong: string[] = []
    let [names, positions, positioned] = [0, 0, 0]
    for (const entry of entries) {
      const error = await errorOf(entry.sql)
      const located = entry.line !== null
      const sameName = error?.errorName === entry.errorName
      const samePosition = error?.location?.lineNumber === entry.line && error?.location?.columnNumber === entry.column
      if (sameName) names++
      if (located) positioned++
      if (located && samePosition) positions++
      if (!sameName || (located && !samePosition)) {
        wrong.push(
          `${entry.sql}\n    ${error?.errorName} ${error?.message}, expected ${entry.errorName} ${entry.message}`,
        )
      }
    }
    if (process.env['CONFORMANCE_DETAILS'] !== undefined) console.log(wrong.join('\n'))
    console.log(`error names ${names} of ${entries.length}, places ${positions} of ${positioned}`)
    expect((100 * names) / entries.length).toBeGreaterThanOrEqual(floors.names)
    expect((100 * positions) / positioned).toBeGreaterThanOrEqual(floors.positions)
  })

  async function errorOf(sql: string): Promise<EngineError | undefined> {
    try {
      await runner.run(sql, { ...corpusSession, user: 'lab' })
      return undefined
    } catch (error) {
      return error instanceof EngineError ? error : undefined
    }
  }
})
