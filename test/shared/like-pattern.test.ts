import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { likeTest, onlyMatch } from '../../src/shared/like-pattern.ts'

/** Converts the pattern into a regular expression. */
function regexp(pattern: string): RegExp {
  const parts = [...pattern].map((c) =>
    c === '%' ? '[^]*' : c === '_' ? '[^]' : c.replace(/[.*+?^${}()|[\]\\]/, '\\$&'),
  )
  return new RegExp(`^${parts.join('')}$`, 'u')
}

describe('LIKE', () => {
  it('matches like the same regular expression, for any text and pattern', () => {
    const letters = fc.array(fc.constantFrom('a', 'b', '😀', '.')).map((all) => all.join(''))
    const pattern = fc.array(fc.constantFrom('a', 'b', '%', '_', '.', '😀')).map((all) => all.join(''))
    fc.assert(
      fc.property(letters, pattern, (text, like) => {
        expect(likeTest({ pattern: like })(text)).toBe(regexp(like).test(text))
      }),
      { numRuns: 3000 },
    )
  })

  it('takes the character after the escape character literally', () => {
    expect(likeTest({ pattern: 'a\\_b%', escape: '\\' })('a_bc')).toBe(true)
    expect(likeTest({ pattern: 'a\\_b%', escape: '\\' })('axbc')).toBe(false)
    expect(likeTest({ pattern: 'a_b' })('a\\b')).toBe(true)
  })

  it('accepts every text if the pattern is invalid', () => {
    for (const like of [
      { pattern: 'a\\', escape: '\\' },
      { pattern: 'a\\b', escape: '\\' },
      { pattern: 'a', escape: 'xy' },
    ]) {
      expect(likeTest(like)('anything')).toBe(true)
      expect(onlyMatch(like)).toBeUndefined()
    }
  })

  it('returns the only text that can match, if there is just one', () => {
    expect(onlyMatch({ pattern: 'order\\_items', escape: '\\' })).toBe('order_items')
    expect(onlyMatch({ pattern: 'order_items' })).toBeUndefined()
    expect(onlyMatch({ pattern: '' })).toBe('')
  })

  it('matches a pattern with many wildcards fast', () => {
    const pattern = '%a'.repeat(200) + 'b'
    expect(likeTest({ pattern })('a'.repeat(5000))).toBe(false)
  })
})
