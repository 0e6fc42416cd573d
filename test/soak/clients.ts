import { setTimeout as sleep } from 'node:timers/promises'
import { BasicAuth, Trino } from 'trino-client'
import { runClient } from '../chaos/client.ts'
import { cleanErrors, type Outcome } from '../chaos/outcome.ts'
import { runPythonClient } from '../chaos/python-client.ts'
import { createRandom, type Random } from '../chaos/random.ts'
import { wrongRows, type RightAnswer } from '../chaos/right-answers.ts'
import { statementOf, statements, type StatementName } from '../chaos/statements.ts'
import { runWritingClient, type WriteOutcome } from '../chaos/writing-client.ts'
import type { pythonClients } from '../support/real-clients.ts'
import { PASSWORD, type SoakSet } from './set.ts'

/** Clients by kind: six are the protocol clients of the tests, two of which write; six are published clients. */
const READERS = 4
const WRITERS = 2
const PYTHON = 3
const NODE = 3
const named = (kind: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${kind}-${n + 1}`)
const readers = named('reader', READERS)
const writers = named('writer', WRITERS)
const pythons = named('python', PYTHON)
const nodes = named('node', NODE)
export const users: readonly string[] = [...readers, ...writers, ...pythons, ...nodes]

/** A client of the tests waits until every outage is over. */
const PATIENCE_MS = 300_000
/** The Python program starts again after this time, because it stops only by the clock. */
const PYTHON_MS = 20_000

export interface SoakLoad {
  /** Grows while the clients run. */
  readonly outcomes: readonly Outcome[]
  /** Stops beginning statements. @returns everything that the clients saw */
  end(): Promise<{ readonly outcomes: readonly Outcome[]; readonly writes: readonly WriteOutcome[] }>
}

export interface SoakLoadOptions {
  readonly set: SoakSet
  readonly seed: number
  readonly right: ReadonlyMap<StatementName, RightAnswer>
  readonly python: Awaited<ReturnType<typeof pythonClients>>
  /** Milliseconds since the clients began. */
  readonly now: () => number
  /** Each client waits this long after each statement. */
  readonly pauseMs: number
}

/** Starts the twelve clients. */
export function startClients({ set, seed, right, python, now, pauseMs }: SoakLoadOptions): SoakLoad {
  const { base, access } = set
  const outcomes: Outcome[] = []
  let over = false
  const beganAt = Date.now() - now()
  const common = (name: string) => ({
    base,
    name,
    access,
    now,
    random: createRandom(seed, name),
    passed: () => {},
    patienceMs: PATIENCE_MS,
  })
  const reading = readers.map(async (name) => {
    // The client runs statement by statement, so that each outcome is known at once.
    while (!over) {
      const untilMs = now()
      outcomes.push(
        ...(await runClient({ ...common(name), random: createRandom(seed, `${name} ${untilMs}`), right, untilMs })),
      )
      await sleep(pauseMs)
    }
  })
  const writing = writers.map((name) =>
    runWritingClient({
      ...common(name),
      pauseMs,
      get untilMs() {
        return over ? 0 : Number.POSITIVE_INFINITY
      },
    }),
  )
  const published = pythons.map(async (name, index) => {
    for (let part = 0; python && !over; part++) {
      const logIn = { user: name, password: PASSWORD, ca: set.ca }
      const drawn = seed * 1000 + part * PYTHON + index
      outcomes.push(
        ...(await runPythonClient({ python, base, seed: drawn, forMs: PYTHON_MS, right, beganAt, logIn, pauseMs })),
      )
    }
  })
  const nodeClients = nodes.map(async (name) => {
    const random = createRandom(seed, name)
    while (!over) {
      outcomes.push(await runNodeClient({ set, name, random, right, now }))
      await sleep(pauseMs)
    }
  })
  return {
    outcomes,
    async end() {
      over = true
      await Promise.all([...reading, ...published, ...nodeClients])
      return { outcomes, writes: (await Promise.all(writing)).flat() }
    },
  }
}

interface NodeClientOptions extends Pick<SoakLoadOptions, 'set' | 'right' | 'now'> {
  readonly name: string
  readonly random: Random
}

/** Runs one statement with the published Node client. It sometimes reads pages slowly, and never repeats a request. */
async function runNodeClient({ set, name: client, random, right, now }: NodeClientOptions): Promise<Outcome> {
  const names = (Object.keys(statements) as StatementName[]).filter((name) => right.has(name))
  const name = random.pick(names)
  const pauseMs = random.chance(0.3) ? random.whole(20, 500) : 0
  const fromMs = Math.round(now())
  const seen: { id?: string } = {}
  const ended = (result: Outcome['result'], why?: string): Outcome => ({
    name,
    client,
    behaviour: pauseMs > 0 ? 'slow' : 'follow',
    ...seen,
    result,
    ...(why === undefined ? {} : { why }),
    fromMs,
    toMs: Math.round(now()),
  })
  const rows: string[] = []
  const answer = right.get(name)!
  try {
    const trino = Trino.create({
      server: set.base,
      catalog: 'tpch',
      schema: 'tiny',
      auth: new BasicAuth(client, PASSWORD),
      ssl: { ca: set.access.ca },
    })
    for await (const { id, data, error } of await trino.query(statementOf(name).sql)) {
      seen.id = id
      for (const row of (data ?? []) as unknown[]) rows.push(JSON.stringify(row))
      if (error) {
        const wrong = wrongRows(rows, answer, false)
        if (wrong !== undefined) return ended('wrong', wrong)
        return ended(cleanErrors.has(error.errorName) ? 'clean' : 'wrong', `${error.errorName}: ${error.message}`)
      }
      if (pauseMs > 0) await sleep(pauseMs)
    }
  } catch (error) {
    await sleep(200)
    // The client gives up when a request fails.
    return ended('left', error instanceof Error ? error.message : String(error))
  }
  const wrong = wrongRows(rows, answer, true)
  return wrong === undefined ? ended('right') : ended('wrong', wrong)
}
