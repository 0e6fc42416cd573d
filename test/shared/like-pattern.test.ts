import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { likeTest, onlyMatch } from '../../src/shared/like-pattern.ts'

/** The pattern as a regular expression. */
function regexp(pattern: string): RegExp {
  const parts = [...pattern].map((c) =>
    c === '%' ? '[^]*' : c === '_' ? '[^]' : c.replace(/[.*+?^${}()|[\]\\]/, '\\$&'),
  )
  return new RegExp(`^${parts.join('')}$`, 'u')
}

describe('LIKE', () => {
  it('is what a regular expression says, for any text and pattern', () => {
    const letters = fc.array(fc.constantFrom('a', 'b', '😀', '.')).map((all) => all.join(''))
    const pattern = fc.array(fc.constantFrom('a', 'b', '%', '_', '.', '😀')).map((all) => all.join(''))
    fc.assert(
      fc.property(letters, pattern, (text, like) => {
        expect(likeTest({ pattern: like })(text)).toBe(regexp(like).test(text))
      }),
      { numRuns: 3000 },
    )
  })

  it('takes what is behind the escape as it is', () => {
    expect(likeTest({ pattern: 'a\\_b%', escape: '\\' })('a_bc')).toBe(true)
    expect(likeTest({ pattern: 'a\\_b%', escape: '\\' })('axbc')).toBe(false)
    expect(likeTest({ pattern: 'a_b' })('a\\b')).toBe(true)
  })

  it('leaves every text to a pattern that is none', () => {
    for (const like of [
      { pattern: 'a\\', escape: '\\' },
      { pattern: 'a\\b', escape: '\\' },
      { pattern: 'a', escape: 'xy' },
    ]) {
      expect(likeTest(like)('anything')).toBe(true)
      expect(onlyMatch(like)).toBeUndefined()
    }
  })

  it('names the one text that fulfils it', () => {
    expect(onlyMatch({ pattern: 'order\\_items', escape: '\\' })).toBe('order_items')
    expect(onlyMatch({ pattern: 'order_items' })).toBeUndefined()
    expect(onlyMatch({ pattern: '' })).toBe('')
  })

  it('takes no time to speak of for many signs of any text', () => {
    const pattern = '%a'.repeat(200) + 'b'
    expect(likeTest({ pattern })('a'.repeat(5000))).toBe(false)
  })
})
