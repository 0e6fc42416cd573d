import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { EngineSupply } from '../../../src/execution/engine/engine-supply.ts'
import type { EngineEvent, EngineSettings } from '../../../src/execution/engine/engine.ts'
import { PoolWatch } from '../../../src/execution/engine/pool-watch.ts'
import { WaitingJobs } from '../../../src/execution/engine/waiting-jobs.ts'
import { FakeChild, FakeJob } from '../../support/engine-fakes.ts'

const MB = 2 ** 20

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Makes a supply whose processes the test controls. */
function supplyOf(overrides: Partial<EngineSettings> = {}) {
  const children: FakeChild[] = []
  const events: EngineEvent[] = []
  const waiting = new WaitingJobs()
  const settings: EngineSettings = {
    folder: '/nowhere/engines',
    spillFolder: '/nowhere/spill',
    allowedDirectories: [],
    memoryLimitBytes: 400 * MB,
    maxSpillBytes: MB,
    cores: 2,
    sharedConnections: 2,
    dedicatedConnections: 2,
    prepareDeadlineMs: 1_000_000,
    interruptToKillMs: 100,
    beatMs: 250,
    deadAfterMs: 10_000,
    spareAfterMs: 1_000,
    translateError: (text) => new Error(text),
    onEvent: (event) => events.push(event),
    ...overrides,
  }
  let disk = true
  const supply = new EngineSupply({
    settings,
    waiting,
    onGiven: () => undefined,
    startChild(options) {
      if (!disk) throw new Error('No space left')
      const child = new FakeChild(options)
      children.push(child)
      return child
    },
  })
  return {
    supply,
    waiting,
    children,
    events,
    setDisk: (there: boolean) => (disk = there),
    /** Runs the pending promises and the timers that are due. */
    settled: () => vi.advanceTimersByTimeAsync(0),
    wait(id: string, lane: 'shared' | 'dedicated'): FakeJob {
      const job = new FakeJob(id, lane)
      waiting.add(job)
      supply.dispatch()
      return job
    },
    async openShared(): Promise<FakeChild> {
      const opened = supply.open('shared')
      children.at(-1)!.becomeReady()
      await opened
      return children.at(-1)!
    },
  }
}

describe('A waiting job', () => {
  it('gets the shared engine in the order of arrival, one job per connection', async () => {
    const { wait, openShared, settled } = supplyOf()
    const child = await openShared()
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((id) => wait(id, 'shared'))
    expect([a, b, c, d].map((job) => job!.ranIn !== undefined)).toEqual([true, true, false, false])
    child.answer(2)
    await settled()
    expect([c, d].map((job) => job!.ranIn !== undefined)).toEqual([true, false])
    child.answer(1)
    await settled()
    expect(d!.ranIn).toBe(a!.ranIn)
  })

  it('gets a dedicated engine for itself, and the supply starts at most one per core', async () => {
    const { wait, children, openShared, settled } = supplyOf()
    await openShared()
    const jobs = ['a', 'b', 'c'].map((id) => wait(id, 'dedicated'))
    expect(children).toHaveLength(3)
    for (const child of children) child.becomeReady()
    await settled()
    expect(jobs.map((job) => job.ranIn?.child.slot)).toEqual([1, 2, undefined])
    children[2]!.answer(1)
    await settled()
    expect(jobs[2]!.ranIn?.child.slot).toBe(2)
    expect(children).toHaveLength(3)
  })

  it('does not start a second engine while one is starting for it', async () => {
    const { wait, supply, children, openShared } = supplyOf()
    await openShared()
    wait('a', 'dedicated')
    supply.dispatch()
    supply.dispatch()
    expect(children).toHaveLength(2)
  })

  it('fails after three failed starts of an engine, and the starts are delayed by a back-off', async () => {
    const { wait, children, openShared, settled } = supplyOf()
    await openShared()
    const job = wait('a', 'dedicated')
    for (const delay of [100, 200]) {
      children.at(-1)!.exit()
      await settled()
      const before = children.length
      await vi.advanceTimersByTimeAsync(delay - 1)
      expect(children).toHaveLength(before)
      await vi.advanceTimersByTimeAsync(1)
      expect(children).toHaveLength(before + 1)
    }
    expect(job.refused).toBeUndefined()
    children.at(-1)!.exit()
    await settled()
    expect(job.refused?.message).toBe('No engine could be started')
  })
})

