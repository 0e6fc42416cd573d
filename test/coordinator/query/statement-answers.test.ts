import type { QueryId } from '../../../src/shared/ids.ts'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createStatementMemory } from '../../../src/coordinator/dispatch/statement-memory.ts'
import { canceledByClient, endingBy } from '../../../src/coordinator/query/stream/ending.ts'
import { queryEventVersions, type QueryEvent } from '../../../src/coordinator/query/stream/events.ts'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import type { QueryExecution } from '../../../src/coordinator/query/registry/query-handle.ts'
import { createQueryRegistry, type QueryRegistry } from '../../../src/coordinator/query/registry/query-registry.ts'
import type { ResultPageSource } from '../../../src/coordinator/query/results/result-page-source.ts'
import {
  createStatementService,
  type StatementService,
} from '../../../src/coordinator/query/results/statement-service.ts'
import type { QueryState } from '../../../src/coordinator/query/stream/state.ts'
import { Fenced, LogUnavailable, type Checkpoint, type Recorded } from '../../../src/events/event-log.ts'
import type { Failure } from '../../../src/shared/engine-error.ts'
import { allowAll } from '../../../src/security/authorization.ts'
import { at, event, QUERY_ID } from '../../support/query-events.ts'
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

/** A query of this coordinator, which becomes what its events say; its end adds QueryFinished. */
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
  /** What the log has of the query. */
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
        for (const [index, { type, time, data }] of (around.logged ?? []).entries())
          yield await Promise.resolve({
            type,
            v: queryEventVersions[type],
            time,
            data,
            sequence: index + 1,
          } as Recorded)
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

/** What became of it when all timers have run. */
async function inTime<T>(asked: Promise<T>): Promise<T | { readonly thrown: unknown }> {
  const settled = asked.catch((thrown: unknown) => ({ thrown }))
  await vi.advanceTimersByTimeAsync(20_000)
  return settled
}

