import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import type { Cluster, ClusterSlot } from '../../../src/coordinator/clusters/cluster.ts'
import { createClusterDirectory, type ClusterControl } from '../../../src/coordinator/clusters/cluster-directory.ts'
import { readClusterFiles, type ClusterFiles } from '../../../src/coordinator/clusters/cluster-files.ts'
import { createClusterStates, type ClusterStates } from '../../../src/coordinator/clusters/cluster-states.ts'
import type { ClusterEvent } from '../../../src/coordinator/clusters/events.ts'
import { beginning, Fenced, type Event, type EventAppender, type Recorded } from '../../../src/events/event-log.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import type { ClusterName } from '../../../src/shared/ids.ts'
import { startStandInCluster, type StandInCluster } from '../../support/stand-in-cluster.ts'
import { waitUntil } from '../../support/quipu-process.ts'

const name = (text: string): ClusterName => text as ClusterName
const BEAT_MS = 100
const WAIT_MS = 400

/** The part of a log that a directory appends to. */
class MemoryLog {
  readonly events: Recorded[] = []
  readonly #sequences = new Map<string, number>()
  fenced = false

  readonly append: EventAppender['append'] = async (stream, _expected, events) => {
    if (this.fenced) throw new Fenced('Another writer holds the log')
    const recorded = events.map((event: Event) => {
      const sequence = (this.#sequences.get(stream) ?? 0) + 1
      this.#sequences.set(stream, sequence)
      return { ...event, stream, sequence } as Recorded
    })
    this.events.push(...recorded)
    return { partition: 0, offset: 0n, events: recorded }
  }
}

const ending: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ending.splice(0).toReversed()) await end()
})

async function standIn(is?: StandInCluster['is']): Promise<StandInCluster> {
  const server = await startStandInCluster(is)
  ending.push(() => server.close())
  return server
}

function filesOf(clusters: Readonly<Record<string, object>>): ClusterFiles {
  const texts = Object.entries(clusters).map(([one, file]) => [
    `${one}.json`,
    JSON.stringify({ group: 'big', ...file }),
  ])
  return readClusterFiles(JSON.stringify(Object.fromEntries(texts)), '/nowhere')
}

interface Bed {
  readonly clusters: ClusterControl
  readonly log: MemoryLog
  readonly states: ClusterStates
  files: ClusterFiles
  /** Types of the cluster's events, with what they say. */
  recorded(cluster: string): string[]
  becomes(cluster: string, condition: string): Promise<void>
}

async function open(
  files: ClusterFiles,
  { log = new MemoryLog(), states = createClusterStates(), waitMs = WAIT_MS, beatMs = BEAT_MS } = {},
): Promise<Bed> {
  states.restore([], beginning())
  states.apply(log.events)
  const checks: [Cluster, string][] = []
  const clusters = createClusterDirectory({
    files: () => bed.files,
    states,
    log,
    begin: beginning(),
    clock: systemClock,
    beatMs,
    waitMs,
    telemetry: { onEvent() {}, onCheck: (cluster, { result }) => void checks.push([cluster, result]), onWaited() {} },
  })
  const bed: Bed = {
    clusters,
    log,
    states,
    files,
    recorded: (cluster) =>
      log.events.filter(({ stream }) => stream === `cluster/${cluster}`).map((event) => said(event as never)),
    becomes: (cluster, condition) =>
      waitUntil(`${cluster} is ${condition}`, () => {
        const view = clusters.byName(cluster)
        return `${view?.state} ${view?.health}`.includes(condition)
      }),
  }
  await clusters.start()
  ending.push(() => clusters.stop())
  return bed
}

function said({ type, data }: ClusterEvent): string {
  switch (type) {
    case 'ClusterFound':
      return `found ${data.occasion}${data.before === undefined ? '' : ' again'}`
    case 'ClusterGone':
      return `gone ${data.occasion}`
    case 'ClusterStateAsked':
      return `${data.after} by ${data.by}`
    case 'ClusterHealthChanged':
      return `${data.after} ${data.reason}`
  }
}

