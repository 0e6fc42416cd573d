import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ConditionCode } from '../../../src/duckdb/scripts/pattern-conditions.ts'
import { findMatches, type PatternCode } from '../../../src/duckdb/scripts/row-patterns.ts'
import { propertyRuns } from '../../support/full-tests.ts'

const [A, B] = [0, 1]
/** Turns rows into the variables that may match: `a`, `b`, `x` for both, `.` for none. */
const masks = (rows: string): number[] => [...rows].map((row) => ({ a: 1, b: 2, x: 3, '.': 0 })[row]!)
const matches = (
  rows: string,
  pattern: PatternCode,
  to: 'past last' | 'next' | 'first' | 'last' = 'past last',
  variables: readonly number[] = [],
): string[] => findMatches(masks(rows), { pattern, skip: { to, variables } })
const many = (repeat: PatternCode, greedy = true): PatternCode => ({ repeat, least: 0, most: null, greedy })

describe('Row pattern matching', () => {
  it('takes the first alternative that leads to a match, and backtracks otherwise', () => {
    expect(matches('xx', { any: [A, B] })).toEqual(['1,A', '2,A'])
    expect(matches('xb', { all: [{ any: [A, B] }, B] })).toEqual(['1,AB'])
    expect(matches('xxb', { all: [many(A), B] })).toEqual(['1,AAB'])
    expect(matches('aa', { all: [many(A), B] })).toEqual([])
  })

  it('is greedy unless the pattern says otherwise', () => {
    expect(matches('aaa', many(A))).toEqual(['1,AAA'])
    expect(matches('aab', { all: [many(A, false), B] })).toEqual(['1,AAB'])
    expect(matches('aa', many(A, false))).toEqual(['1,', '2,'])
  })

  it('counts repetitions', () => {
    const twoToThree: PatternCode = { repeat: A, least: 2, most: 3, greedy: true }
    expect(matches('aaaaa', twoToThree)).toEqual(['1,AAA', '4,AA'])
    expect(matches('a.aa', twoToThree)).toEqual(['3,AA'])
  })

  it('anchors a pattern at the ends of the partition', () => {
    expect(matches('ab', { all: [{ start: true }, B] })).toEqual([])
    expect(matches('bab', { all: [B, { end: true }] })).toEqual(['3,B'])
  })

  it('ends after an empty match', () => {
    expect(matches('..', many(A))).toEqual(['1,', '2,'])
    expect(matches('aa', many(many(A)))).toEqual(['1,AA'])
  })

  it('finds a match of 200,001 rows', () => {
    const rows = 'a'.repeat(200_000)
    expect(matches(`${rows}b`, { all: [many(A), B] })).toEqual([`1,${'A'.repeat(200_000)}B`])
  })

  it('begins the next match where AFTER MATCH says', () => {
    const ab: PatternCode = { all: [many(A), B] }
    expect(matches('aab', ab, 'next')).toEqual(['1,AAB', '2,AB', '3,B'])
    expect(matches('abab', { all: [A, B, { any: [A, { all: [] }] }] }, 'last', [B])).toEqual(['1,ABA', '3,AB'])
    expect(() => matches('ab', { all: [A, B] }, 'first', [A])).toThrow('cannot skip to first row of match')
  })

  it('gives up on a pattern with too many attempts', () => {
    const nested = Array.from({ length: 6 }).reduce<PatternCode>((inner) => many(inner), A)
    const program = { pattern: { all: [nested, nested, nested, B] }, skip: { to: 'next', variables: [] } } as const
    const rows = masks('a'.repeat(40))
    expect(findMatches(rows, program)).toEqual([])
    // A condition over earlier rows may have another value in each attempt, so no attempt can be skipped.
    const always: ConditionCode = { is: 'not', value: { is: 'is null', value: { is: 'match number' } } }
    expect(() => findMatches(rows, { ...program, conditions: { [B]: always } })).toThrow('too many attempts')
  })

  it('does not take exponential time in patterns with many possible matches', () => {
    const some = (repeat: PatternCode): PatternCode => ({ repeat, least: 1, most: null, greedy: true })
    expect(matches('a'.repeat(2000), { all: [some(some(A)), B] })).toEqual([])
    const code: PatternCode = { any: [A, B, { all: [A, B] }] }
    expect(matches(`${'x'.repeat(300)}.`, { all: [many(code), { start: true }] })).toEqual(['1,'])
  })

  it('finds the same matches as a search of all alternatives', () => {
    const leaf = fc.constantFrom<PatternCode>(A, B, { all: [] }, { start: true }, { end: true })
    const { pattern } = fc.letrec<{ pattern: PatternCode }>((tie) => ({
      pattern: fc.oneof(
        { maxDepth: 4, depthIdentifier: 'p' },
        leaf,
        fc.array(tie('pattern'), { maxLength: 3 }).map((all) => ({ all })),
        fc.array(tie('pattern'), { maxLength: 3 }).map((any) => ({ any })),
        tie('pattern').map((excluded) => ({ excluded })),
        fc
          .tuple(tie('pattern'), fc.nat(2), fc.option(fc.nat(2)), fc.boolean())
          .map(([repeat, least, more, greedy]) => ({
            repeat,
            least,
            most: more === null ? null : Math.max(1, least + more),
            greedy,
          })),
      ),
    }))
    // A condition that may look back forces a search of all alternatives. No row has its variable.
    const never: ConditionCode = { is: 'match number' }
    const rows = fc.string({ unit: fc.constantFrom('a', 'b', 'x', '.'), maxLength: 6 })
    fc.assert(
      fc.property(pattern, rows, fc.constantFrom('past last', 'next'), (code, text, to) => {
        const program = { pattern: code, skip: { to, variables: [] } } as const
        const every = (): string[] => findMatches(masks(text), { ...program, conditions: { 5: never } })
        let expected: string[]
        try {
          expected = every()
        } catch {
          return
        }
        expect(findMatches(masks(text), program)).toEqual(expected)
      }),
      { numRuns: propertyRuns(2000) },
    )
  })
})
