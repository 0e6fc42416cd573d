import type { QueryId } from '../../../src/shared/ids.ts'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createQueryRegistry, type QueryRegistry } from '../../../src/coordinator/query/registry/query-registry.ts'
import { knownQuery } from '../../support/known-query.ts'

const limits = { firstFollowMs: 1e9, clientAbsentMs: 1e9, inMemoryMs: 10_000, endedInMemory: 3, endedBytes: 1e9 }
let registry: QueryRegistry

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  registry.stop()
  vi.useRealTimers()
})

const clock = { now: () => Date.now(), monotonicMs: () => Date.now() }

const names = () => registry.list().map(({ queryId }) => queryId)

describe('Ended queries in the registry', () => {
  it('leave memory beyond `endedInMemory`, the oldest first, unless they were requested lately', () => {
    const left: string[] = []
    registry = createQueryRegistry(
      clock,
      limits,
      () => false,
      ({ queryId }) => left.push(queryId) > 0,
    )
    const queries = ['a', 'open', 'b', 'c', 'd', 'e'].map(knownQuery)
    for (const { execution } of queries) registry.add(execution)
    for (const { execution, end } of queries) if (execution.queryId !== 'open') end()
    vi.advanceTimersByTime(9_000)
    expect(left).toEqual([])
    registry.touch('a' as QueryId)
    vi.advanceTimersByTime(5_000)
    // The first query stays, because it was touched last.
    expect(left).toEqual(['b', 'c'])
    expect(names()).toEqual(['a', 'open', 'd', 'e'])
    vi.advanceTimersByTime(60_000)
    expect(names()).toEqual(['a', 'open', 'd', 'e'])
  })

  it('stay beyond that number when they cannot be left to the log', () => {
    registry = createQueryRegistry(
      clock,
      limits,
      () => false,
      ({ queryId }) => queryId === 'd',
    )
    const queries = ['a', 'b', 'c', 'd', 'e'].map(knownQuery)
    for (const { execution } of queries) registry.add(execution)
    for (const { end } of queries) end()
    vi.advanceTimersByTime(60_000)
    expect(names()).toEqual(['a', 'b', 'c', 'e'])
  })

  it('leave when reads do not need them any more', () => {
    registry = createQueryRegistry(
      clock,
      limits,
      () => true,
      () => false,
    )
    const ended = knownQuery('a')
    registry.add(ended.execution)
    registry.add(knownQuery('open').execution)
    ended.end()
    vi.advanceTimersByTime(12_000)
    expect(names()).toEqual(['open'])
    expect(registry.open).toBe(1)
  })
})