const never = new AbortController().signal
const asker = (user: string, signal = never) => ({ user, signal })

describe('The directory of clusters', () => {
  it('records each cluster that a file describes, and that it is healthy once it answered twice', async () => {
    const server = await standIn()
    const bed = await open(filesOf({ a: { url: server.url } }))
    await bed.becomes('a', 'ACTIVE HEALTHY')
    expect(bed.recorded('a')).toEqual(['found start', 'HEALTHY ready'])
    expect(bed.clusters.byName('a')).toMatchObject({ version: '476', lastCheck: { result: 'ready' }, running: 0 })
    expect(server.asked.every((path) => path === '/v1/info')).toBe(true)
    expect([...bed.clusters.groups().keys()]).toEqual(['big'])
  })

  it.each(['dead', 'mute', 'wrong'] as const)('takes a cluster for UNHEALTHY that becomes %s', async (is) => {
    const server = await standIn()
    const bed = await open(filesOf({ a: { url: server.url } }))
    await bed.becomes('a', 'HEALTHY')
    server.is = is
    await bed.becomes('a', 'UNHEALTHY')
    server.is = 'ready'
    await bed.becomes('a', 'ACTIVE HEALTHY')
    const expected = ['UNHEALTHY no_answer', 'PENDING answers_again', 'HEALTHY ready']
    expect(bed.recorded('a').slice(-3)).toEqual(expected)
  })

  it('gives a starting cluster no statements', async () => {
    const server = await standIn('starting')
    const bed = await open(filesOf({ a: { url: server.url } }))
    await waitUntil('it was asked a few times', () => server.asked.length > 3)
    expect(bed.clusters.byName('a')).toMatchObject({ health: 'PENDING', lastCheck: { result: 'starting' } })
    await expect(bed.clusters.slot({ group: 'big' }, asker('ana'))).rejects.toMatchObject({
      errorName: 'NO_NODES_AVAILABLE',
      message: 'No cluster of group big takes statements: a is PENDING',
    })
    server.is = 'ready'
    const slot = await bed.clusters.slot({ group: 'big' }, asker('ana'))
    expect(slot.cluster.name).toBe('a')
    server.is = 'starting'
    await bed.becomes('a', 'PENDING')
    expect(bed.recorded('a')).toEqual(['found start', 'HEALTHY ready', 'PENDING starting'])
  })

  it('checks a live cluster as often as ever beside 20 that do not answer', async () => {
    const [alone, beside, mute] = await Promise.all([standIn(), standIn(), standIn('mute')])
    const dead = Array.from({ length: 20 }, (_, i) => [`dead${i}`, { url: mute.url }] as const)
    await open(filesOf({ live: { url: alone.url } }))
    await open(filesOf({ ...Object.fromEntries(dead), live: { url: beside.url } }))
    await waitUntil('the one alone was checked often', () => alone.asked.length >= 30)
    // Both run in this process: a busy machine slows both.
    expect(beside.asked.length).toBeGreaterThan(20)
  })

  it('takes outcomes of requests for the health, and one failure for nothing', async () => {
    const server = await standIn()
    const bed = await open(filesOf({ a: { url: server.url } }), { beatMs: 60_000 })
    bed.clusters.outcome('a', undefined)
    bed.clusters.outcome('a', undefined)
    expect(bed.clusters.byName('a')!.health).toBe('HEALTHY')
    for (let i = 0; i < 9; i++) bed.clusters.outcome('a', new Error('reset'))
    bed.clusters.outcome('nobody', new Error('reset'))
    expect(bed.clusters.byName('a')!.health).toBe('HEALTHY')
  })

  it('gives a cluster that is DRAINING or INACTIVE no statements, and records who asked, and why, once', async () => {
    const server = await standIn()
    const bed = await open(filesOf({ a: { url: server.url } }))
    await bed.becomes('a', 'HEALTHY')
    const running = await bed.clusters.slot({ cluster: 'a' }, asker('ana'))
    const by = { by: 'kim', reason: 'an upgrade' }
    const asked = [bed.clusters.ask(name('a'), 'DRAINING', by), bed.clusters.ask(name('a'), 'DRAINING', by)]
    expect(await Promise.all(asked)).toMatchObject([
      { state: 'DRAINING', reason: 'an upgrade', by: 'kim', running: 1 },
      { state: 'DRAINING' },
    ])
    await expect(bed.clusters.slot({ cluster: 'a' }, asker('ana'))).rejects.toThrow(
      'No cluster a takes statements: a is DRAINING',
    )
    expect(bed.clusters.byName('a')!.running).toBe(1)
    running.leave()
    running.leave()
    expect(bed.clusters.byName('a')!.running).toBe(0)
    const waits = bed.clusters.slot({ cluster: 'a' }, asker('ana'))
    await bed.clusters.ask(name('a'), 'ACTIVE', { by: 'kim' })
    expect((await waits).cluster.name).toBe('a')
    expect(bed.recorded('a').slice(-2)).toEqual(['DRAINING by kim', 'ACTIVE by kim'])
    expect(await bed.clusters.ask(name('b'), 'ACTIVE', by)).toBeUndefined()
  })

  it('does not change a state that the log does not take', async () => {
    const server = await standIn()
    const bed = await open(filesOf({ a: { url: server.url } }))
    await bed.becomes('a', 'HEALTHY')
    bed.log.fenced = true
    await expect(bed.clusters.ask(name('a'), 'INACTIVE', { by: 'kim' })).rejects.toThrow(Fenced)
    expect(bed.clusters.byName('a')!.state).toBe('ACTIVE')
    bed.log.fenced = false
    expect(await bed.clusters.ask(name('a'), 'INACTIVE', { by: 'kim' })).toMatchObject({ state: 'INACTIVE' })
  })

  it('follows the files: new, changed and removed clusters, and keeps their state and what runs there', async () => {
    const [one, two] = await Promise.all([standIn(), standIn()])
    const bed = await open(filesOf({ a: { url: one.url, maxRunning: 1 } }))
    await bed.becomes('a', 'HEALTHY')
    const slot = await bed.clusters.slot({ group: 'big' }, asker('ana'))
    const second = bed.clusters.slot({ group: 'big' }, asker('ana'))
    await waitUntil('it waits', () => bed.clusters.byName('a')!.waiting === 1)
    bed.files = filesOf({ a: { url: one.url, maxRunning: 2 }, b: { url: two.url } })
    expect((await second).cluster.name).toBe('a')
    await bed.becomes('b', 'HEALTHY')
    await bed.clusters.ask(name('b'), 'INACTIVE', { by: 'kim' })
    bed.files = filesOf({ a: { url: two.url, maxRunning: 2 } })
    await waitUntil('b is gone', () => bed.clusters.byName('b') === undefined)
    expect(bed.clusters.byName('a')!.running).toBe(2)
    slot.leave()
    await bed.becomes('a', 'HEALTHY')
    bed.files = filesOf({ a: { url: two.url, maxRunning: 2 }, b: { url: two.url } })
    await bed.becomes('b', 'INACTIVE')
    await waitUntil('all is recorded', () => bed.recorded('b').length === 5)
    expect(bed.recorded('a')).toEqual([
      'found start',
      'HEALTHY ready',
      'found reload again',
      'found reload again',
      'HEALTHY ready',
    ])
    expect(bed.recorded('b').slice(0, 5)).toEqual([
      'found reload',
      'HEALTHY ready',
      'INACTIVE by kim',
      'gone reload',
      'found reload',
    ])
  })

  it('knows states and health from the log at a successor, and records nothing that is there already', async () => {
    const [one, two, three] = await Promise.all([standIn(), standIn('dead'), standIn()])
    const all = { a: { url: one.url }, b: { url: two.url }, c: { url: three.url } }
    const before = await open(filesOf(all))
    await before.becomes('a', 'HEALTHY')
    await before.becomes('b', 'UNHEALTHY')
    await before.clusters.ask(name('a'), 'DRAINING', { by: 'kim', reason: 'an upgrade' })
    await before.clusters.stop()
    const count = before.log.events.length
    // On a busy machine its checks may fail meanwhile.
    const healthOfA = before.states.get(name('a'))?.health
    // A beat that is never due again: all that is known comes from the log.
    const { c: _, ...left } = all
    const after = await open(filesOf(left), { log: before.log, beatMs: 600_000 })
    expect(after.clusters.list().map(({ state, health }) => `${state} ${health}`)).toEqual([
      `DRAINING ${healthOfA}`,
      'ACTIVE UNHEALTHY',
    ])
    expect(after.clusters.byName('a')).toMatchObject({ reason: 'an upgrade', by: 'kim' })
    await waitUntil('the removed one is recorded', () => after.recorded('c').includes('gone start'))
    expect(after.log.events).toHaveLength(count + 1)
  })
})

