import { cpSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { checkWrites } from '../chaos/check-writes.ts'
import { createRandom } from '../chaos/random.ts'
import { rightAnswers } from '../chaos/right-answers.ts'
import { CREATE_LEDGER } from '../chaos/writing-client.ts'
import { pythonClients } from '../support/real-clients.ts'
import { run, type Ran } from '../support/statement-client.ts'
import { startClients, users, type SoakLoad } from './clients.ts'
import { doFault, shuffled, type DoneSoakFault, type Durations, type FaultBed, type SoakFault } from './faults.ts'
import { startSet, type SoakSet } from './set.ts'
import type { EpochChange, FiredAlert, SoakRecord } from './verdict.ts'

export interface SoakOptions {
  readonly seed: number
  readonly durations: Durations
  /** No fault begins after this time (milliseconds); the first round always runs to its end. */
  readonly forMs: number
  /** If it is given, only these faults happen. */
  readonly only?: readonly SoakFault[]
  /** Milliseconds that each client waits after each statement. @default 0: the clients keep the processors busy */
  readonly pauseMs?: number
  readonly logLevel: string
  /** Is called after each fault, with a line of text. */
  readonly report: (line: string) => void
  /** The logs are copied to this folder. */
  readonly keepIn?: string
}

/** How often a check without an answer is made, and the time between. */
const [CHECKS, CHECK_AGAIN_MS] = [20, 2_000]
const AGAIN_MS = 100
const COUNT = 'SELECT count(*) FROM tpch.tiny.nation'
const LOOK_MS = 2_000

/** Runs the cluster with its clients and the faults of a seed, then all checks of the result. */
export async function runSoak(options: SoakOptions): Promise<SoakRecord> {
  const { seed, report } = options
  const [right, python] = [await rightAnswers(), await pythonClients()]
  const set = await startSet({ users, logLevel: options.logLevel })
  // A run that is interrupted leaves no process and no mount behind.
  const interrupted = (): void => void set.stop().finally(() => process.exit(130))
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, interrupted)
  try {
    await rightAnswer(set.base)
    await createLedger(set.base)
    const start = performance.now()
    const now = (): number => performance.now() - start
    report(`the set is up: ${set.base}, logs in ${set.folder}`)
    const load = startClients({ set, seed, right, python, now, pauseMs: options.pauseMs ?? 0 })
    const watched = watchSet(set, now)
    const bed: FaultBed = {
      set,
      now,
      random: createRandom(seed, 'targets'),
      durations: options.durations,
      rightAnswer: () => rightAnswer(set.base),
    }
    const faults = await rounds(bed, load, options)
    const { outcomes, writes } = await load.end()
    const { alerts, epochs } = await watched.end()
    const found = [
      ...(await failing('the writes', () => checkWrites(set.base, writes))),
      ...(await failing('the audit', () => audit(set))),
    ]
    for (const [name, code] of await set.endPrograms())
      if (code !== 0) found.push(`${name} ended with ${code ?? 'nothing'} on SIGTERM`)
    return { outcomes, writes, faults, alerts, epochs, found }
  } finally {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, interrupted)
    if (options.keepIn !== undefined) keepLogs(set, options.keepIn)
    await set.stop()
  }
}

async function rounds(bed: FaultBed, load: SoakLoad, options: SoakOptions): Promise<readonly DoneSoakFault[]> {
  const { durations, seed, forMs, only, report } = options
  const done: DoneSoakFault[] = []
  const random = createRandom(seed, 'order')
  for (let round = 1; round === 1 || bed.now() < forMs; round++) {
    for (const kind of only ?? shuffled(random)) {
      await calm(load, durations.calmMs)
      if (round > 1 && bed.now() >= forMs) break
      const fault = await doFault(kind, bed)
      done.push(fault)
      report(`${kind} (${fault.missed ?? fault.target}): right again after ${(fault.recoveryMs / 1000).toFixed(1)} s`)
    }
  }
  await calm(load, durations.calmMs)
  return done
}

/** Waits for `ms`, and until as many statements that began after the last fault are right as there are users. */
async function calm({ outcomes }: SoakLoad, ms: number): Promise<void> {
  const before = outcomes.length
  await sleep(ms)
  while (outcomes.slice(before).filter(({ result }) => result === 'right').length < users.length) await sleep(AGAIN_MS)
}

/** On a busy machine a coordinator may hand over right after the start, and refuse a statement. */
async function createLedger(base: string): Promise<void> {
  return repeatUntil(base, CREATE_LEDGER, () => true)
}

async function rightAnswer(base: string): Promise<void> {
  return repeatUntil(base, COUNT, ({ rows }) => rows[0]?.[0] === 25)
}

/** Repeats a statement until it succeeds with the right answer. */
async function repeatUntil(base: string, sql: string, isRight: (ran: Ran) => boolean): Promise<void> {
  for (;;) {
    const ran = await run(base, sql).catch(() => undefined)
    if (ran && ran.error === undefined && isRight(ran)) return
    await sleep(AGAIN_MS)
  }
}

/** Runs the documented audit command beside the running cluster. */
async function audit(set: SoakSet): Promise<string[]> {
  let ended = await set.command('audit', 'verify', '--read-models').exit
  // On a busy machine Kafka may not answer in time; the command then says that it could not check.
  for (let tries = 1; ended.code === 2 && tries < 4; tries++)
    ended = await set.command('audit', 'verify', '--read-models').exit
  const { code, stdout, stderr } = ended
  return code === 0
    ? []
    : [`quipu audit verify --read-models: exit code ${code}: ${`${stdout}${stderr}`.slice(0, 2000)}`]
}

interface Watched {
  readonly alerts: readonly FiredAlert[]
  readonly epochs: readonly EpochChange[]
}

/** Records critical alerts of the shipped rules, and changes of the writer, while the cluster runs. */
function watchSet({ prometheus, writer }: SoakSet, now: () => number): { end(): Promise<Watched> } {
  const fired = new Map<string, FiredAlert>()
  const epochs: EpochChange[] = []
  let newest: number | undefined
  let over = false
  const watching = (async () => {
    while (!over) {
      const epoch = (await writer())?.epoch
      if (epoch !== undefined && epoch > (newest ?? epoch)) epochs.push({ epoch, atMs: now() })
      newest = Math.max(epoch ?? 0, newest ?? 0) || undefined
      const found = !prometheus
        ? []
        : await prometheus.query('ALERTS{alertstate="firing",severity="critical"}').catch(() => [])
      for (const { labels } of found) {
        const { alertname = '', __name__: _, alertstate: _state, severity: _severity, ...rest } = labels
        const text = JSON.stringify(rest)
        const known = fired.get(alertname + text)
        if (known) known.toMs = now()
        else fired.set(alertname + text, { name: alertname, labels: text, fromMs: now(), toMs: now() })
      }
      await sleep(LOOK_MS)
    }
  })()
  return {
    async end() {
      over = true
      await watching
      return { alerts: [...fired.values()], epochs }
    },
  }
}

/** Repeats a check that gets no answer: on a busy machine a coordinator may hand over after the last fault, too. */
async function failing(what: string, check: () => Promise<string[]>): Promise<string[]> {
  for (let tries = 1; ; tries++) {
    try {
      return await check()
    } catch (error) {
      if (tries === CHECKS) return [`${what} could not be checked: ${String(error)}`]
      await sleep(CHECK_AGAIN_MS)
    }
  }
}

function keepLogs(set: SoakSet, folder: string): void {
  cpSync(set.folder, folder, { recursive: true, filter: (path) => !path.startsWith(`${set.folder}/disk`) })
}
