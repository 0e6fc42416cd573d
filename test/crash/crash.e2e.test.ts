import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  isAlive,
  postgresOf,
  processesOf,
  spawnQuipu,
  temporaryFolder,
  type QuipuProcess,
} from '../support/quipu-process.ts'
import { pythonClients } from '../support/real-clients.ts'
import { childrenOf } from '../support/process-children.ts'
import { embeddedConnection } from '../support/embedded-connection.ts'

const SEED = Number(process.env['QUIPU_CRASH_SEED'] ?? 1)
const RUNS = Number(process.env['QUIPU_CRASH_RUNS'] ?? 8)
const CLIENT_SECONDS = 4

/** Streaming, aggregating, sorting with ties, and tiny. */
const STATEMENTS = {
  tiny: 'SELECT 1',
  values: "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t(n, s) ORDER BY n",
  stream: 'SELECT orderkey, linenumber, comment FROM lineitem',
  group: 'SELECT orderpriority, count(*), min(orderkey) FROM orders GROUP BY orderpriority',
  sort: 'SELECT orderkey, orderpriority FROM orders ORDER BY orderpriority',
  join: 'SELECT n.name, count(*) FROM customer c JOIN nation n ON c.nationkey = n.nationkey GROUP BY n.name',
}

interface Outcome {
  readonly name: keyof typeof STATEMENTS
  readonly rows?: string
  readonly error?: string
  readonly connection?: string
  readonly broken?: string
  readonly id?: string
}

/** mulberry32: the same faults for the same seed. */
function random(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const CLEAN = new Set([
  'COORDINATOR_RESTARTED',
  'REMOTE_TASK_FAILED',
  'REMOTE_HOST_GONE',
  'REMOTE_TASK_ERROR',
  'PAGE_TRANSPORT_ERROR',
  'NO_NODES_AVAILABLE',
  'ABANDONED_QUERY',
])

const python = await pythonClients()
const script = readFileSync(new URL('./client.py', import.meta.url), 'utf8')
const folder = temporaryFolder()
const dataDir = join(folder.path, 'data')
let server: QuipuProcess
let base: URL
const expected = new Map<string, string>()

async function clients(
  seed: number,
  count: number,
  statements: Partial<typeof STATEMENTS>,
  seconds: number,
): Promise<Outcome[]> {
  const runs = Array.from({ length: count }, (_, index) =>
    python!(script, [
      base.hostname,
      base.port,
      String(seed * 100 + index),
      String(seconds),
      JSON.stringify(statements),
    ]),
  )
  const outcomes: Outcome[] = []
  for (const { stdout, stderr, code } of await Promise.all(runs)) {
    expect([code, stderr]).toEqual([0, ''])
    for (const line of stdout.split('\n').filter(Boolean)) outcomes.push(JSON.parse(line) as Outcome)
  }
  return outcomes
}

describe.runIf(python)('processes killed and stopped under clients', () => {
  beforeAll(async () => {
    server = spawnQuipu(['start', '--data-dir', dataDir, '--port', '0', '--log-level', 'warn'])
    base = new URL(await server.url)
    for (const [name, sql] of Object.entries(STATEMENTS)) {
      const [first] = await clients(0, 1, { [name]: sql }, 0.1)
      expect(first?.rows, `${name}: ${JSON.stringify(first)}`).toBeDefined()
      expected.set(name, first!.rows!)
    }
  }, 120_000)

  afterAll(async () => {
    if (process.env['QUIPU_CRASH_KEEP']) return
    server.signal('SIGTERM')
    await server.exit
    await folder.remove()
  }, 60_000)

  const seeds = Array.from({ length: RUNS }, (_, run) => SEED + run)
  it.each(seeds)(
    'seed %i: every query ends right or cleanly',
    async (seed) => {
      const next = random(seed)
      const running = clients(seed, 3, STATEMENTS, CLIENT_SECONDS)
      const until = Date.now() + CLIENT_SECONDS * 1000
      const faults: string[] = []
      while (Date.now() < until) {
        await sleep(200 + next() * 1500)
        const [coordinator, ...workers] = processesOf(dataDir).children
        const kind = next()
        const target =
          kind < 0.4
            ? coordinator
            : kind < 0.7
              ? workers[0]
              : (await childrenOf(next() < 0.5 ? coordinator! : workers[0]!))[0]
        if (target === undefined || !isAlive(target)) continue
        const stop = next() < 0.25
        faults.push(
          `${stop ? 'SIGSTOP' : 'SIGKILL'} ${target === coordinator ? 'coordinator' : workers.includes(target) ? 'worker' : 'engine'}`,
        )
        try {
          process.kill(target, stop ? 'SIGSTOP' : 'SIGKILL')
        } catch {
          continue
        }
        if (stop) {
          await sleep(300 + next() * 700)
          if (isAlive(target)) process.kill(target, 'SIGCONT')
        }
      }
      const outcomes = await running
      const wrong = outcomes.filter(
        (one) => one.broken !== undefined || (one.rows !== undefined && one.rows !== expected.get(one.name)),
      )
      expect({ faults, wrong }).toMatchObject({ wrong: [] })
      const unclean = outcomes.filter((one) => one.error !== undefined && !CLEAN.has(one.error))
      expect({ faults, unclean }).toMatchObject({ unclean: [] })
      expect(outcomes.length).toBeGreaterThan(0)
      const right = outcomes.filter((one) => one.rows !== undefined).length
      console.log(
        `seed ${seed}: ${faults.join(', ')}; ${outcomes.length} statements, ${right} right, ${outcomes.length - right} ended cleanly`,
      )
    },
    60_000,
  )

  it('every query id has exactly one terminal event', async () => {
    expect(postgresOf(dataDir)).toBeDefined()
    const endsOf = async (having: string): Promise<readonly string[]> => {
      const database = new pg.Client(embeddedConnection(dataDir))
      await database.connect()
      try {
        const { rows } = await database.query<{ stream: string }>(
          `select stream from m.query_events group by stream having bool_or(type = 'QueryCreated')
           and count(*) filter (where type in ('QueryFinished', 'QueryFailed')) ${having}`,
        )
        return rows.map((row) => row.stream)
      } finally {
        await database.end()
      }
    }
    // The read models follow within a second.
    await sleep(1000)
    expect(await endsOf('> 1')).toEqual([])
    server.signal('SIGTERM')
    await server.exit
    server = spawnQuipu(['start', '--data-dir', dataDir, '--port', '0', '--log-level', 'warn'])
    await server.url
    await sleep(1000)
    expect(await endsOf('> 1')).toEqual([])
    expect(await endsOf('= 0')).toEqual([])
  }, 60_000)
})