describe('Slots', () => {
  it('wait while all clusters are full, and go to users in turn', async () => {
    const server = await standIn()
    const bed = await open(filesOf({ a: { url: server.url, maxRunning: 1 } }))
    await bed.becomes('a', 'HEALTHY')
    const order: string[] = []
    let running = await bed.clusters.slot({ group: 'big' }, asker('bot'))
    const slots: ClusterSlot[] = []
    const ask = async (user: string): Promise<void> => {
      slots.push(await bed.clusters.slot({ group: 'big' }, asker(user)))
      order.push(user)
    }
    const all = ['bot', 'bot', 'ana', 'bot', 'ben'].map(ask)
    // Longer than a statement waits where no cluster is open: this one is full, and it waits on.
    await sleep(2 * WAIT_MS)
    expect(bed.clusters.byName('a')).toMatchObject({ running: 1, waiting: 5 })
    expect(bed.clusters.waitingIn('big')).toBe(5)
    for (let i = 0; i < all.length; i++) {
      running.leave()
      await waitUntil('the next one runs', () => slots.length > i)
      running = slots[i]!
    }
    await Promise.all(all)
    expect(order).toEqual(['bot', 'ana', 'ben', 'bot', 'bot'])
  })

  it('are given up by a statement that is canceled, with the reason', async () => {
    const server = await standIn()
    const bed = await open(filesOf({ a: { url: server.url, maxRunning: 1 } }))
    await bed.becomes('a', 'HEALTHY')
    const slot = await bed.clusters.slot({ group: 'big' }, asker('ana'))
    const canceled = new AbortController()
    const waits = bed.clusters.slot({ group: 'big' }, asker('ana', canceled.signal))
    canceled.abort(new Error('canceled'))
    await expect(waits).rejects.toThrow('canceled')
    await expect(bed.clusters.slot({ group: 'big' }, asker('ana', canceled.signal))).rejects.toThrow('canceled')
    slot.leave()
    expect(bed.clusters.byName('a')).toMatchObject({ running: 0, waiting: 0 })
  })

  it('are refused after a while where no file describes a cluster of the target', async () => {
    const bed = await open(filesOf({}))
    await expect(bed.clusters.slot({ group: 'big' }, asker('ana'))).rejects.toThrow(
      'No file describes a cluster of group big',
    )
    await expect(bed.clusters.slot({ cluster: 'a' }, asker('ana'))).rejects.toThrow('No file describes a cluster a')
    expect(bed.clusters.adopt('a')).toBeUndefined()
  })

  it('end with the coordinator, so that a successor begins anew', async () => {
    const bed = await open(filesOf({}), { waitMs: 600_000 })
    const waits = bed.clusters.slot({ group: 'big' }, asker('ana'))
    const ended = expect(waits).rejects.toMatchObject({ retry: 'anew' })
    await bed.clusters.stop()
    await ended
  })
})
