import { expect, it } from 'vitest'
import { steadyWall } from '../../src/shared/clock.ts'

it('a steady wall clock goes with the monotonic one, whatever the wall clock does', () => {
  let [wall, monotonic] = [1_000_000, 50]
  const now = steadyWall({ now: () => wall, monotonicMs: () => monotonic })
  expect(now()).toBe(1_000_000)
  wall -= 3_600_000
  expect(now()).toBe(1_000_000)
  monotonic += 250
  expect(now()).toBe(1_000_250)
})
