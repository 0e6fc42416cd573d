import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Waiters } from '../../../../src/coordinator/query/execution/waiters.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Notes in `order` when the promise resolves. */
function noting(order: string[], name: string, promise: Promise<void>): void {
  void promise.then(() => order.push(name))
}

const turn = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0)

describe('news', () => {
  it('comes to all who wait for it, and at once to who is behind', async () => {
    const waiters = new Waiters(false)
    const order: string[] = []
    noting(order, 'one', waiters.news(0, 1000))
    noting(order, 'other', waiters.news(0, 1000))
    await turn()
    expect(order).toEqual([])
    waiters.wake()
    await turn()
    expect(order).toEqual(['one', 'other'])
    expect(waiters.revision).toBe(1)
    noting(order, 'late', waiters.news(0, 1000))
    noting(order, 'next', waiters.news(1, 1000))
    await turn()
    expect(order).toEqual(['one', 'other', 'late'])
  })

  it('is waited for no longer than asked, and nothing of the wait stays', async () => {
    const waiters = new Waiters(false)
    const order: string[] = []
    noting(order, 'waited', waiters.news(0, 1000))
    await vi.advanceTimersByTimeAsync(999)
    expect(order).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(order).toEqual(['waited'])
    noting(order, 'told', waiters.news(0, 1000))
    waiters.wake()
    await turn()
    expect(order).toEqual(['waited', 'told'])
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('the client', () => {
  it('that followed before a restart is known, but what waits for it waits until it is here', async () => {
    const waiters = new Waiters(true)
    const order: string[] = []
    noting(order, 'following', waiters.following)
    await turn()
    expect(waiters.followed).toBe(true)
    expect(order).toEqual([])
    waiters.follow()
    await turn()
    expect(order).toEqual(['following'])
  })

  it('that never came has followed once it comes', () => {
    const waiters = new Waiters(false)
    expect(waiters.followed).toBe(false)
    waiters.follow()
    expect(waiters.followed).toBe(true)
  })
})

it('tells the plan without being news', async () => {
  const waiters = new Waiters(false)
  const order: string[] = []
  noting(order, 'plan', waiters.planKnown)
  await turn()
  expect(order).toEqual([])
  waiters.planIsKnown()
  await turn()
  expect(order).toEqual(['plan'])
  expect(waiters.revision).toBe(0)
})
