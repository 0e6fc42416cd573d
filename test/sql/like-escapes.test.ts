import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../src/shared/engine-error.ts'
import { dialectBytes, dialectLiteral } from '../support/hostile-texts.ts'
import { openLibraryRunner, type LibraryRunner } from '../support/library-runner.ts'

/**
 * The front end reads a constant pattern before the statement runs. The engine reads any other pattern. Both must
 * agree.
 */
describe('LIKE … ESCAPE with a computed pattern', () => {
  let runner: LibraryRunner
  beforeAll(async () => {
    runner = await openLibraryRunner()
  })
  afterAll(() => runner.close())

  const outcome = async (sql: string): Promise<unknown> => {
    try {
      return (await runner.run(sql)).rows
    } catch (error) {
      if (error instanceof EngineError) return `${error.errorName}: ${error.message}`
      throw error
    }
  }

  const both = async (value: string, pattern: string, escape: string): Promise<[unknown, unknown]> => {
    const from = `(SELECT ${dialectBytes(value)} v, ${dialectBytes(pattern)} p, ${dialectBytes(escape)} e)`
    return [
      await outcome(`SELECT v LIKE ${dialectLiteral(pattern)} ESCAPE ${dialectLiteral(escape)} FROM ${from}`),
      await outcome(`SELECT v LIKE p ESCAPE e FROM ${from}`),
    ]
  }

  it.each([
    // The private-use characters were once marks in the translated pattern.
    ['\ue000', '\ue000', '#', [[true]]],
    ['#', '\ue000', '#', [[false]]],
    ['a\ue001b', 'a%b', '#', [[true]]],
    ['%', '\ue001', '#', [[false]]],
    ['x', '\ue002', '#', [[false]]],
    ['\ue000\ue001', '\ue000\ue000\ue001', '\ue000', [[true]]],
    ['50%_#', '50#%#_##', '#', [[true]]],
    ['50xy#', '50#%#_##', '#', [[false]]],
    ['%', '%%', '%', [[true]]],
    ['a%', '_%%%', '%', 'INVALID_FUNCTION_ARGUMENT'],
    ['__', '____', '_', [[true]]],
    ['a\n\0b', 'a_\0%', '!', [[true]]],
    ['\0%', '\0\0\0%', '\0', [[true]]],
    ['^]\\-', '^]\\-', '^', 'INVALID_FUNCTION_ARGUMENT'],
    ['^]\\-', '^^]\\-', '^', [[true]]],
    ['a%', 'a]%', ']', [[true]]],
    ['a', 'a#', '#', 'INVALID_FUNCTION_ARGUMENT'],
    ['a', 'a', '##', 'INVALID_FUNCTION_ARGUMENT'],
    ['a%', 'a%', '', 'INVALID_FUNCTION_ARGUMENT'],
    ['\u{1f468}%', '_\u{1f468}%', '\u{1f468}', [[true]]],
    ['', '', '#', [[true]]],
  ])('%j LIKE %j ESCAPE %j', async (value, pattern, escape, expected) => {
    const [constant, computed] = await both(value, pattern, escape)
    const short = (found: unknown): unknown => (typeof found === 'string' ? found.split(':')[0] : found)
    expect([short(constant), short(computed)]).toEqual([expected, expected])
  })

  it('matches like the same pattern as a constant', async () => {
    const character = fc.constantFrom(...'%_#\\^]-[.a', '\0', '\n', '\ue000', '\ue001', '\ue002', '\u0301', '👩')
    const text = fc.array(character, { maxLength: 6 }).map((all) => all.join(''))
    await fc.assert(
      fc.asyncProperty(text, text, character, async (value, pattern, escape) => {
        const [constant, computed] = await both(value, pattern, escape)
        expect(computed).toEqual(constant)
      }),
      { numRuns: 200, seed: 14 },
    )
  })
})
