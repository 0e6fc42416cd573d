import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { joniToV8, PatternError } from '../../../src/duckdb/regexp/joni-to-v8.ts'

const matches = (pattern: string, text: string): string[] =>
  [...text.matchAll(new RegExp(joniToV8(pattern).source, 'gv'))].map(([found]) => found)

describe('`joniToV8`', () => {
  it.each([
    ['a.c', 'abc a\nc', ['abc']],
    ['(?s)a.c', 'abc a\nc', ['abc', 'a\nc']],
    ['(?i)straSSe', 'STRASSE', ['STRASSE']],
    ['[[:alpha:]]+', 'ab1é', ['ab', 'é']],
    ['[a-z&&[^aeiou]]+', 'quipu', ['q', 'p']],
    [String.raw`\bé\w`, 'éa bé', ['éa']],
    // Possessive and atomic: the pattern does not backtrack.
    ['a++a', 'aaa', []],
    ['(?>a+)b', 'aab', ['aab']],
    [String.raw`(a)\1`, 'aaa', ['aa']],
    [String.raw`\Qa.b\E`, 'a.b axb', ['a.b']],
    ['a{2}', 'aaaaa', ['aa', 'aa']],
    // V8 unrolls these repetitions, with a negated class in each round.
    ['(?:[^a]?1)+', '$1 a1', ['$1', '1']],
    ['(?:[^,]+,)+;', 'a,b,c,;', ['a,b,c,;']],
    ['(?:[^a-z&&[^,]]?1)+', '$1,1a1', ['$1,1', '1']],
    [String.raw`(?:\W?\S?1)+`, 'a1 1b', ['a1 1']],
    [String.raw`(?:\D?1)+`, 'a1b1', ['a1b1']],
    ['(?:[[:^alpha:]]?1)+', '$1', ['$1']],
    [String.raw`(?:\P{alpha}?1)+`, '$1', ['$1']],
    ['(?:.?1)+', 'a1b1', ['a1b1']],
    [String.raw`(?m)(?:^[^a]?1\n?)+`, 'b1\n1', ['b1\n1']],
  ])('converts %s so that it finds the right matches in %j', (pattern, text, found) => {
    expect(matches(pattern, text)).toEqual(found)
  })

  it.each([
    ['[z-a]', 'empty range in char class'],
    ['[a-c[z-y]]', 'empty range in char class'],
    ['[\\t-\\x01]', 'invalid pattern'],
    ['(?<=a)\\k<none>', 'invalid pattern'],
    ['a{2,1}', 'upper is smaller than lower in repeat range'],
    ['(a', 'end pattern with unmatched parenthesis'],
    ['a)', 'unmatched close parenthesis'],
  ])('refuses %s with its own error, before V8 does', (pattern, message) => {
    expect(() => joniToV8(pattern)).toThrow(new PatternError(message))
  })

  it('makes a pattern that V8 accepts, or throws a PatternError, for random input', () => {
    const pieces = fc.constantFrom(
      ...String.raw`a z - [ ] ^ && \d \p{L} \p{Xx} \k<n> ( (?<n> (?: (?= ) | * + ? {2} {3,1} . $ \Q \1 é 😀 [:alpha:]`.split(
        ' ',
      ),
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        try {
          new RegExp(joniToV8(parts.join('')).source, 'v')
        } catch (error) {
          expect(error).toBeInstanceOf(PatternError)
        }
      }),
      { numRuns: 3000 },
    )
  })
})
