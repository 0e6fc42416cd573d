import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { QueryEvent } from '../../../src/coordinator/query/events.ts'
import { foldQuery } from '../../../src/coordinator/query/evolve.ts'
import type { QueryExecution } from '../../../src/coordinator/query/query-handle.ts'
import { createQueryRegistry, type QueryRegistry } from '../../../src/coordinator/query/query-registry.ts'
import type { QueryId } from '../../../src/shared/ids.ts'
import { event } from '../../support/query-events.ts'

const limits = { firstFollowMs: 1e9, clientAbsentMs: 1e9, inMemoryMs: 10_000, endedInMemory: 3 }
let registry: QueryRegistry

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  registry.stop()
  vi.useRealTimers()
})

const clock = { now: () => Date.now(), monotonicMs: () => Date.now() }

/** A query as far as the registry looks at it, with the means to end it. */
function query(queryId: string): { readonly execution: QueryExecution; end(): void } {
  let state = foldQuery(queryId, [event('QueryCreated')])
  const listeners: ((events: readonly QueryEvent[]) => void)[] = []
  const execution: Partial<QueryExecution> = {
    queryId: queryId as QueryId,
    followed: true,
    dispose: () => {},
    aggregate: {
      queryId,
      get state() {
        return state
      },
      get intended() {
        return state
      },
      sequence: 1,
      position: undefined,
      firstPosition: undefined,
      execute: () => Promise.resolve(0),
      onValid: (listener) => void listeners.push(listener),
    },
  }
  return {
    execution: execution as QueryExecution,
    end() {
      state = foldQuery(queryId, [event('QueryCreated'), event('QueryFailed')])
      for (const listener of listeners) listener([])
    },
  }
}

const names = () => registry.list().map(({ queryId }) => queryId)

describe('ended queries', () => {
  it('stay while reads need them, but for so many, the oldest first', () => {
    const left: string[] = []
    registry = createQueryRegistry(
      clock,
      limits,
      () => false,
      ({ queryId }) => left.push(queryId) > 0,
    )
    const queries = ['a', 'open', 'b', 'c', 'd', 'e'].map(query)
    for (const { execution } of queries) registry.add(execution)
    for (const { execution, end } of queries) if (execution.queryId !== 'open') end()
    vi.advanceTimersByTime(9_000)
    expect(left).toEqual([])
    registry.touch('a')
    vi.advanceTimersByTime(5_000)
    // Somebody asked for the first one lately.
    expect(left).toEqual(['b', 'c'])
    expect(names()).toEqual(['a', 'open', 'd', 'e'])
    vi.advanceTimersByTime(60_000)
    expect(names()).toEqual(['a', 'open', 'd', 'e'])
  })

  it('stay where nobody else could answer for them', () => {
    registry = createQueryRegistry(
      clock,
      limits,
      () => false,
      ({ queryId }) => queryId === 'd',
    )
    const queries = ['a', 'b', 'c', 'd', 'e'].map(query)
    for (const { execution } of queries) registry.add(execution)
    for (const { end } of queries) end()
    vi.advanceTimersByTime(60_000)
    expect(names()).toEqual(['a', 'b', 'c', 'e'])
  })

  it('go when reads need them no more', () => {
    registry = createQueryRegistry(
      clock,
      limits,
      () => true,
      () => false,
    )
    const ended = query('a')
    registry.add(ended.execution)
    registry.add(query('open').execution)
    ended.end()
    vi.advanceTimersByTime(12_000)
    expect(names()).toEqual(['open'])
    expect(registry.open).toBe(1)
  })
})
