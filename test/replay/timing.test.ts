import { describe, expect, it } from 'vitest'
import { median, speedOf } from '../../src/replay/timing.ts'

describe('how fast the other side is', () => {
  it.each<[string, number[], number[], object | undefined]>([
    ['slower beyond noise', [100, 101, 99], [150, 151, 149], { kind: 'slower', hereMs: 100, thereMs: 150, runs: 3 }],
    ['faster beyond noise', [100, 101, 99], [50, 51, 49], { kind: 'faster', hereMs: 100, thereMs: 50, runs: 3 }],
    ['noise of one side', [100, 160, 60], [150, 151, 149], undefined],
    ['one run that is far off', [100, 101, 99, 100, 100], [100, 900, 101, 99, 100], undefined],
    ['a steady twentieth', [100, 100, 100], [105, 105, 105], undefined],
    ['a millisecond', [1, 1, 1], [2, 2, 2], undefined],
  ])('%s', (_, here, there, speed) => expect(speedOf(here, there)).toEqual(speed))

  it('has the middle of an even number of runs too', () => expect(median([4, 1, 3, 2])).toBe(2.5))
})
