import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseExpressionText, parseStatement, parseTypeSyntax } from '../../../src/sql/syntax/parser.ts'
import { printExpression, printStatement, printTypeSyntax } from '../../../src/sql/syntax/printer.ts'
import { arbitraryExpression, arbitraryStatement, arbitraryType } from '../../support/sql/arbitrary-statement.ts'
import { withoutSpans } from '../../support/sql/without-spans.ts'
import { propertyRuns } from '../../support/full-tests.ts'

const options = { numRuns: propertyRuns(700), seed: 20241121 }

/**
 * Compares a tree with itself after printing and parsing. A failure shows the text, because trees of this size are
 * hard to read.
 */
function survives<T>(node: T, print: (node: T) => string, parse: (text: string) => T): void {
  const text = print(node)
  try {
    expect(withoutSpans(parse(text))).toEqual(withoutSpans(node))
  } catch (error) {
    throw new Error(`Not the same after printing:\n${text}`, { cause: error })
  }
}

describe('The printer and the parser of SQL', () => {
  it('agree on random types', () => {
    fc.assert(
      fc.property(arbitraryType, (type) => survives(type, printTypeSyntax, parseTypeSyntax)),
      options,
    )
  })

  it('agree on random expressions', () => {
    fc.assert(
      fc.property(arbitraryExpression, (expression) => survives(expression, printExpression, parseExpressionText)),
      options,
    )
  })

  it('agree on random statements', () => {
    fc.assert(
      fc.property(arbitraryStatement, (statement) => survives(statement, printStatement, parseStatement)),
      options,
    )
  })
})
