import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addToCounter, countAt, zeroCounter } from '../../../src/coordinator/nodes/decay-counter.ts'

const additions = fc.array(
  fc.record({ amount: fc.double({ min: 0, max: 1e6, noNaN: true }), wait: fc.integer({ min: 0, max: 300_000 }) }),
  { maxLength: 30 },
)

describe('A decaying counter', () => {
  it('falls from 1000 to about 367 after a minute', () => {
    let counter = zeroCounter
    for (let request = 0; request < 1000; request++) counter = addToCounter(counter, 1, 1_000_000 + request / 1000)
    expect(Math.abs(countAt(counter, 1_060_001) - 367)).toBeLessThanOrEqual(1)
  })

  it('equals the sum of its additions, each decayed by itself', () => {
    fc.assert(
      fc.property(additions, fc.integer({ min: 0, max: 300_000 }), (parts, later) => {
        let now = 5000
        let counter = zeroCounter
        const times: { amount: number; at: number }[] = []
        for (const { amount, wait } of parts) {
          now += wait
          counter = addToCounter(counter, amount, now)
          times.push({ amount, at: now })
        }
        const end = now + later
        const sum = times.reduce((total, { amount, at }) => total + amount * Math.exp(-(end - at) / 60_000), 0)
        expect(Math.abs(countAt(counter, end) - sum)).toBeLessThanOrEqual(1e-9 * (1 + sum))
      }),
    )
  })

  it('never grows with time and never falls below 0', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e9, noNaN: true }), fc.nat(1e9), fc.nat(1e9), (amount, a, b) => {
        const counter = addToCounter(zeroCounter, amount, 0)
        const [sooner, later] = a < b ? [a, b] : [b, a]
        expect(countAt(counter, later)).toBeLessThanOrEqual(countAt(counter, sooner))
        expect(countAt(counter, later)).toBeGreaterThanOrEqual(0)
      }),
    )
  })

  it('keeps its count when the clock goes back', () => {
    const counter = addToCounter(zeroCounter, 100, 50_000)
    expect(countAt(counter, 10_000)).toBe(100)
    expect(addToCounter(counter, 1, 10_000)).toEqual({ count: 101, at: 50_000 })
  })
})
