import type { QueryId } from '../../../src/shared/ids.ts'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createStatementMemory } from '../../../src/coordinator/dispatch/statement-memory.ts'
import { canceledByClient, endingBy } from '../../../src/coordinator/query/stream/ending.ts'
import type { QueryEvent } from '../../../src/coordinator/query/stream/events.ts'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import type { QueryExecution } from '../../../src/coordinator/query/registry/query-handle.ts'
import { createQueryRegistry, type QueryRegistry } from '../../../src/coordinator/query/registry/query-registry.ts'
import type { ResultPageSource } from '../../../src/coordinator/query/results/result-page-source.ts'
import {
  createStatementService,
  type StatementService,
} from '../../../src/coordinator/query/results/statement-service.ts'
import type { QueryState } from '../../../src/coordinator/query/stream/state.ts'
import { Fenced, LogUnavailable, type Checkpoint } from '../../../src/events/event-log.ts'
import type { Failure } from '../../../src/shared/engine-error.ts'
import { allowAll } from '../../../src/security/authorization.ts'
import { recordedSubmission } from '../../../src/coordinator/query/secrets/query-secrets.ts'
import { at, event, QUERY_ID, sampleData } from '../../support/query-events.ts'
import { recordedOf } from '../../support/recorded-events.ts'
import { limitOwners } from '../../../src/shared/limit-owner.ts'

const page = { rows: 3, bytes: 30, sha256: 'ab', kept: 'log' as const, taskToken: 0 }
const published = (pages: number, lastOfResult = true): QueryEvent =>
  event('ResultPagesPublished', 3, { pages: Array.from({ length: pages }, () => page), lastOfResult })
const planned = [event('QueryCreated'), event('QueryPlanned', 1), event('TaskCreated', 2)]
const bytes = [Buffer.from('[[1]]')]
const EPOCH = 2

let registry: QueryRegistry

beforeEach(() => void vi.useFakeTimers({ now: Date.parse(at(0)) }))
afterEach(() => {
  registry.stop()
  vi.useRealTimers()
})

/** A live query of this coordinator. Its state follows from its events; `finish` adds QueryFinished. */
function liveQuery(...begun: QueryEvent[]) {
  let events = begun
  let revision = 1
  const listeners: (() => void)[] = []
  const reported = {
    delivered: [] as number[],
    lost: [] as number[],
    passed: [] as number[],
    failures: [] as Failure[],
  }
  const state = (): QueryState => foldQuery(QUERY_ID, events)
  function become(...more: QueryEvent[]): void {
    events = [...events, ...more]
    revision++
    for (const listener of listeners) listener()
  }
  const execution: Partial<QueryExecution> = {
    queryId: QUERY_ID,
    firstToken: 0,
    bytes: 1,
    followed: true,
    liveStats: new Map(),
    created: Promise.resolve(),
    planKnown: Promise.resolve(),
    get revision() {
      return revision
    },
    get aggregate(): QueryExecution['aggregate'] {
      const aggregate: Partial<QueryExecution['aggregate']> = {
        state: state(),
        intended: state(),
        onValid: (listener) => void listeners.push(() => listener([])),
      }
      return aggregate as QueryExecution['aggregate']
    },
    follow: () => {},
    news: (_since, ms) => new Promise((resolve) => setTimeout(resolve, Math.min(ms, 100))),
    pageInMemory: () => undefined,
    acknowledge: (before) => void reported.passed.push(before),
    finish: () => Promise.resolve(become(event('QueryFinished', 5))),
    fail: (failure) => {
      reported.failures.push(failure)
      return Promise.resolve(become(event('QueryFailed', 5, { failure })))
    },
    recordDelivery: (token) => void reported.delivered.push(token),
    recordLoss: (token) => void reported.lost.push(token),
    dispose: () => {},
  }
  return { execution: execution as QueryExecution, reported, become }
}

interface Around {
  readonly live?: QueryExecution
  /** The events of the query in the log. */
  readonly logged?: readonly QueryEvent[]
  readonly read?: ResultPageSource['read']
  readonly tip?: () => Promise<Checkpoint>
  readonly start?: () => QueryExecution
  readonly openQueries?: number
  readonly accepting?: boolean
  readonly room?: boolean
}

function tipOf(epoch: number): Checkpoint {
  const one = { partition: 0, state: { epoch } }
  return { logId: '', at: [one] } as unknown as Checkpoint
}

