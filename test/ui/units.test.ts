import { describe, expect, it } from 'vitest'
import { countedAs, shownDuration } from '../../console/parts/units.ts'

describe('A count with its word', () => {
  it.each([
    [0, 'row', '0 rows'],
    [1, 'row', '1 row'],
    [1_200, 'row', '1,200 rows'],
    [1, 'query', '1 query'],
    [2, 'query', '2 queries'],
    [undefined, 'row', '? rows'],
  ])('shows %s and %s as %s', (count, one, text) => {
    expect(countedAs(count, one)).toBe(text)
  })
})

describe('A duration', () => {
  it.each([
    [0, '0 s'],
    [1_500_000, '1.5 ms'],
    [999_960_000, '1 s'],
    [59_940_000_000, '59.9 s'],
    [59_960_000_000, '1 min 0 s'],
    [125e9, '2 min 5 s'],
    [47 * 3600e9, '47 h 0 min'],
    [100 * 3600e9, '4 d 4 h'],
  ])('shows %s ns as %s', (nanos, text) => {
    expect(shownDuration(nanos)).toBe(text)
  })
})
