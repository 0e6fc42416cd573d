import { describe, expect, it } from 'vitest'
import {
  createQueryRetention,
  pagesNeededSince,
  type LogPositions,
} from '../../../src/coordinator/query/registry/query-retention.ts'
import { beginning, type Checkpoint, type Position } from '../../../src/events/event-log.ts'
import { testQueryId } from '../../support/query-life.ts'

const at = (offset: number, partition = 0): Position => ({ partition, offset: BigInt(offset) })

/** A retention over read models that have applied all events below an offset. */
function bed(offset: number, logHasIndex: boolean) {
  const world = { offset, reported: [] as string[] }
  const positions: LogPositions = {
    add: (stream, { first, last }) => world.reported.push(`${stream} ${first.offset}-${last.offset}`),
    projected: (isBelow) =>
      world.reported.push(`below ${[0, 1, 2, 3].filter((position) => isBelow(at(position))).length}`),
  }
  const committed = (): Checkpoint => ({ logId: 'l', at: [{ ...beginning().at[0]!, offset: BigInt(world.offset) }] })
  return { world, ...createQueryRetention({ committed, positions, logHasIndex }) }
}

const queryAt = (first: Position | undefined, last: Position | undefined) =>
  ({ queryId: testQueryId(1), aggregate: { firstPosition: first, position: last } }) as never

describe('The retention of ended queries', () => {
  it('allows to forget a query once the read models have its last event', () => {
    const { world, mayForget } = bed(2, false)
    expect(mayForget(queryAt(at(0), at(2)))).toBe(false)
    expect(mayForget(queryAt(undefined, undefined))).toBe(false)
    world.offset = 3
    expect(mayForget(queryAt(at(0), at(2)))).toBe(true)
    // Positions of events that the read models have are dropped.
    expect(world.reported).toEqual(['below 2', 'below 2', 'below 3'])
  })

  it('keeps the positions of the events of a query that leaves memory before that', () => {
    const { world, leave } = bed(0, false)
    expect(leave(queryAt(at(1), at(7)))).toBe(true)
    expect(world.reported).toEqual([`${testQueryId(1)} 1-7`])
  })

  it('keeps a query in memory when its events are in several log partitions or have no known position', () => {
    const { world, leave } = bed(0, false)
    expect([leave(queryAt(at(1, 0), at(7, 1))), leave(queryAt(undefined, at(7)))]).toEqual([false, false])
    expect(world.reported).toEqual([])
  })

  it('keeps no positions of events when the log has an index of streams', () => {
    const { world, leave } = bed(0, true)
    expect(leave(queryAt(undefined, undefined))).toBe(true)
    expect(world.reported).toEqual([])
  })
})

describe('`pagesNeededSince`', () => {
  const created = (createdAt: string) => ({ aggregate: { state: { kind: 'RUNNING', createdAt } } }) as never
  it('returns the creation time of the oldest query in memory', () => {
    const now = Date.parse('2026-01-02T00:00:00.000Z')
    const none = { aggregate: { state: { kind: 'NONE' } } } as never
    expect(pagesNeededSince([], now)).toBe(now)
    expect(
      pagesNeededSince([created('2026-01-01T12:00:00.000Z'), none, created('2026-01-01T06:00:00.000Z')], now),
    ).toBe(Date.parse('2026-01-01T06:00:00.000Z'))
  })
})