function serviceOf(around: Around): StatementService {
  const clock = { now: () => Date.now(), monotonicMs: () => Date.now() }
  registry = createQueryRegistry(
    clock,
    { firstFollowMs: 1e9, clientAbsentMs: 1e9, inMemoryMs: 1e9, endedInMemory: 9, endedBytes: 1e9 },
    () => false,
  )
  if (around.live) registry.add(around.live)
  return createStatementService({
    clock,
    registry,
    ownerOf: limitOwners(false),
    log: {
      async *readStream() {
        yield* recordedOf(around.logged ?? [])
      },
      tip: around.tip ?? (() => Promise.resolve(tipOf(EPOCH))),
    },
    memory: createStatementMemory({ totalBytes: 1e9, userBytes: 1e9, addressBytes: 1e9 }),
    pages: { read: around.read ?? (() => Promise.resolve(bytes)) },
    start: () => {
      if (!around.start) throw new Error('Nothing is posted here')
      return around.start()
    },
    limits: { openQueries: around.openQueries ?? 10, postLogWaitMs: 1000, postPlanWaitMs: 50, answersKeptMs: 60_000 },
    accepting: () => around.accepting ?? true,
    epoch: EPOCH,
    hasDiskRoom: () => around.room ?? true,
  })
}

/** The result or the error of a promise after 20 s of fake time. */
async function inTime<T>(asked: Promise<T>): Promise<T | { readonly thrown: unknown }> {
  const settled = asked.catch((thrown: unknown) => ({ thrown }))
  await vi.advanceTimersByTimeAsync(20_000)
  return settled
}

describe('A poll of a running query', () => {
  it('returns the state with the same token when no page is published in time', async () => {
    const { execution } = liveQuery(...planned)
    expect(await inTime(serviceOf({ live: execution }).poll(QUERY_ID, 0, 500))).toMatchObject({
      kind: 'answer',
      nextToken: 0,
      settled: false,
      query: { kind: 'STARTING' },
    })
  })

  it('returns a page as soon as it is published, with the token of the next page', async () => {
    const { execution, become, reported } = liveQuery(...planned)
    const asked = serviceOf({ live: execution }).poll(QUERY_ID, 0, 5000)
    become(published(2))
    expect(await inTime(asked)).toMatchObject({ nextToken: 1, settled: true, page: { token: 0, bytes, rows: 3 } })
    expect(reported.delivered).toEqual([0])
  })

  it('records deliveries at most once a second', async () => {
    const { execution, reported } = liveQuery(...planned, published(4))
    const service = serviceOf({ live: execution })
    await service.poll(QUERY_ID, 0, 0)
    await service.poll(QUERY_ID, 1, 0)
    await vi.advanceTimersByTimeAsync(1000)
    await service.poll(QUERY_ID, 2, 0)
    expect(reported).toMatchObject({ delivered: [0, 2], passed: [1, 2] })
  })

  it('returns FINISHED without a next token together with the last page', async () => {
    const { execution } = liveQuery(...planned, published(1))
    expect(await serviceOf({ live: execution }).poll(QUERY_ID, 0, 0)).toMatchObject({
      query: { kind: 'FINISHED' },
      nextToken: undefined,
      page: { token: 0 },
      settled: true,
    })
  })

  it('holds the last page back until the end of the query is recorded', async () => {
    const { execution } = liveQuery(...planned, published(1))
    const stuck = { ...execution, aggregate: execution.aggregate, finish: () => new Promise<void>(() => {}) }
    expect(await inTime(serviceOf({ live: stuck }).poll(QUERY_ID, 0, 500))).toMatchObject({
      nextToken: 0,
      page: undefined,
      settled: false,
    })
  })

  it('returns FINISHED without a page when an empty publication ends the result', async () => {
    const { execution, become } = liveQuery(...planned, published(1, false))
    const service = serviceOf({ live: execution })
    expect(await service.poll(QUERY_ID, 0, 0)).toMatchObject({ nextToken: 1 })
    become(event('ResultPagesPublished', 4, { firstToken: 1, pages: [], lastOfResult: true }))
    expect(await service.poll(QUERY_ID, 1, 0)).toMatchObject({
      query: { kind: 'FINISHED' },
      nextToken: undefined,
      page: undefined,
    })
  })

  it('returns response headers from memory with their secrets, which the log does not have', async () => {
    const { execution } = liveQuery(...planned, published(1), event('QueryFinished', 4))
    const headers = [{ header: 'Set-Session', value: 'a=secret' }] as unknown as QueryExecution['responseHeaders']
    const reported = { ...execution, aggregate: execution.aggregate, responseHeaders: headers }
    expect(await serviceOf({ live: reported }).poll(QUERY_ID, 0, 0)).toMatchObject({
      query: { finished: { responseHeaders: headers } },
    })
  })

  it('returns the failure of a failed query', async () => {
    const { execution } = liveQuery(...planned, event('QueryFailed', 4))
    expect(await serviceOf({ live: execution }).poll(QUERY_ID, 0, 0)).toMatchObject({
      failure: { errorName: 'DIVISION_BY_ZERO' },
      nextToken: undefined,
      settled: true,
    })
  })

  it('returns "gone" for a token after the client has asked for a later one', async () => {
    const { execution } = liveQuery(...planned, published(3))
    const service = serviceOf({ live: execution })
    await service.poll(QUERY_ID, 1, 0)
    expect(await service.poll(QUERY_ID, 0, 0)).toEqual({ kind: 'gone' })
  })

  it('returns "unknown" for a token after the end of the result', async () => {
    const { execution } = liveQuery(...planned, published(1), event('QueryFinished', 4))
    expect(await serviceOf({ live: execution }).poll(QUERY_ID, 7, 0)).toEqual({ kind: 'unknown' })
  })
})

