import { describe, expect, it } from 'vitest'
import { createStatementMemory } from '../../../src/coordinator/dispatch/statement-memory.ts'
import type { QueryEventType } from '../../../src/coordinator/query/stream/events.ts'
import { readQuery } from '../../../src/coordinator/query/stream/read-query.ts'
import { recoverQueries, type RecoveryDeps } from '../../../src/coordinator/recovery/recover-queries.ts'
import {
  Fenced,
  LogUnavailable,
  TooLarge,
  type Event,
  type EventLog,
  type Recorded,
} from '../../../src/events/event-log.ts'
import { isQueryId, parseQueryId } from '../../../src/shared/ids.ts'
import { event } from '../../support/query-events.ts'
import { MemoryLog } from '../../support/statement-bed.ts'
import { limitOwners } from '../../../src/shared/limit-owner.ts'

const IDS = [1, 2, 3].map((number) => parseQueryId(`20260102_030405_0000${number}_00001`))
const [FIRST, BAD, LAST] = IDS as [(typeof IDS)[0], (typeof IDS)[0], (typeof IDS)[0]]
const clock = { now: () => Date.parse('2026-01-02T03:05:00Z'), monotonicMs: () => 0 }

function stored(...types: readonly QueryEventType[]): Event[] {
  return types.map((type) => ({ ...event(type), v: 1, typed: true }))
}

/** A log with three open queries, and a successor that recovers them. */
function bed(over: Partial<RecoveryDeps> = {}) {
  const log = new MemoryLog()
  for (const id of IDS) log.streams.set(id, stored('QueryCreated'))
  const readable: Pick<EventLog, 'append' | 'readStream'> = {
    append: log.asEventLog().append,
    async *readStream(stream) {
      for (const [index, one] of (log.streams.get(stream) ?? []).entries())
        yield { ...one, stream, sequence: index + 1 } as Recorded
    },
  }
  const resumed: string[] = []
  const failed: string[] = []
  const givenUp = new Map<string, unknown>()
  const memory = createStatementMemory({ totalBytes: 1e9, userBytes: 1e9, addressBytes: 1e9 })
  const recover = () =>
    recoverQueries(
      {
        log: readable,
        clock,
        epoch: 2,
        writerDied: true,
        memory,
        ownerOf: limitOwners(false),
        resume: (queryId) => void resumed.push(queryId),
        onFailed: (query) => void failed.push(query.queryId),
        onGivenUp: (queryId, error) => void givenUp.set(queryId, error),
        againMs: 1,
        ...over,
      },
      IDS,
    )
  return { log, readable, memory, resumed, failed, givenUp, recover }
}

const ofBad = (stream: string, types: readonly Event[], type: QueryEventType) =>
  stream === BAD && types.some((one) => one.type === type)

