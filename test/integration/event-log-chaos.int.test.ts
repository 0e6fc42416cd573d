import { fork, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { sameState } from '../../src/events/fold.ts'
import { LogReader } from '../../src/events/log-reader.ts'
import { kafkaAdapter } from '../support/event-log/kafka-fixture.ts'
import { audit, type LogAdapter, type LogFixture } from '../support/event-log/log-fixture.ts'
import { postgresAdapter } from '../support/event-log/postgres-fixture.ts'
import type { FaultProxy } from '../support/fault-proxy.ts'
import { kafkaIsAvailable } from '../support/kafka.ts'

/** QUIPU_CHAOS_SECONDS=300 runs it for minutes. A failing run prints its seed; QUIPU_CHAOS_SEED repeats the faults. */
const SECONDS = Number(process.env['QUIPU_CHAOS_SECONDS'] ?? 8)
const SEED = Number(process.env['QUIPU_CHAOS_SEED'] ?? Date.now() % 1_000_000)
const PROGRAM = new URL('../support/event-log/chaos-writer.mjs', import.meta.url).pathname

interface Acknowledged {
  readonly partition: number
  readonly offset: string
  readonly hash: string
}

/**
 * Runs two writers that claim the log from each other, under faults of the writers, their connections and the server.
 */
async function chaos(adapter: LogAdapter): Promise<void> {
  const random = seeded(SEED)
  const fixture = await adapter.fixture({ ownServer: true })
  const acknowledged: Acknowledged[] = []
  const counts = { claims: 0, fenced: 0, killed: 0, stopped: 0, serverKilled: 0, cut: 0, held: 0, dropped: 0 }
  const children = new Set<ChildProcess>()
  const proxies: FaultProxy[] = []
  const start = async (): Promise<void> => {
    const proxy = await fixture.proxy()
    proxies.push(proxy)
    const child = fork(PROGRAM, [JSON.stringify(configOf(fixture, proxy))], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    children.add(child)
    child.on('exit', () => children.delete(child))
    child.on('message', (message: { acknowledged?: Acknowledged[]; claimed?: number; fenced?: number }) => {
      if (message.acknowledged) acknowledged.push(...message.acknowledged)
      if (message.claimed) counts.claims++
      if (message.fenced) counts.fenced++
    })
  }
  try {
    const end = Date.now() + SECONDS * 1000
    let serverAway: Promise<void> | undefined
    let serverFaults = 0
    while (Date.now() < end) {
      while (children.size < 2) await start()
      await sleep(200 + random() * 700)
      const child = [...children][Math.floor(random() * children.size)]
      const proxy = proxies.slice(-2)[Math.floor(random() * 2)]
      const fault = random()
      if (fault < 0.15) {
        child?.kill('SIGKILL')
        counts.killed++
      } else if (fault < 0.4) {
        child?.kill('SIGSTOP')
        counts.stopped++
        setTimeout(() => child?.kill('SIGCONT'), random() * 3000)
      } else if (fault < 0.55) {
        proxy?.cut()
        counts.cut++
      } else if (fault < 0.75) {
        proxy?.dropAnswers()
        counts.dropped++
        setTimeout(() => (proxy?.deliverAnswers(), proxy?.cut()), 100 + random() * 500)
      } else if (fault < 0.9) {
        proxy?.holdRequests()
        counts.held++
        setTimeout(() => {
          const release = proxy?.takeHeld()
          proxy?.cut({ keepUpstream: true })
          setTimeout(() => release?.(), random() * 2000)
        }, 150)
      } else if (serverAway === undefined && serverFaults++ < SECONDS / 10) {
        counts.serverKilled++
        serverAway = (async () => {
          await fixture.server!.kill()
          await fixture.server!.start()
          serverAway = undefined
        })()
      }
    }
    await serverAway
    for (const child of children) child.kill('SIGCONT')
    await sleep(2500)
    // If the server was away for most of the time, the writers have had little time to append.
    for (const until = Date.now() + 60_000; acknowledged.length <= 20 && Date.now() < until; await sleep(100))
      while (children.size < 2) await start()
    for (const child of children) child.kill('SIGKILL')
    await sleep(1000)

    const found = await audit(fixture)
    const valid = new Map<string, string>(
      found.valid.map((event) => [`${event.position.partition}/${event.position.offset}`, event.hash] as const),
    )
    const lost = acknowledged.filter((event) => valid.get(`${event.partition}/${event.offset}`) !== event.hash)
    const summary: Record<string, number> = {}
    for (const verdict of found.verdicts.flat()) summary[verdict] = (summary[verdict] ?? 0) + 1
    console.log(`chaos over ${adapter.technology}:`, {
      seed: SEED,
      acknowledged: acknowledged.length,
      ...counts,
      summary,
    })
    expect(lost, `lost with seed ${SEED}`).toEqual([])
    expect(acknowledged.length).toBeGreaterThan(20)
    await expectColdStates(fixture, found.states)
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await fixture.close()
  }
}

/** Expects that a cold reader computes, at any offset, the state that the whole fold has there. */
async function expectColdStates(
  fixture: LogFixture,
  states: Awaited<ReturnType<typeof audit>>['states'],
): Promise<void> {
  const reader = new LogReader(await fixture.store())
  for (const [partition, all] of states.entries()) {
    const step = Math.max(1, Math.floor(all.length / 100))
    for (let offset = 0; offset < all.length; offset += step)
      expect(sameState(await reader.stateAt(partition, BigInt(offset)), all[offset]!), `state at ${offset}`).toBe(true)
  }
}

function configOf(fixture: LogFixture, proxy: FaultProxy): object {
  const url = new URL(fixture.details['url']!)
  if (fixture.technology === 'postgres') {
    url.port = String(proxy.port)
    return { technology: 'postgres', connection: { connectionString: url.href } }
  }
  const { topic, broker } = fixture.details
  const kafka = { brokers: [broker], topic, partitions: fixture.partitions, database: { connectionString: url.href } }
  return { technology: 'kafka', kafka, proxyPort: proxy.port }
}

/** mulberry32: the same seed gives the same faults. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

const kafka = await kafkaIsAvailable()

describe('The event log under random faults', () => {
  const timeout = SECONDS * 1000 + 120_000
  it('keeps every acknowledged event once and in order, over Postgres', { timeout }, () => chaos(postgresAdapter))
  it.runIf(kafka)('keeps every acknowledged event once and in order, over Kafka', { timeout }, () =>
    chaos(kafkaAdapter),
  )
})
