import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { locate, textOrigin } from '../../../src/sql/syntax/span.ts'

describe('The line and column of an offset', () => {
  it.each([
    ['SELECT 1', 0, 1, 1],
    ['SELECT 1', 7, 1, 8],
    ['SELECT\n1', 7, 2, 1],
    ['SELECT\n1', 6, 1, 7],
    ['SELECT\r\n  1', 10, 2, 3],
    // Columns count code points: a surrogate pair is one.
    [`'😀' x`, 5, 1, 5],
    [`'😀'\n😀 x`, 8, 2, 3],
  ])('%j at %i: line %i, column %i', (sql, offset, lineNumber, columnNumber) => {
    expect(locate(sql, offset)).toEqual({ lineNumber, columnNumber })
  })

  it('shift in an embedded text only on its first line', () => {
    const origin = { lineNumber: 3, columnNumber: 20 }
    expect(locate('a b\nc d', 2, origin)).toEqual({ lineNumber: 3, columnNumber: 22 })
    expect(locate('a b\nc d', 6, origin)).toEqual({ lineNumber: 4, columnNumber: 3 })
  })

  it('equal those from counting lines and code points', () => {
    const texts = fc.array(fc.constantFrom('a', '\n', '😀', 'é', '\r', ' '), { maxLength: 30 })
    fc.assert(
      fc.property(texts, fc.nat(30), (pieces, count) => {
        const before = pieces.slice(0, count).join('')
        const lines = before.split('\n')
        const expected = { lineNumber: lines.length, columnNumber: [...lines.at(-1)!].length + 1 }
        expect(locate(pieces.join(''), before.length, textOrigin)).toEqual(expected)
      }),
    )
  })
})
