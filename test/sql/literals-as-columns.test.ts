import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../src/shared/engine-error.ts'
import { dialectBytes, dialectLiteral, hostileTexts } from '../support/hostile-texts.ts'
import { openLibraryRunner, type LibraryRunner } from '../support/library-runner.ts'
import { textStatements } from '../support/text-expressions.ts'
import { representatives } from '../support/full-tests.ts'

/** A text is data, whatever it holds: a literal gives the same answer as a column with this value. */
describe('A literal gives the same answer as a column of the same value', { timeout: 300_000 }, () => {
  let runner: LibraryRunner
  beforeAll(async () => {
    runner = await openLibraryRunner()
  })
  afterAll(() => runner.close())

  const outcome = async (sql: string): Promise<unknown> => {
    try {
      return (await runner.run(sql)).rows
    } catch (error) {
      if (!(error instanceof EngineError)) return `${String(error)}`
      return error.cause === undefined
        ? `${error.errorName}: ${error.message}`
        : `${error.errorName}: ${String(error.cause)}`
    }
  }

  it.each(textStatements.map((statement, index) => ({ ...statement, index })))('$name', async ({ of, index }) => {
    const wrong: unknown[] = []
    for (const text of ['abc', '', ...representatives(hostileTexts, 3, index)]) {
      const from = `(SELECT ${dialectBytes(text)} AS c, 1 AS n)`
      const [literal, column] = [await outcome(of(dialectLiteral(text), from)), await outcome(of('c', from))]
      if (JSON.stringify(literal) !== JSON.stringify(column)) wrong.push({ text, literal, column })
    }
    expect(wrong).toEqual([])
  })
})
