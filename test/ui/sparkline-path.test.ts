import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HEIGHT, sparklinePath, WIDTH } from '../../console/parts/sparkline-path.ts'

const path = (...values: readonly number[]) =>
  sparklinePath(values.map((value, second) => ({ at: second * 1000, value })))

describe('The path of an activity line', () => {
  it.each([
    ['no sample', [], ''],
    ['only values that are not finite', [NaN, Infinity], ''],
    ['one sample', [7], 'M0,0.00H100'],
    ['one zero', [0], 'M0,30.00H100'],
    ['one finite value between others', [NaN, 7, Infinity], 'M0,0.00H100'],
    ['zeros', [0, 0, 0], 'M0.00,30.00L50.00,30.00L100.00,30.00'],
    ['a rise', [0, 1, 2], 'M0.00,30.00L50.00,15.00L100.00,0.00'],
    ['a gap', [2, NaN, 1, 2], 'M0.00,0.00h0M66.67,15.00L100.00,0.00'],
    ['a value between two gaps', [2, NaN, 1, NaN, 2], 'M0.00,0.00h0M50.00,15.00h0M100.00,0.00h0'],
    ['a gap at each end', [NaN, 1, 2, -Infinity], 'M0.00,15.00L100.00,0.00'],
    ['a negative value', [-5, 5], 'M0.00,30.00L100.00,0.00'],
    ['huge values', [Number.MAX_VALUE, Number.MAX_VALUE / 2], 'M0.00,0.00L100.00,15.00'],
    ['tiny values', [Number.MIN_VALUE, 0], 'M0.00,0.00L100.00,30.00'],
  ])('draws %s', (_name, values, expected) => {
    expect(path(...values)).toBe(expected)
  })

  it('draws samples of the same time', () => {
    const at = 5
    expect(sparklinePath([1, 2].map((value) => ({ at, value })))).toBe('M0.00,15.00L0.00,0.00')
  })

  it('stays within the drawing for all values', () => {
    const sample = fc.record({ step: fc.nat(1e6), value: fc.double() })
    fc.assert(
      fc.property(fc.array(sample, { maxLength: 130 }), (steps) => {
        let at = 0
        const drawn = sparklinePath(steps.map(({ step, value }) => ({ at: (at += step), value })))
        const finite = steps.filter(({ value }) => Number.isFinite(value)).length
        expect(drawn).toMatch(/^(M\d+(\.\d\d)?,\d+\.\d\d(H100|h0|(L\d+\.\d\d,\d+\.\d\d)*))*$/)
        expect(drawn.split(/[ML]/).length - 1).toBe(finite)
        for (const [, x, y] of drawn.matchAll(/[ML]([\d.]+),([\d.]+)/g)) {
          expect(Number(x)).toBeLessThanOrEqual(WIDTH)
          expect(Number(y)).toBeLessThanOrEqual(HEIGHT)
        }
      }),
    )
  })
})