describe('A page of a running query', () => {
  it('fails the query with PAGE_TRANSPORT_ERROR when it is lost', async () => {
    const { execution, reported } = liveQuery(...planned, published(2))
    const read = () => Promise.resolve('lost' as const)
    expect(await serviceOf({ live: execution, read }).poll(QUERY_ID, 0, 0)).toMatchObject({
      failure: { errorName: 'PAGE_TRANSPORT_ERROR' },
      nextToken: undefined,
    })
    expect(reported).toMatchObject({ lost: [0], failures: [{ errorName: 'PAGE_TRANSPORT_ERROR' }] })
  })

  it('does not fail the query when another coordinator has a higher epoch: the poll is fenced', async () => {
    const { execution, reported } = liveQuery(...planned, published(2))
    const read = () => Promise.resolve('lost' as const)
    const tip = () => Promise.resolve(tipOf(EPOCH + 1))
    await expect(serviceOf({ live: execution, read, tip }).poll(QUERY_ID, 0, 0)).rejects.toThrow(Fenced)
    expect(reported).toMatchObject({ lost: [], failures: [] })
  })

  it('arrives after failed reads: the poll repeats them while the log does not answer', async () => {
    const { execution } = liveQuery(...planned, published(2))
    let reads = 0
    const read = () => (reads++ < 2 ? Promise.reject(new LogUnavailable('away')) : Promise.resolve(bytes))
    expect(await inTime(serviceOf({ live: execution, read }).poll(QUERY_ID, 0, 5000))).toMatchObject({ nextToken: 1 })
    expect(reads).toBe(3)
  })

  it('keeps its token when the log stays away for the whole poll; any other error fails the poll', async () => {
    const { execution } = liveQuery(...planned, published(2))
    const away = () => Promise.reject(new LogUnavailable('away'))
    expect(await inTime(serviceOf({ live: execution, read: away }).poll(QUERY_ID, 0, 300))).toMatchObject({
      nextToken: 0,
      settled: false,
    })
    const defect = () => Promise.reject(new TypeError('timeout'))
    await expect(serviceOf({ live: execution, read: defect }).poll(QUERY_ID, 0, 300)).rejects.toThrow(TypeError)
  })
})

