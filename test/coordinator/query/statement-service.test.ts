import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createStatementMemory } from '../../../src/coordinator/dispatch/statement-memory.ts'
import { canceledByClient } from '../../../src/coordinator/query/stream/ending.ts'
import type { QueryEvent } from '../../../src/coordinator/query/stream/events.ts'
import { createQueryRegistry, type QueryRegistry } from '../../../src/coordinator/query/registry/query-registry.ts'
import {
  createStatementService,
  type StatementService,
} from '../../../src/coordinator/query/results/statement-service.ts'
import { knownQuery } from '../../support/known-query.ts'
import { event, QUERY_ID } from '../../support/query-events.ts'
import { recordedOf } from '../../support/recorded-events.ts'
import { limitOwners } from '../../../src/shared/limit-owner.ts'

const WAIT_MS = 60_000

let registry: QueryRegistry

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  registry.stop()
  vi.useRealTimers()
})

const clock = { now: () => Date.now(), monotonicMs: () => Date.now() }

/** A query that recovery has taken over. A failure ends it. */
const takenOver = () => knownQuery(QUERY_ID).execution

/**
 * A service over a log with one query, which is open at first.
 * @param whileRead runs after the last event, before the read ends
 * @param events of the query, at each read
 */
function serviceOver(
  whileRead: () => void,
  events: () => readonly QueryEvent[] = () => [event('QueryCreated')],
): StatementService {
  const nothing = { logId: '', partitions: [], at: [] }
  registry = createQueryRegistry(
    clock,
    { firstFollowMs: 1e9, clientAbsentMs: 1e9, inMemoryMs: 10_000, endedInMemory: 3, endedBytes: 1e9 },
    () => false,
  )
  return createStatementService({
    clock,
    registry,
    ownerOf: limitOwners(false),
    log: {
      async *readStream() {
        yield* recordedOf(events())
        whileRead()
      },
      tip: () => Promise.resolve(nothing),
    },
    memory: createStatementMemory({ totalBytes: 1e9, userBytes: 1e9, addressBytes: 1e9 }),
    pages: { read: () => Promise.resolve('lost') },
    start: () => {
      throw new Error('Nothing is posted here')
    },
    limits: { openQueries: 10, postLogWaitMs: 1000, postPlanWaitMs: 50, answersKeptMs: 1e9 },
    accepting: () => true,
    epoch: 1,
    hasDiskRoom: () => true,
  })
}

describe('A cancel request before recovery takes the query over', () => {
  it('fails the query when recovery takes it over during the read of the log', async () => {
    const service = serviceOver(() => registry.add(takenOver()))
    // The fake clock stands still: the cancel must not wait for a timer.
    expect(await service.cancel(QUERY_ID, canceledByClient, WAIT_MS)).toBe('done')
  })

  it('fails the query when recovery takes it over later', async () => {
    const service = serviceOver(() => setTimeout(() => registry.add(takenOver()), 5_000))
    const canceled = service.cancel(QUERY_ID, canceledByClient, WAIT_MS)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await canceled).toBe('done')
  })

  it('returns "ended" as soon as recovery has failed the query', async () => {
    const events: QueryEvent[] = [event('QueryCreated')]
    const failed = vi.fn(() => registry.failedInRecovery())
    const service = serviceOver(
      () => events.length === 1 && setTimeout(() => (events.push(event('QueryFailed')), failed()), 5_000),
      () => events,
    )
    const canceled = service.cancel(QUERY_ID, canceledByClient, WAIT_MS)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(failed).toHaveBeenCalled()
    // The fake clock stands still: the cancel must not wait for its own time to pass.
    expect(await canceled).toBe('ended')
  })

  it('returns "waiting" when recovery does not take the query over in time', async () => {
    const service = serviceOver(() => {})
    const canceled = service.cancel(QUERY_ID, canceledByClient, WAIT_MS)
    await vi.advanceTimersByTimeAsync(WAIT_MS)
    expect(await canceled).toBe('waiting')
  })
})
