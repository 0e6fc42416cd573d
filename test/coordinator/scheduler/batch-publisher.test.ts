import { describe, expect, it } from 'vitest'
import { createBatchPublisher } from '../../../src/coordinator/scheduler/batch-publisher.ts'
import type { ClosedPage } from '../../../src/execution/api/task.ts'

const MB = 1024 * 1024
const page = (token: number, changed: Partial<ClosedPage> = {}): ClosedPage => ({
  token,
  batch: 0,
  rows: 1,
  bytes: MB,
  sha256: '',
  lastOfBatch: false,
  ...changed,
})

function publisher(streams: boolean) {
  const clock = { now: 0 }
  const made = createBatchPublisher(streams, () => clock.now)
  return { ...made, clock, tokens: () => made.next()?.pages.map(({ token }) => token) }
}

describe('pages become part of the result', () => {
  it('as they close, of a batch that streams', () => {
    const { list, tokens } = publisher(true)
    list([page(0)], 10_000)
    expect(tokens()).toEqual([0])
    list([page(0), page(1)], 10_000)
    expect(tokens()).toEqual([1])
    expect(tokens()).toBeUndefined()
  })

  it('when it ends, of any other', () => {
    const { list, tokens, batchDone } = publisher(false)
    list([page(0)], 10_000)
    expect(tokens()).toBeUndefined()
    batchDone(0)
    expect(tokens()).toEqual([0])
  })

  it('sooner once its output has taken as long as its first page did, and from then on as they close', () => {
    const { list, tokens, waitMs, clock } = publisher(false)
    list([page(0)], 60)
    clock.now = 40
    list([page(1)], 100)
    expect(tokens()).toBeUndefined()
    expect(waitMs()).toBe(20)
    clock.now = 60
    expect(tokens()).toEqual([0, 1])
    list([page(2)], 120)
    expect(tokens()).toEqual([2])
    expect(waitMs()).toBeUndefined()
  })

  it('after two seconds however long it took', () => {
    const { list, tokens, clock } = publisher(false)
    list([page(0)], 600_000)
    clock.now = 1_999
    expect(tokens()).toBeUndefined()
    clock.now = 2_000
    expect(tokens()).toEqual([0])
  })

  it('once they are as much as is held', () => {
    const { list, tokens } = publisher(false)
    const most = Array.from({ length: 63 }, (_, token) => page(token))
    list(most, 10_000)
    expect(tokens()).toBeUndefined()
    list([page(63)], 10_000)
    expect(tokens()).toHaveLength(64)
  })

  it('each batch for itself', () => {
    const { list, tokens, batchDone } = publisher(false)
    list([page(0), page(1, { batch: 1 })], 10_000)
    batchDone(1)
    expect(tokens()).toEqual([1])
    expect(tokens()).toBeUndefined()
  })

  it('in the order of their tokens: a page waits for those before it', () => {
    const made = createBatchPublisher(true, () => 0, { tokens: new Set([1]), batches: new Set([0]) })
    made.list([page(3)], 0)
    expect({ ...made, next: made.next() }).toMatchObject({ next: undefined, hasGap: true, firstUnknown: 0 })
    made.list([page(0)], 0)
    // The second was published before.
    expect(made.next()?.pages.map(({ token }) => token)).toEqual([0])
    expect({ hasGap: made.hasGap, firstUnknown: made.firstUnknown }).toEqual({ hasGap: true, firstUnknown: 2 })
    made.list([page(2), page(3)], 0)
    expect(made.next()?.pages.map(({ token }) => token)).toEqual([2, 3])
    expect(made.hasGap).toBe(false)
  })
})
