import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createMembership, type Membership } from '../../../src/coordinator/nodes/membership.ts'
import { SequenceConflict, type Appended, type Event } from '../../../src/events/event-log.ts'
import { parseNodeId } from '../../../src/shared/ids.ts'

const worker = {
  nodeId: parseNodeId('w1'),
  url: 'http://127.0.0.1:9001',
  version: '0.1.0',
  cores: 4,
  memoryBytes: 1 << 30,
  epochSeen: 1,
}

let membership: Membership
/** The events of the log, by stream. An append with a wrong sequence is refused, as in a real log. */
let streams: Map<string, Event[]>
let writes = true
/** The milliseconds in which no timer of this process ran. */
let stoodStill = 0

beforeEach(async () => {
  vi.useFakeTimers()
  streams = new Map()
  writes = true
  stoodStill = 0
  membership = createMembership({
    log: {
      async append(stream, expected, events): Promise<Appended> {
        const known = streams.get(stream) ?? []
        if (expected !== 'end' && known.length !== expected) throw new SequenceConflict(stream, expected, known.length)
        streams.set(stream, [...known, ...events])
        return { partition: 0, offset: 0n, events: [] }
      },
    },
    clock: { now: () => Date.now(), monotonicMs: () => performance.now() + stoodStill },
    limits: { beatMs: 1000, failedMs: 5000 },
    writes: () => writes,
  })
  await membership.start()
})
afterEach(async () => {
  await membership.stop()
  vi.useRealTimers()
})

const FIRST_PROCESS = '11111111-1111-4111-8111-111111111111'
const SECOND_PROCESS = '22222222-2222-4222-8222-222222222222'

async function beats(seconds: number, uptimeMillis?: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    membership.announce({
      ...worker,
      ...(uptimeMillis === undefined ? {} : { uptimeMillis: uptimeMillis + second * 1000 }),
    })
    await vi.advanceTimersByTimeAsync(1000)
  }
}

function reported(): string[] {
  return (streams.get('node/w1') ?? []).map((event) => event.type)
}

const only = () => membership.nodes()[0]!