describe('A query that cannot be recovered', () => {
  it('fails, and the others resume, when the log refuses its QueryRecovered', async () => {
    const { log, recover, ...reported } = bed()
    log.refuse = (stream, events) => (ofBad(stream, events, 'QueryRecovered') ? new TooLarge(9, 8) : undefined)
    expect(await recover()).toEqual({ resumed: 2, failed: 1, ended: 0, givenUp: 0 })
    expect(reported.resumed).toEqual([FIRST, LAST])
    expect(reported.failed).toEqual([BAD])
    expect(log.typesOf(BAD)).toEqual(['QueryCreated', 'QueryFailed'])
    expect(reported.memory.heldBytes).toBeGreaterThan(0)
  })

  it('is given up with the reason when the log refuses all its events, and the others resume', async () => {
    const { log, recover, ...reported } = bed()
    const refusal = new TooLarge(9, 8)
    log.refuse = (stream) => (stream === BAD ? refusal : undefined)
    expect(await recover()).toEqual({ resumed: 2, failed: 0, ended: 0, givenUp: 1 })
    expect([...reported.givenUp]).toEqual([[BAD, refusal]])
    expect(log.typesOf(LAST)).toEqual(['QueryCreated', 'QueryRecovered'])
  })

  it('fails, and the others resume, when one of its events is invalid; its stream can be read afterwards', async () => {
    const { log, readable, recover, ...reported } = bed()
    const dead = { ...stored('QueryPlanned')[0]!, typed: undefined, data: { nonsense: true } } as unknown as Event
    log.streams.set(BAD, [...stored('QueryCreated'), dead, ...stored('TaskCreated')])
    await expect(readQuery(readable, BAD)).rejects.toThrow()
    expect(await recover()).toEqual({ resumed: 2, failed: 1, ended: 0, givenUp: 0 })
    expect(reported.failed).toEqual([BAD])
    expect((await readQuery(readable, BAD)).state).toMatchObject({
      kind: 'FAILED',
      failure: { errorName: 'COORDINATOR_RESTARTED' },
    })
  })

  it('is given up, and the others resume, when its QueryCreated is invalid', async () => {
    const { log, recover, ...reported } = bed()
    log.streams.set(BAD, [{ ...stored('QueryCreated')[0]!, typed: undefined, data: 1 } as unknown as Event])
    expect(await recover()).toEqual({ resumed: 2, failed: 0, ended: 0, givenUp: 1 })
    expect([...reported.givenUp.keys()]).toEqual([BAD])
  })

  it('resumes after a second read when the log and a bulk read disagree about its sequence', async () => {
    const { readable, recover, ...reported } = bed({
      readMany: async (ids) => {
        const streams = await Promise.all(ids.filter(isQueryId).map((id) => readQuery(readable, id)))
        return new Map(streams.map((stream, index) => [ids[index]!, { ...stream, sequence: index === 1 ? 7 : 1 }]))
      },
    })
    expect(await recover()).toEqual({ resumed: 3, failed: 0, ended: 0, givenUp: 0 })
    expect(reported.resumed).toEqual(IDS)
  })

  it('fails, and the others resume, when `resume` throws', async () => {
    const resumed: string[] = []
    const { recover, ...reported } = bed({
      resume(queryId) {
        if (queryId === BAD) throw new Error('a defect')
        resumed.push(queryId)
      },
    })
    expect(await recover()).toEqual({ resumed: 2, failed: 1, ended: 0, givenUp: 0 })
    expect(resumed).toEqual([FIRST, LAST])
    expect(reported.failed).toEqual([BAD])
  })

  it('resumes after the others when its stream is unavailable at first', async () => {
    let away = 3
    const { readable, recover, ...reported } = bed()
    const read = readable.readStream
    Object.assign(readable, {
      readStream(stream: string) {
        if (stream === BAD && away-- > 0) throw new LogUnavailable('away')
        return read(stream)
      },
    })
    expect(await recover()).toEqual({ resumed: 3, failed: 0, ended: 0, givenUp: 0 })
    expect(reported.resumed).toEqual([FIRST, LAST, BAD])
  })

  it.each([
    ['fails when the previous coordinator recovered it and died', true, { resumed: 2, failed: 1 }],
    ['resumes when the previous coordinator recovered it and was only replaced', false, { resumed: 3, failed: 0 }],
  ])('%s, without another event of the query', async (_what, writerDied, counts) => {
    const { log, recover } = bed({ writerDied })
    log.streams.set(BAD, [...stored('QueryCreated'), ...stored('QueryRecovered')])
    expect(await recover()).toMatchObject(counts)
  })

  it('resumes when the previous coordinator lived for ten minutes after its recovery', async () => {
    const { log, recover } = bed({ clock: { ...clock, now: () => Date.parse(event('QueryRecovered').time) + 600_000 } })
    log.streams.set(BAD, [...stored('QueryCreated'), ...stored('QueryRecovered')])
    expect(await recover()).toMatchObject({ resumed: 3, failed: 0 })
  })

  it('ends the whole recovery when the log fences this process', async () => {
    const { log, recover } = bed()
    log.refuse = (stream) => (stream === BAD ? new Fenced('another') : undefined)
    await expect(recover()).rejects.toThrow(Fenced)
  })
})

describe('A query with no work to recover', () => {
  const atRest = {
    'waits in its group': stored('QueryCreated', 'QueryQueued'),
    'has a complete result': stored('QueryCreated', 'QueryPlanned', 'ResultPagesPublished'),
  }

  it.each(Object.entries(atRest))('gets no event when it %s', async (_what, events) => {
    const { log, recover, resumed } = bed()
    log.streams.set(BAD, events)
    expect(await recover()).toMatchObject({ resumed: 3, failed: 0 })
    expect(resumed).toEqual(IDS)
    expect(log.typesOf(BAD)).toEqual(events.map(({ type }) => type))
    expect(log.typesOf(LAST)).toEqual(['QueryCreated', 'QueryRecovered'])
  })

  it.each(Object.entries(atRest))('resumes after two dead coordinators when it %s', async (_what, events) => {
    const { log, recover } = bed()
    log.streams.set(BAD, [...events, ...stored('QueryRecovered')])
    expect(await recover()).toMatchObject({ resumed: 3, failed: 0 })
  })
})
