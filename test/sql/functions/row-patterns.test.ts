import { describe, expect, it } from 'vitest'
import { findMatches, type PatternCode } from '../../../src/sql/functions/javascript/row-patterns.ts'

const [A, B] = [0, 1]
/** Rows as the variables they may be: `a`, `b`, `x` for both, `.` for none. */
const masks = (rows: string): number[] => [...rows].map((row) => ({ a: 1, b: 2, x: 3, '.': 0 })[row]!)
const matches = (
  rows: string,
  pattern: PatternCode,
  to: 'past last' | 'next' | 'first' | 'last' = 'past last',
  variables: readonly number[] = [],
): string[] => findMatches(masks(rows), { pattern, skip: { to, variables } })
const many = (repeat: PatternCode, greedy = true): PatternCode => ({ repeat, least: 0, most: null, greedy })

describe('row pattern matching', () => {
  it('takes the first alternative that leads to a match, and goes back where it does not', () => {
    expect(matches('xx', { any: [A, B] })).toEqual(['1,A', '2,A'])
    expect(matches('xb', { all: [{ any: [A, B] }, B] })).toEqual(['1,AB'])
    expect(matches('xxb', { all: [many(A), B] })).toEqual(['1,AAB'])
    expect(matches('aa', { all: [many(A), B] })).toEqual([])
  })

  it('is greedy unless told otherwise', () => {
    expect(matches('aaa', many(A))).toEqual(['1,AAA'])
    expect(matches('aab', { all: [many(A, false), B] })).toEqual(['1,AAB'])
    expect(matches('aa', many(A, false))).toEqual(['1,', '2,'])
  })

  it('keeps counts', () => {
    const twoToThree: PatternCode = { repeat: A, least: 2, most: 3, greedy: true }
    expect(matches('aaaaa', twoToThree)).toEqual(['1,AAA', '4,AA'])
    expect(matches('a.aa', twoToThree)).toEqual(['3,AA'])
  })

  it('anchors at the ends of the partition', () => {
    expect(matches('ab', { all: [{ start: true }, B] })).toEqual([])
    expect(matches('bab', { all: [B, { end: true }] })).toEqual(['3,B'])
  })

  it('an empty match does not go on for ever', () => {
    expect(matches('..', many(A))).toEqual(['1,', '2,'])
    expect(matches('aa', many(many(A)))).toEqual(['1,AA'])
  })

  it('finds matches of any length', () => {
    const rows = 'a'.repeat(200_000)
    expect(matches(`${rows}b`, { all: [many(A), B] })).toEqual([`1,${'A'.repeat(200_000)}B`])
  })

  it('begins the next match where AFTER MATCH says', () => {
    const ab: PatternCode = { all: [many(A), B] }
    expect(matches('aab', ab, 'next')).toEqual(['1,AAB', '2,AB', '3,B'])
    expect(matches('abab', { all: [A, B, { any: [A, { all: [] }] }] }, 'last', [B])).toEqual(['1,ABA', '3,AB'])
    expect(() => matches('ab', { all: [A, B] }, 'first', [A])).toThrow('cannot skip to first row of match')
  })

  it('gives up on a pattern that explodes', () => {
    const nested = Array.from({ length: 6 }).reduce<PatternCode>((inner) => many(inner), A)
    expect(() => matches(`${'a'.repeat(40)}`, { all: [nested, nested, nested, B] })).toThrow('too many attempts')
  })
})