describe('A poll of a query that only the log knows', () => {
  const ended = [...planned, published(2), event('QueryFinished', 4)]

  it('returns all pages up to the last', async () => {
    const service = serviceOf({ logged: ended })
    expect(await service.poll(QUERY_ID, 0, 100)).toMatchObject({ nextToken: 1, page: { token: 0 }, settled: true })
    expect(await service.poll(QUERY_ID, 1, 100)).toMatchObject({ nextToken: undefined, page: { token: 1 } })
    expect(await service.poll(QUERY_ID, 2, 100)).toEqual({ kind: 'unknown' })
  })

  it('returns PAGE_TRANSPORT_ERROR for a lost page of a finished query', async () => {
    const service = serviceOf({ logged: ended, read: () => Promise.resolve('lost') })
    expect(await service.poll(QUERY_ID, 0, 100)).toMatchObject({ failure: { errorName: 'PAGE_TRANSPORT_ERROR' } })
  })

  it('returns "gone" for a page before the last delivered page', async () => {
    const service = serviceOf({ logged: [...ended, event('ResultsDelivered', 5, { token: 1 })] })
    expect(await service.poll(QUERY_ID, 0, 100)).toEqual({ kind: 'gone' })
  })

  it('returns the failure of a failed query', async () => {
    const service = serviceOf({ logged: [...planned, event('QueryFailed', 4)] })
    expect(await service.poll(QUERY_ID, 0, 100)).toMatchObject({ failure: { errorName: 'DIVISION_BY_ZERO' } })
  })

  it('returns "unknown" for a query that the log does not know, but only while this coordinator writes', async () => {
    expect(await serviceOf({}).poll(QUERY_ID, 0, 100)).toEqual({ kind: 'unknown' })
    expect(await serviceOf({}).poll('no id' as QueryId, 0, 100)).toEqual({ kind: 'unknown' })
    const overtaken = serviceOf({ tip: () => Promise.resolve(tipOf(EPOCH + 1)) })
    await expect(overtaken.poll(QUERY_ID, 0, 100)).rejects.toThrow(Fenced)
    const silent = serviceOf({ tip: () => new Promise(() => {}) })
    expect(await inTime(silent.poll(QUERY_ID, 0, 100))).toMatchObject({ thrown: expect.any(LogUnavailable) })
  })

  it('returns "unknown" once the time for keeping answers is over', async () => {
    const service = serviceOf({ logged: ended })
    await vi.advanceTimersByTimeAsync(120_000)
    expect(await service.poll(QUERY_ID, 0, 100)).toEqual({ kind: 'unknown' })
  })

  it('returns a failure and no response headers when a header value was redacted', async () => {
    const responseHeaders = [{ header: 'Set-Session', value: 'a=?' }] as never
    const service = serviceOf({
      logged: [
        event('QueryCreated', 0, { redacted: true }),
        ...planned.slice(1),
        event('QueryFinished', 4, { responseHeaders }),
      ],
    })
    expect(await service.poll(QUERY_ID, 0, 100)).toMatchObject({
      query: { finished: { responseHeaders: [] } },
      failure: expect.objectContaining({ message: expect.any(String) }),
      settled: false,
    })
  })

  it('returns the state of an open query, and its pages once recovery has taken it over', async () => {
    const service = serviceOf({ logged: planned })
    expect(await inTime(service.poll(QUERY_ID, 0, 1000))).toMatchObject({
      nextToken: 0,
      settled: false,
      page: undefined,
    })
    const asked = service.poll(QUERY_ID, 0, 60_000)
    setTimeout(() => registry.add(liveQuery(...planned, published(2)).execution), 5000)
    expect(await inTime(asked)).toMatchObject({ nextToken: 1, page: { token: 0 } })
  })
})

describe('A posted statement', () => {
  const statement = recordedSubmission(sampleData.QueryCreated)

  it('is refused while the coordinator stops, has too many open queries or lacks disk space for the log', async () => {
    await expect(serviceOf({ accepting: false }).submit(statement)).rejects.toThrow('The server is shutting down')
    const full = serviceOf({ openQueries: 1, live: liveQuery(...planned).execution })
    await expect(full.submit(statement)).rejects.toThrow('Too many open queries: 1 are allowed')
    await expect(serviceOf({ room: false }).submit(statement)).rejects.toThrow(LogUnavailable)
  })

  it('answers heartbeats as soon as it is accepted, even before its plan is known', async () => {
    const { execution } = liveQuery(...planned)
    const slow = { ...execution, aggregate: execution.aggregate, planKnown: new Promise<void>(() => {}) }
    const service = serviceOf({ start: () => slow })
    expect(await inTime(service.submit(statement))).toBe(slow)
    expect(await service.heartbeat(QUERY_ID)).toBe(true)
  })

  it('ends as ABANDONED_QUERY when the log does not append it in time or refuses it at once', async () => {
    for (const begin of [() => new Promise<void>(() => {}), () => Promise.reject<void>(new LogUnavailable('full'))]) {
      const { execution, reported } = liveQuery(...planned)
      const unwritten = { ...execution, aggregate: execution.aggregate }
      const service = serviceOf({ start: () => ({ ...unwritten, created: begin() }) })
      expect(await inTime(service.submit(statement))).toMatchObject({ thrown: expect.any(LogUnavailable) })
      expect(reported.failures).toMatchObject([{ errorName: 'ABANDONED_QUERY' }])
      registry.stop()
    }
  })
})