describe('what a client is told of a query that runs', () => {
  it('is its state at the same token when nothing comes in time', async () => {
    const { execution } = liveQuery(...planned)
    expect(await inTime(serviceOf({ live: execution }).poll(QUERY_ID, 0, 500))).toMatchObject({
      kind: 'answer',
      nextToken: 0,
      settled: false,
      query: { kind: 'STARTING' },
    })
  })

  it('is a page as soon as it is published, and where the next one will be', async () => {
    const { execution, become, reported } = liveQuery(...planned)
    const asked = serviceOf({ live: execution }).poll(QUERY_ID, 0, 5000)
    become(published(2))
    expect(await inTime(asked)).toMatchObject({ nextToken: 1, settled: true, page: { token: 0, bytes, rows: 3 } })
    expect(reported.delivered).toEqual([0])
  })

  it('records what was handed over at most once a second', async () => {
    const { execution, reported } = liveQuery(...planned, published(4))
    const service = serviceOf({ live: execution })
    await service.poll(QUERY_ID, 0, 0)
    await service.poll(QUERY_ID, 1, 0)
    await vi.advanceTimersByTimeAsync(1000)
    await service.poll(QUERY_ID, 2, 0)
    expect(reported).toMatchObject({ delivered: [0, 2], passed: [1, 2] })
  })

  it('ends with the last page, once its end is valid', async () => {
    const { execution } = liveQuery(...planned, published(1))
    expect(await serviceOf({ live: execution }).poll(QUERY_ID, 0, 0)).toMatchObject({
      query: { kind: 'FINISHED' },
      nextToken: undefined,
      page: { token: 0 },
      settled: true,
    })
  })

  it('waits with the last page while its end is not valid', async () => {
    const { execution } = liveQuery(...planned, published(1))
    const stuck = { ...execution, aggregate: execution.aggregate, finish: () => new Promise<void>(() => {}) }
    expect(await inTime(serviceOf({ live: stuck }).poll(QUERY_ID, 0, 500))).toMatchObject({
      nextToken: 0,
      page: undefined,
      settled: false,
    })
  })

  it('ends without a page where the one before turned out to be the last', async () => {
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

  it('is what is to be remembered as it is, which the log has without secrets', async () => {
    const { execution } = liveQuery(...planned, published(1), event('QueryFinished', 4))
    const headers = [{ header: 'Set-Session', value: 'a=secret' }] as unknown as QueryExecution['responseHeaders']
    const reported = { ...execution, aggregate: execution.aggregate, responseHeaders: headers }
    expect(await serviceOf({ live: reported }).poll(QUERY_ID, 0, 0)).toMatchObject({
      query: { finished: { responseHeaders: headers } },
    })
  })

  it('is its failure', async () => {
    const { execution } = liveQuery(...planned, event('QueryFailed', 4))
    expect(await serviceOf({ live: execution }).poll(QUERY_ID, 0, 0)).toMatchObject({
      failure: { errorName: 'DIVISION_BY_ZERO' },
      nextToken: undefined,
      settled: true,
    })
  })

  it('is that a token is gone once a later one was asked for', async () => {
    const { execution } = liveQuery(...planned, published(3))
    const service = serviceOf({ live: execution })
    await service.poll(QUERY_ID, 1, 0)
    expect(await service.poll(QUERY_ID, 0, 0)).toEqual({ kind: 'gone' })
  })

  it('is nothing known of what lies behind its end', async () => {
    const { execution } = liveQuery(...planned, published(1), event('QueryFinished', 4))
    expect(await serviceOf({ live: execution }).poll(QUERY_ID, 7, 0)).toEqual({ kind: 'unknown' })
  })
})

describe('a page of a query that runs', () => {
  it('that is lost is its end', async () => {
    const { execution, reported } = liveQuery(...planned, published(2))
    const read = () => Promise.resolve('lost' as const)
    expect(await serviceOf({ live: execution, read }).poll(QUERY_ID, 0, 0)).toMatchObject({
      failure: { errorName: 'PAGE_TRANSPORT_ERROR' },
      nextToken: undefined,
    })
    expect(reported).toMatchObject({ lost: [0], failures: [{ errorName: 'PAGE_TRANSPORT_ERROR' }] })
  })

  it('is not lost on the word of a coordinator that is overtaken', async () => {
    const { execution, reported } = liveQuery(...planned, published(2))
    const read = () => Promise.resolve('lost' as const)
    const tip = () => Promise.resolve(tipOf(EPOCH + 1))
    await expect(serviceOf({ live: execution, read, tip }).poll(QUERY_ID, 0, 0)).rejects.toThrow(Fenced)
    expect(reported).toMatchObject({ lost: [], failures: [] })
  })

  it('is waited for while who has it is away', async () => {
    const { execution } = liveQuery(...planned, published(2))
    let reads = 0
    const read = () => (reads++ < 2 ? Promise.reject(new LogUnavailable('away')) : Promise.resolve(bytes))
    expect(await inTime(serviceOf({ live: execution, read }).poll(QUERY_ID, 0, 5000))).toMatchObject({ nextToken: 1 })
    expect(reads).toBe(3)
  })

  it('is asked for again when that is too long, and a defect is no such wait', async () => {
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

describe('what a client is told of a query that the log alone knows', () => {
  const ended = [...planned, published(2), event('QueryFinished', 4)]

  it('is its pages, to the last', async () => {
    const service = serviceOf({ logged: ended })
    expect(await service.poll(QUERY_ID, 0, 100)).toMatchObject({ nextToken: 1, page: { token: 0 }, settled: true })
    expect(await service.poll(QUERY_ID, 1, 100)).toMatchObject({ nextToken: undefined, page: { token: 1 } })
    expect(await service.poll(QUERY_ID, 2, 100)).toEqual({ kind: 'unknown' })
  })

  it('is that a page is lost, without an end to change', async () => {
    const service = serviceOf({ logged: ended, read: () => Promise.resolve('lost') })
    expect(await service.poll(QUERY_ID, 0, 100)).toMatchObject({ failure: { errorName: 'PAGE_TRANSPORT_ERROR' } })
  })

  it('is that a page is gone which it has', async () => {
    const service = serviceOf({ logged: [...ended, event('ResultsDelivered', 5, { token: 1 })] })
    expect(await service.poll(QUERY_ID, 0, 100)).toEqual({ kind: 'gone' })
  })

  it('is its failure', async () => {
    const service = serviceOf({ logged: [...planned, event('QueryFailed', 4)] })
    expect(await service.poll(QUERY_ID, 0, 100)).toMatchObject({ failure: { errorName: 'DIVISION_BY_ZERO' } })
  })

  it('is nothing of one that the log does not know either, if this coordinator still writes it', async () => {
    expect(await serviceOf({}).poll(QUERY_ID, 0, 100)).toEqual({ kind: 'unknown' })
    expect(await serviceOf({}).poll('no id' as QueryId, 0, 100)).toEqual({ kind: 'unknown' })
    const overtaken = serviceOf({ tip: () => Promise.resolve(tipOf(EPOCH + 1)) })
    await expect(overtaken.poll(QUERY_ID, 0, 100)).rejects.toThrow(Fenced)
    const silent = serviceOf({ tip: () => new Promise(() => {}) })
    expect(await inTime(silent.poll(QUERY_ID, 0, 100))).toMatchObject({ thrown: expect.any(LogUnavailable) })
  })

  it('is nothing when its answers are kept no longer', async () => {
    const service = serviceOf({ logged: ended })
    await vi.advanceTimersByTimeAsync(120_000)
    expect(await service.poll(QUERY_ID, 0, 100)).toEqual({ kind: 'unknown' })
  })

  it('is no half of a session: what it is to remember was secret, and is nowhere any more', async () => {
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

  it('of an open one is its state, until recovery comes to it', async () => {
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

describe('a statement that is posted', () => {
  const statement = { sql: 'SELECT 1', created: event('QueryCreated').data } as Parameters<
    StatementService['submit']
  >[0]

  it('is refused while the coordinator stops, has too many, or has no room for more of the log', async () => {
    await expect(serviceOf({ accepting: false }).submit(statement)).rejects.toThrow('The server is shutting down')
    const full = serviceOf({ openQueries: 1, live: liveQuery(...planned).execution })
    await expect(full.submit(statement)).rejects.toThrow('Too many open queries: 1 are allowed')
    await expect(serviceOf({ room: false }).submit(statement)).rejects.toThrow(LogUnavailable)
  })

  it('is there for whoever asks as soon as it is accepted, planned or not', async () => {
    const { execution } = liveQuery(...planned)
    const slow = { ...execution, aggregate: execution.aggregate, planKnown: new Promise<void>(() => {}) }
    const service = serviceOf({ start: () => slow })
    expect(await inTime(service.submit(statement))).toBe(slow)
    expect(await service.heartbeat(QUERY_ID)).toBe(true)
  })

  it('is abandoned when the log does not take it in time, and when it says at once that it will not', async () => {
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

describe('a query that is to end', () => {
  const kim = { user: 'kim', groups: [] }
  const killedBy = (statement: string) => endingBy(kim, allowAll, { how: 'kill_query', statement }, 'enough')

  it('is killed once by a statement that a successor carries out again, and by no other any more', async () => {
    const { failure, endedBy } = killedBy('first')
    const killed = serviceOf({ logged: [...planned, event('QueryFailed', 4, { failure, endedBy: endedBy! })] })
    expect(await killed.cancel(QUERY_ID, killedBy('first'), 1000)).toBe('done')
    expect(await killed.cancel(QUERY_ID, killedBy('second'), 1000)).toBe('ended')
    expect(await killed.cancel(QUERY_ID, endingBy(kim, allowAll, { how: 'killed' }), 1000)).toBe('ended')
  })

  it('is of those who may, wherever it is known, and a secret in the message stays out of the log', async () => {
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

  it('is failed where it runs, and was ended where the log says so', async () => {
    const { execution, reported } = liveQuery(...planned)
    expect(await serviceOf({ live: execution }).cancel(QUERY_ID, canceledByClient, 1000)).toBe('done')
    expect(reported.failures).toEqual([canceledByClient.failure])
    const past = serviceOf({ logged: [...planned, event('QueryFinished', 4)] })
    expect(await past.cancel(QUERY_ID, canceledByClient, 1000)).toBe('ended')
    expect(await serviceOf({}).cancel(QUERY_ID, canceledByClient, 1000)).toBe('unknown')
  })

  it('in a stage is left alone when it writes', async () => {
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

describe('a sign of life', () => {
  it('is for a query that is here or in the log', async () => {
    expect(await serviceOf({ live: liveQuery(...planned).execution }).heartbeat(QUERY_ID)).toBe(true)
    expect(await serviceOf({ logged: planned }).heartbeat(QUERY_ID)).toBe(true)
    expect(await serviceOf({}).heartbeat(QUERY_ID)).toBe(false)
    expect(await serviceOf({}).heartbeat('no id' as QueryId)).toBe(false)
  })
})
