import { expect, it } from 'vitest'
import { steadyWall } from '../../src/shared/clock.ts'

it('`steadyWall` follows the monotonic clock, even if the wall clock jumps', () => {
  let [wall, monotonic] = [1_000_000, 50]
  const now = steadyWall({ now: () => wall, monotonicMs: () => monotonic })
  expect(now()).toBe(1_000_000)
  wall -= 3_600_000
  expect(now()).toBe(1_000_000)
  monotonic += 250
  expect(now()).toBe(1_000_250)
})
