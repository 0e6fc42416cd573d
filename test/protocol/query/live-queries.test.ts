import { describe, expect, it } from 'vitest'
import { createLiveQueries, noLiveQueries } from '../../../src/protocol/query/live-queries.ts'
import { testQueryId } from '../../support/query-life.ts'

/** A query of the registry in this state, with the offset of its last event. */
const execution = (number: number, kind: string, offset?: bigint) =>
  ({
    queryId: testQueryId(number),
    aggregate: {
      state: { kind, queryId: testQueryId(number) },
      sequence: number,
      position: offset === undefined ? undefined : { partition: 0, offset },
    },
    liveStats: new Map(),
    queuedReason: undefined,
  }) as never

describe('Live queries', () => {
  const held = [
    execution(1, 'NONE'),
    execution(2, 'RUNNING', 1n),
    execution(3, 'FINISHED', 2n),
    execution(4, 'FAILED', 9n),
    execution(5, 'FINISHED'),
  ] as { queryId: string }[]
  const registry = {
    get: (queryId: string) => held.find((one) => one.queryId === queryId),
    list: () => held,
  } as never
  const live = createLiveQueries(registry, ({ offset }) => offset < 5n)

  it('are listed while they are open, and after their end until the read models have the last event', () => {
    expect(live.list().map(({ sequence }) => sequence)).toEqual([2, 4, 5])
  })

  it('are found by id as long as the process holds them', () => {
    expect(live.get(testQueryId(3))).toMatchObject({ sequence: 3, query: { kind: 'FINISHED' } })
    expect([live.get(testQueryId(1)), live.get(testQueryId(6))]).toEqual([undefined, undefined])
  })

  it('are empty in a process that runs no queries', () => {
    expect([noLiveQueries.get(testQueryId(2)), noLiveQueries.list()]).toEqual([undefined, []])
  })
})
