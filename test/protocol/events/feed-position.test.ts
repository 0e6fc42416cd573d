import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BEGINNING, formatFeedId, parseFeedId } from '../../../src/protocol/events/feed-position.ts'

describe('An id of the event feed', () => {
  it('names the last offset read in each log partition', () => {
    expect(formatFeedId([124n])).toBe('0-123')
    expect(formatFeedId([124n, 0n, 46n])).toBe('0-123,2-45')
    expect(formatFeedId([0n, 0n])).toBe(BEGINNING)
    expect(parseFeedId('0-123', 1)).toEqual([124n])
    expect(parseFeedId('0-123,2-45', 3)).toEqual([124n, 0n, 46n])
    expect(parseFeedId(BEGINNING, 2)).toEqual([0n, 0n])
  })

  it('parses back to the offsets that it was made from', () => {
    const offset = fc.bigInt({ min: 0n, max: 10n ** 17n })
    fc.assert(
      fc.property(fc.array(offset, { minLength: 1, maxLength: 8 }), (next) => {
        expect(parseFeedId(formatFeedId(next), next.length)).toEqual(next)
      }),
    )
  })

  it.each(['', '123', '0-', '-1', '0-1,', '1-5', '0-1;1-2', '0-1e3', '0x0-1', ' 0-1', `0-${'9'.repeat(30)}`])(
    'is not valid as %j',
    (text) => {
      expect(parseFeedId(text, 1)).toBeUndefined()
    },
  )
})
