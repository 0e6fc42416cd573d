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

describe('The batch publisher', () => {
  it('publishes pages of a streaming fragment as soon as they are closed', () => {
    const { list, tokens } = publisher(true)
    list([page(0)], 10_000)
    expect(tokens()).toEqual([0])
    list([page(0), page(1)], 10_000)
    expect(tokens()).toEqual([1])
    expect(tokens()).toBeUndefined()
  })

  it('publishes pages of other fragments when their batch ends', () => {
    const { list, tokens, batchDone } = publisher(false)
    list([page(0)], 10_000)
    expect(tokens()).toBeUndefined()
    batchDone(0)
    expect(tokens()).toEqual([0])
  })

  it('publishes a batch early once its output has taken as long as its first page, then each page at once', () => {
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

  it('publishes after two seconds when the first page took longer', () => {
    const { list, tokens, clock } = publisher(false)
    list([page(0)], 600_000)
    clock.now = 1_999
    expect(tokens()).toBeUndefined()
    clock.now = 2_000
    expect(tokens()).toEqual([0])
  })

  it('publishes once it holds 64 MB of pages', () => {
    const { list, tokens } = publisher(false)
    const most = Array.from({ length: 63 }, (_, token) => page(token))
    list(most, 10_000)
    expect(tokens()).toBeUndefined()
    list([page(63)], 10_000)
    expect(tokens()).toHaveLength(64)
  })

  it('publishes each batch by itself', () => {
    const { list, tokens, batchDone } = publisher(false)
    list([page(0), page(1, { batch: 1 })], 10_000)
    batchDone(1)
    expect(tokens()).toEqual([1])
    expect(tokens()).toBeUndefined()
  })

  it('publishes pages in token order: a page waits for the pages before it', () => {
    const made = createBatchPublisher(true, () => 0, { tokens: new Set([1]), batches: new Set([0]) })
    made.list([page(3)], 0)
    expect({ ...made, next: made.next() }).toMatchObject({ next: undefined, hasGap: true, firstUnknown: 0 })
    made.list([page(0)], 0)
    // The page with token 1 was published before.
    expect(made.next()?.pages.map(({ token }) => token)).toEqual([0])
    expect({ hasGap: made.hasGap, firstUnknown: made.firstUnknown }).toEqual({ hasGap: true, firstUnknown: 2 })
    made.list([page(2), page(3)], 0)
    expect(made.next()?.pages.map(({ token }) => token)).toEqual([2, 3])
    expect(made.hasGap).toBe(false)
  })
})
