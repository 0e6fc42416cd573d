import type pg from 'pg'
import { expect, it } from 'vitest'
import { ProjectedStreams } from '../../../src/events/postgres/projected-streams.ts'
import { beginning, checkpointToJson, LogUnavailable, type Checkpoint } from '../../../src/events/event-log.ts'

const [{ state }] = beginning().at as [Checkpoint['at'][0]]
const behind = (count: number): Checkpoint => ({
  logId: 'a',
  at: [{ offset: BigInt(count), state: { ...state, count } }],
})

/** A database whose projection has applied `count` events. */
function poolAt(count: () => number): pg.Pool {
  return { query: async () => ({ rows: [{ checkpoint: checkpointToJson(behind(count())) }] }) } as unknown as pg.Pool
}

it('ProjectedStreams fails at its timeout for a projection without progress, and the error says so', async () => {
  const streams = new ProjectedStreams(
    poolAt(() => 3),
    { waitMs: 30 },
  )
  const waiting = streams.reached(behind(4))
  await expect(waiting).rejects.toThrow(LogUnavailable)
  await expect(waiting).rejects.toThrow('are behind the log')
})

it('ProjectedStreams waits for a projection that makes progress', async () => {
  let count = 0
  const streams = new ProjectedStreams(
    poolAt(() => count++),
    { waitMs: 60_000 },
  )
  await streams.reached(behind(4))
  expect(count).toBe(5)
})