describe('The spare engine', () => {
  it('starts ahead of need, takes the first job, and is replaced after a delay', async () => {
    const { supply, wait, children, openShared, settled } = supplyOf()
    await openShared()
    supply.scheduleSpare(1_000)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(children).toHaveLength(2)
    children[1]!.becomeReady()
    await settled()
    expect(supply.members.children()[1]!.state).toBe('spare')
    const job = wait('a', 'dedicated')
    await settled()
    expect(job.ranIn?.child).toBe(children[1])
    expect(children).toHaveLength(2)
    await vi.advanceTimersByTimeAsync(500)
    expect(children).toHaveLength(3)
  })

  it('is started again later if no process could be started', async () => {
    const { supply, children, setDisk } = supplyOf()
    setDisk(false)
    supply.scheduleSpare(1)
    await vi.advanceTimersByTimeAsync(1)
    setDisk(true)
    await vi.advanceTimersByTimeAsync(9_999)
    expect(children).toHaveLength(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(children).toHaveLength(1)
  })

  it('is replaced after a delay when it ends', async () => {
    const { supply, children, settled } = supplyOf()
    supply.scheduleSpare(1)
    await vi.advanceTimersByTimeAsync(1)
    children[0]!.exit()
    await settled()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(children).toHaveLength(2)
  })
})

describe('An engine that ends', () => {
  it('is replaced at once, in an unused slot, if it ran a statement', async () => {
    const { wait, children, events, openShared } = supplyOf()
    const child = await openShared()
    wait('a', 'shared')
    child.exit()
    expect(events).toContainEqual({ type: 'ended', slot: 0, pid: 1000, reason: 'crash', statements: ['a'] })
    // The folders of the first engine may still exist.
    expect(children.map(({ slot }) => slot)).toEqual([0, 1])
  })

  it('is replaced after the back-off of a failed start if it was idle', async () => {
    const { children, openShared, settled } = supplyOf()
    const child = await openShared()
    child.exit()
    await settled()
    expect(children).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(100)
    expect(children).toHaveLength(2)
  })

  it('is killed and replaced if it is idle above its memory limit', async () => {
    const { supply, children, events, openShared } = supplyOf()
    const child = await openShared()
    const watch = new PoolWatch(supply.members, 10_000)
    watch.start()
    child.resident = child.dataLimitBytes
    await vi.advanceTimersByTimeAsync(500)
    watch.stop()
    expect(child.killed).toBe(true)
    expect(events).toContainEqual({ type: 'ended', slot: 0, pid: 1000, reason: 'recycle', statements: [] })
    expect(children).toHaveLength(2)
  })

  it('is not replaced if the supply stops', async () => {
    const { supply, children, events, openShared, settled } = supplyOf()
    const child = await openShared()
    supply.stop()
    const gone = supply.members.killAll()
    child.exit()
    await gone
    await settled()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(events.at(-1)).toMatchObject({ type: 'ended', reason: 'stopped' })
    expect(children).toHaveLength(1)
  })
})

it('PoolWatch kills an engine without heartbeats, but not right after a stall of its own process', async () => {
  const { supply, openShared } = supplyOf()
  const child = await openShared()
  const watch = new PoolWatch(supply.members, 1_000)
  watch.start()
  // The process of the watch was stopped: its timers fire late, and heartbeats are unread.
  const stalled = vi.spyOn(performance, 'now')
  const now = performance.now()
  stalled.mockReturnValue(now + 20_000)
  await vi.advanceTimersByTimeAsync(500)
  expect(child.killed).toBe(false)
  stalled.mockReturnValue(now + 20_100)
  await vi.advanceTimersByTimeAsync(50)
  expect(child.killed).toBe(true)
  watch.stop()
  stalled.mockRestore()
})
