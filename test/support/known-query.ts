import type { QueryEvent, QueryEventOf } from '../../src/coordinator/query/stream/events.ts'
import { foldQuery } from '../../src/coordinator/query/stream/evolve.ts'
import type { QueryExecution } from '../../src/coordinator/query/registry/query-handle.ts'
import { queryOfStream } from '../../src/shared/ids.ts'
import { event } from './query-events.ts'

/** A created query with the parts that a registry and its statement use. `fail` also ends it. */
export function knownQuery(id: string): { readonly execution: QueryExecution; end(): void } {
  const queryId = queryOfStream(id)
  let state = foldQuery(queryId, [event('QueryCreated')])
  const listeners: ((events: readonly QueryEvent[]) => void)[] = []
  function end(how: Partial<QueryEventOf<'QueryFailed'>['data']> = {}): void {
    state = foldQuery(queryId, [event('QueryCreated'), event('QueryFailed', 1, how)])
    for (const listener of listeners) listener([])
  }
  const execution: Partial<QueryExecution> = {
    queryId,
    followed: true,
    revision: 1,
    bytes: 1,
    created: Promise.resolve(),
    dispose: () => {},
    fail: (failure, endedBy) => Promise.resolve(end({ failure, ...(endedBy && { endedBy }) })),
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
  return { execution: execution as QueryExecution, end }
}
