import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Waiters } from '../../../../src/coordinator/query/execution/waiters.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Adds the name to `order` when the promise resolves. */
function noting(order: string[], name: string, promise: Promise<void>): void {
  void promise.then(() => order.push(name))
}

const nextPass = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0)

describe('`news`', () => {
  it('resolves for all waiters on `wake`, and at once for a caller with an old revision', async () => {
    const waiters = new Waiters(false)
    const order: string[] = []
    noting(order, 'one', waiters.news(0, 1000))
    noting(order, 'other', waiters.news(0, 1000))
    await nextPass()
    expect(order).toEqual([])
    waiters.wake()
    await nextPass()
    expect(order).toEqual(['one', 'other'])
    expect(waiters.revision).toBe(1)
    noting(order, 'late', waiters.news(0, 1000))
    noting(order, 'next', waiters.news(1, 1000))
    await nextPass()
    expect(order).toEqual(['one', 'other', 'late'])
  })

  it('resolves after the given time without news, and leaves no timer behind', async () => {
    const waiters = new Waiters(false)
    const order: string[] = []
    noting(order, 'waited', waiters.news(0, 1000))
    await vi.advanceTimersByTimeAsync(999)
    expect(order).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(order).toEqual(['waited'])
    noting(order, 'news', waiters.news(0, 1000))
    waiters.wake()
    await nextPass()
    expect(order).toEqual(['waited', 'news'])
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('The client in `Waiters`', () => {
  it('counts as following after a restart, but `following` resolves only when it comes again', async () => {
    const waiters = new Waiters(true)
    const order: string[] = []
    noting(order, 'following', waiters.following)
    await nextPass()
    expect(waiters.followed).toBe(true)
    expect(order).toEqual([])
    waiters.follow()
    await nextPass()
    expect(order).toEqual(['following'])
  })

  it('counts as following once it has come for the first time', () => {
    const waiters = new Waiters(false)
    expect(waiters.followed).toBe(false)
    waiters.follow()
    expect(waiters.followed).toBe(true)
  })
})

it('`planKnown` resolves without a new revision', async () => {
  const waiters = new Waiters(false)
  const order: string[] = []
  noting(order, 'plan', waiters.planKnown)
  await nextPass()
  expect(order).toEqual([])
  waiters.planIsKnown()
  await nextPass()
  expect(order).toEqual(['plan'])
  expect(waiters.revision).toBe(0)
})
