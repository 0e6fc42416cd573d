import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { PagesAhead } from '../../../src/coordinator/query/results/pages-ahead.ts'
import type { BodyParts } from '../../../src/shared/body-parts.ts'
import type { QueryId } from '../../../src/shared/ids.ts'
import { QUERY_ID } from '../../support/query-events.ts'

const MB = 1024 * 1024
const other = `${QUERY_ID}x` as QueryId
const page = [Buffer.from('[[1]]')]
const read = (): Promise<BodyParts> => Promise.resolve(page)

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('Pages that are read ahead', () => {
  it('are read once and taken once', async () => {
    const ahead = new PagesAhead()
    const reads = vi.fn(read)
    ahead.begin(QUERY_ID, 1, MB, reads)
    ahead.begin(QUERY_ID, 1, MB, reads)
    expect(reads).toHaveBeenCalledTimes(1)
    expect(ahead.take(QUERY_ID, 2)).toBeUndefined()
    expect(ahead.take(other, 1)).toBeUndefined()
    expect(await ahead.take(QUERY_ID, 1)).toBe(page)
    expect(ahead.take(QUERY_ID, 1)).toBeUndefined()
  })

  it('are limited to one per query: a newer page replaces the one before', async () => {
    const ahead = new PagesAhead()
    ahead.begin(QUERY_ID, 1, MB, read)
    ahead.begin(QUERY_ID, 2, MB, read)
    expect(ahead.take(QUERY_ID, 1)).toBeUndefined()
    expect(await ahead.take(QUERY_ID, 2)).toBe(page)
  })

  it('take at most 32 MB together, including pages that are taken and still on their way', async () => {
    const ahead = new PagesAhead()
    let come = (_: BodyParts): void => {}
    ahead.begin(QUERY_ID, 1, 20 * MB, () => new Promise((resolve) => (come = resolve)))
    ahead.begin(other, 1, 13 * MB, read)
    expect(ahead.take(other, 1)).toBeUndefined()
    void ahead.take(QUERY_ID, 1)
    ahead.begin(other, 1, 13 * MB, read)
    expect(ahead.take(other, 1)).toBeUndefined()
    come(page)
    await vi.advanceTimersByTimeAsync(0)
    ahead.begin(other, 1, 32 * MB, read)
    expect(await ahead.take(other, 1)).toBe(page)
  })

  it('are dropped after 60 s without a taker, and free their memory', async () => {
    const ahead = new PagesAhead()
    ahead.begin(QUERY_ID, 1, 32 * MB, read)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(ahead.take(QUERY_ID, 1)).toBeUndefined()
    ahead.begin(other, 1, 32 * MB, read)
    expect(await ahead.take(other, 1)).toBe(page)
  })

  it('count as absent when the read fails', async () => {
    const ahead = new PagesAhead()
    ahead.begin(QUERY_ID, 1, MB, () => Promise.reject(new Error('away')))
    expect(await ahead.take(QUERY_ID, 1)).toBeUndefined()
  })
})