describe('A worker', () => {
  it('is active while it announces itself each second, and each announcement counts as a request', async () => {
    await beats(10)
    expect(only().state).toBe('active')
    expect(membership.active()).toMatchObject([{ nodeId: parseNodeId('w1'), url: worker.url, cores: 4 }])
    expect(membership.byUrl(worker.url)).toEqual({ nodeId: parseNodeId('w1'), url: worker.url })
    expect(only().recentRequests).toBeCloseTo(9.1, 0)
    expect(only().recentSuccesses).toBe(only().recentRequests)
    expect(only().recentFailures).toBe(0)
    expect(only().recentFailuresByType).toEqual({})
    expect(reported()).toEqual(['NodeJoined'])
  })

  it('is suspect and gets no tasks after one missed announcement; the next announcement makes it active', async () => {
    await beats(3)
    await vi.advanceTimersByTimeAsync(1000)
    expect(only().state).toBe('suspect')
    expect(membership.active()).toEqual([])
    expect(only().recentFailuresByType).toHaveProperty(['io.quipu.HeartbeatMissed'])
    await beats(1)
    expect(only().state).toBe('active')
    expect(reported()).toEqual(['NodeJoined', 'NodeSuspected', 'NodeRecovered'])
  })

  it('does not fail for the time in which the coordinator itself stood still', async () => {
    await beats(3)
    stoodStill = 30_000
    await vi.advanceTimersByTimeAsync(250)
    await beats(3)
    expect(only().state).toBe('active')
    expect(reported()).not.toContain('NodeFailed')
    await vi.advanceTimersByTimeAsync(5500)
    expect(only().state).toBe('failed')
  })

  it('has failed after five seconds without an announcement', async () => {
    await beats(1)
    await vi.advanceTimersByTimeAsync(3500)
    expect(only().state).toBe('suspect')
    await vi.advanceTimersByTimeAsync(1000)
    expect(only().state).toBe('failed')
    expect(only().lastFailure?.type).toBe('io.quipu.HeartbeatMissed')
    expect(streams.get('node/w1')!.at(-1)).toMatchObject({ type: 'NodeFailed', data: { reason: 'no_answer' } })
  })

  it('has failed when over 10 % of at least 30 requests fail, until the failures decay', async () => {
    await beats(35)
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    for (let request = 0; request < 4; request++) membership.outcome(worker.url, refused)
    membership.announce(worker)
    expect(only().recentRequests).toBeGreaterThan(30)
    expect(only().recentFailureRatio).toBeGreaterThan(0.1)
    expect(only().state).toBe('failed')
    expect(only().recentFailuresByType['Error.ECONNREFUSED']).toBeCloseTo(4)
    expect(streams.get('node/w1')?.at(-1)?.type).not.toBe('NodeRecovered')
    await beats(60)
    expect(only().state).toBe('active')
  })

  it('is suspect, not failed, when few requests were made and one failed', async () => {
    await beats(3)
    membership.outcome(worker.url, new Error('reset'))
    expect(only().state).toBe('suspect')
    membership.outcome(worker.url, undefined)
    expect(only().state).toBe('active')
  })

  it('loses its recorded failures when it comes back as another process', async () => {
    await beats(40, 100_000)
    for (let request = 0; request < 10; request++) membership.outcome(worker.url, new Error('reset'))
    expect(only().state).toBe('failed')
    await beats(1, 200)
    expect(only().state).toBe('active')
    expect(only().recentFailures).toBe(0)
    expect(only().ageMillis).toBeCloseTo(1200, -2)
    expect(reported().at(-1)).toBe('NodeJoined')
  })

  it('is the same process when its announcements are under way for different times', async () => {
    const announce = (processUuid: string, uptimeMillis: number): void =>
      membership.announce({ ...worker, processUuid, uptimeMillis })
    announce(FIRST_PROCESS, 100_000)
    await vi.advanceTimersByTimeAsync(900)
    announce(FIRST_PROCESS, 100_300)
    await vi.advanceTimersByTimeAsync(0)
    expect(reported()).toEqual(['NodeJoined'])
    announce(SECOND_PROCESS, 102_000)
    await vi.advanceTimersByTimeAsync(0)
    expect(reported()).toEqual(['NodeJoined', 'NodeJoined'])
  })

  it('stays marked as leaving until another process with its id announces itself', async () => {
    const leaving = () => membership.active()[0]?.leaving
    await beats(3, 100_000)
    expect(leaving()).toBeUndefined()
    membership.leaving(worker.nodeId)
    expect(leaving()).toBe(true)
    await beats(2, 103_000)
    expect(leaving()).toBe(true)
    await beats(1, 200)
    expect(leaving()).toBeUndefined()
  })

  it('disappears from the list when it leaves, and ten minutes after it failed', async () => {
    await beats(1)
    membership.leave(worker.nodeId)
    expect(membership.nodes()).toEqual([])
    await beats(1)
    await vi.advanceTimersByTimeAsync(601_000)
    expect(membership.nodes()).toEqual([])
    expect(reported()).toEqual(['NodeJoined', 'NodeLeft', 'NodeJoined', 'NodeSuspected', 'NodeFailed', 'NodeLeft'])
  })

  it('is suspect when an earlier coordinator knew it, until it announces itself', async () => {
    streams.set('node/w1', [{ type: 'NodeJoined', v: 1, time: '', data: {} }])
    membership.remember([{ ...worker, state: 'active' }])
    expect(only().state).toBe('suspect')
    await beats(1)
    expect(only().state).toBe('active')
    // No event was added: the worker joined long ago.
    expect(reported()).toEqual(['NodeJoined'])
  })

  it('gets NodeRecovered when an earlier coordinator knew it as failed and it announces itself', async () => {
    streams.set('node/w1', [{ type: 'NodeJoined', v: 1, time: '', data: {} }])
    membership.remember([{ ...worker, state: 'failed' }])
    await beats(1)
    expect(reported()).toEqual(['NodeJoined', 'NodeRecovered'])
  })

  it('fails when an earlier coordinator knew it and it does not announce itself', async () => {
    membership.remember([{ ...worker, state: 'active' }])
    await vi.advanceTimersByTimeAsync(5500)
    expect(only().state).toBe('failed')
  })
})

it('a coordinator that is not the writer watches workers and appends no events', async () => {
  writes = false
  await beats(2)
  expect(membership.active()).toHaveLength(1)
  expect(reported()).toEqual([])
})

it('membership calls its listeners for every change of a state', async () => {
  let changes = 0
  membership.onChange(() => changes++)
  await beats(3)
  expect(changes).toBe(1)
  await vi.advanceTimersByTimeAsync(5500)
  expect(changes).toBe(3)
})
