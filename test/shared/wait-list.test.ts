import { describe, expect, it } from 'vitest'
import { WaitList } from '../../src/shared/wait-list.ts'

/** Longer than any test. */
const LONG_MS = 600_000

describe('A wait list', () => {
  it('wakes all waiters at once, or one after its time', async () => {
    const list = new WaitList()
    expect(list.isEmpty).toBe(true)
    const waiting = [list.wait(LONG_MS), list.wait(LONG_MS)]
    expect(list.isEmpty).toBe(false)
    list.wake()
    await Promise.all(waiting)
    expect(list.isEmpty).toBe(true)
    await list.wait(1)
    expect(list.isEmpty).toBe(true)
  })

  it('does not wake a waiter that came after the waiters were taken', async () => {
    const list = new WaitList()
    const first = list.wait(LONG_MS)
    const wake = list.take()
    let late = false
    const second = list.wait(LONG_MS).then(() => (late = true))
    wake()
    await first
    expect(late).toBe(false)
    list.wake()
    await second
  })
})