describe('A cancel request', () => {
  const kim = { user: 'kim', groups: [] }
  const killedBy = (statement: string) => endingBy(kim, allowAll, { how: 'kill_query', statement }, 'enough')

  it('returns "done" again for the same kill statement, and "ended" for any other', async () => {
    const { failure, endedBy } = killedBy('first')
    const killed = serviceOf({ logged: [...planned, event('QueryFailed', 4, { failure, endedBy: endedBy! })] })
    expect(await killed.cancel(QUERY_ID, killedBy('first'), 1000)).toBe('done')
    expect(await killed.cancel(QUERY_ID, killedBy('second'), 1000)).toBe('ended')
    expect(await killed.cancel(QUERY_ID, endingBy(kim, allowAll, { how: 'killed' }), 1000)).toBe('ended')
  })

  it('returns "refused" for a user without the right, and masks a secret in its message', async () => {
    const refused = endingBy(kim, () => false, { how: 'killed' })
    const { execution, reported } = liveQuery(...planned)
    expect(await serviceOf({ live: execution }).cancel(QUERY_ID, refused, 1000)).toBe('refused')
    expect(await serviceOf({ logged: planned }).cancel(QUERY_ID, refused, 0)).toBe('waiting')
    const past = serviceOf({ logged: [...planned, event('QueryFinished', 4)] })
    expect(await past.cancel(QUERY_ID, refused, 1000)).toBe('refused')
    expect(reported.failures).toEqual([])
    const { failure } = endingBy(kim, allowAll, { how: 'preempted' }, 'log in again with password=hunter2')
    expect(failure.message).toBe('Query preempted. Message: ***')
  })

  it('fails a running query, and returns "ended" for an ended and "unknown" for an unknown query', async () => {
    const { execution, reported } = liveQuery(...planned)
    expect(await serviceOf({ live: execution }).cancel(QUERY_ID, canceledByClient, 1000)).toBe('done')
    expect(reported.failures).toEqual([canceledByClient.failure])
    const past = serviceOf({ logged: [...planned, event('QueryFinished', 4)] })
    expect(await past.cancel(QUERY_ID, canceledByClient, 1000)).toBe('ended')
    expect(await serviceOf({}).cancel(QUERY_ID, canceledByClient, 1000)).toBe('unknown')
  })

  it('cancels a stage of a query that reads, and returns "writes" for a query that writes', async () => {
    const stages: number[] = []
    const write = { catalog: 'lake', schema: 's', table: 't', operation: 'insert' } as never
    const begin = (...events: QueryEvent[]) => {
      const { execution } = liveQuery(...events)
      const cancelStage = (stage: number) => Promise.resolve(void stages.push(stage))
      return serviceOf({ live: { ...execution, aggregate: execution.aggregate, cancelStage } })
    }
    expect(await begin(...planned).cancelStage(QUERY_ID, 1)).toBe('done')
    expect(await begin(event('QueryCreated'), event('QueryPlanned', 1, { write })).cancelStage(QUERY_ID, 1)).toBe(
      'writes',
    )
    expect(await serviceOf({}).cancelStage(QUERY_ID, 1)).toBe('unknown')
    expect(stages).toEqual([1])
  })
})

describe('A heartbeat', () => {
  it('returns true for a query in memory or in the log, and false for any other id', async () => {
    expect(await serviceOf({ live: liveQuery(...planned).execution }).heartbeat(QUERY_ID)).toBe(true)
    expect(await serviceOf({ logged: planned }).heartbeat(QUERY_ID)).toBe(true)
    expect(await serviceOf({}).heartbeat(QUERY_ID)).toBe(false)
    expect(await serviceOf({}).heartbeat('no id' as QueryId)).toBe(false)
  })
})
