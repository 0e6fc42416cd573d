import { describe, expect, it } from 'vitest'
import { median, speedOf } from '../../src/replay/timing.ts'

describe('The comparison of speed', () => {
  it.each<[string, number[], number[], object | undefined]>([
    [
      'says "slower" beyond noise',
      [100, 101, 99],
      [150, 151, 149],
      { kind: 'slower', hereMs: 100, thereMs: 150, runs: 3 },
    ],
    ['says "faster" beyond noise', [100, 101, 99], [50, 51, 49], { kind: 'faster', hereMs: 100, thereMs: 50, runs: 3 }],
    ['ignores noise of one side', [100, 160, 60], [150, 151, 149], undefined],
    ['ignores one run that is far off', [100, 101, 99, 100, 100], [100, 900, 101, 99, 100], undefined],
    ['ignores a steady difference of 5%', [100, 100, 100], [105, 105, 105], undefined],
    ['ignores a difference of 1 ms', [1, 1, 1], [2, 2, 2], undefined],
  ])('%s', (_, here, there, speed) => expect(speedOf(here, there)).toEqual(speed))

  it('uses the median, also of an even number of runs', () => expect(median([4, 1, 3, 2])).toBe(2.5))
})
