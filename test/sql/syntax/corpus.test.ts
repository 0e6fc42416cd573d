import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it } from 'vitest'
import { EngineError } from '../../../src/shared/engine-error.ts'
import { parseStatement } from '../../../src/sql/syntax/parser.ts'
import { printStatement } from '../../../src/sql/syntax/printer.ts'
import { conformanceStatements, refusedStatements } from '../../support/sql/recorded-statements.ts'
import { withoutSpans } from '../../support/sql/without-spans.ts'

const conformance = conformanceStatements()
const refused = refusedStatements()

function errorOf(sql: string): EngineError | undefined {
  try {
    parseStatement(sql)
    return undefined
  } catch (error) {
    if (error instanceof EngineError) return error
    throw error
  }
}

/** SYNTAX_ERRORs that come after parsing: in texts inside literals, and in names of four parts. */
const foundLater = /^execute immediate|json_value\('\{\}'|from (?:a\.b\.c\.d|tpch\.tiny\.nation\.name)$/i

describe('Statements recorded from Trino', () => {
  it('parse if Trino parsed them', () => {
    const wrong = [...conformance, ...refused]
      .filter(({ errorName }) => errorName !== 'SYNTAX_ERROR')
      .map(({ id, sql }) => ({ id, sql, message: errorOf(sql)?.message }))
      .filter(({ message }) => message !== undefined)
    expect(wrong).toEqual([])
  })

  it('are refused with SYNTAX_ERROR if Trino refused them so', () => {
    const wrong = [...conformance, ...refused]
      .filter(({ errorName, sql }) => errorName === 'SYNTAX_ERROR' && !foundLater.test(sql))
      .filter(({ sql }) => errorOf(sql)?.errorName !== 'SYNTAX_ERROR')
    expect(wrong).toEqual([])
  })

  const syntaxErrors = refused.filter(({ errorName, sql }) => errorName === 'SYNTAX_ERROR' && !foundLater.test(sql))

  it("are refused at Trino's line and column", () => {
    const wrong = syntaxErrors.filter(({ sql, line, column }) => {
      const location = errorOf(sql)?.location
      return location?.lineNumber !== line || location?.columnNumber !== column
    })
    expect(wrong).toEqual([])
  })

  it("are refused in Trino's words, apart from the list of expected tokens", () => {
    const words = (message: string | undefined): string | undefined => message?.replace(/Expecting: .*/s, '')
    const wrong = syntaxErrors.filter(({ sql, message }) => words(errorOf(sql)?.message) !== words(message))
    expect(wrong).toEqual([])
    const same = syntaxErrors.filter(({ sql, message }) => errorOf(sql)?.message === message)
    expect(same.length / syntaxErrors.length).toBeGreaterThan(0.9)
  })

  it('are the same after printing and parsing again', () => {
    const parsed = [...conformance, ...refused].filter(({ sql }) => errorOf(sql) === undefined)
    expect(parsed.length).toBeGreaterThan(2000)
    const wrong = parsed.filter(({ sql }) => {
      const statement = parseStatement(sql)
      const again = parseStatement(printStatement(statement))
      return !isDeepStrictEqual(withoutSpans(again), withoutSpans(statement))
    })
    expect(wrong).toEqual([])
  })
})
