import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestKafka } from '../support/kafka.ts'
import { temporaryFolder } from '../support/quipu-process.ts'
import type { pythonClients } from '../support/real-clients.ts'
import { auditLog, becomesQuiet, checkStreams, stopsWhole, workersAreClean } from './checks.ts'
import { runClient } from './client.ts'
import { createChanged } from './drawn-changes.ts'
import { FaultRunner, type DoneFault } from './faults.ts'
import { run } from '../support/statement-client.ts'
import { checkWrites } from './check-writes.ts'
import { cleanErrors, type Outcome } from './outcome.ts'
import { mountDisk } from './own-disk.ts'
import type { Plan } from './plan.ts'
import { SeenProcesses } from './process-tree.ts'
import { runPythonClient } from './python-client.ts'
import { createRandom } from './random.ts'
import type { RightAnswer } from './right-answers.ts'
import { ChaosServer } from './server.ts'
import type { StatementName } from './statements.ts'
import type { DataTemplate } from './template.ts'
import { CREATE_LEDGER, runWritingClient, SCHEMA, type WriteOutcome } from './writing-client.ts'

export interface SeedOptions {
  readonly plan: Plan
  readonly loadMs: number
  readonly clients: number
  /** The number of clients that write, in addition to those that read. */
  readonly writers?: number
  readonly template: DataTemplate
  readonly right: ReadonlyMap<StatementName, RightAnswer>
  readonly python?: Awaited<ReturnType<typeof pythonClients>>
  readonly kafka?: TestKafka
  /** The data and logs of a wrong run are copied below this folder. */
  readonly keepIn: string
}

/** The result of a seed; a line of the results file. */
export interface SeedResult {
  readonly plan: Plan
  /** `survived`: all statements right; `failed cleanly`: some clean errors; `wrong`: the server broke a promise. */
  readonly verdict: 'survived' | 'failed cleanly' | 'wrong'
  /** The violations, a line each. */
  readonly wrong: readonly string[]
  readonly faults: readonly DoneFault[]
  readonly outcomes: readonly Outcome[]
  readonly writes: readonly WriteOutcome[]
  readonly wallMs: number
  readonly keptIn?: string
}

/** Runs one seed: starts a server, runs clients and faults, and then makes all checks. */
export async function runSeed(options: SeedOptions): Promise<SeedResult> {
  const { plan, template, right, kafka, loadMs } = options
  const python = plan.python ? options.python : undefined
  const began = performance.now()
  const folder = temporaryFolder()
  const dataDir = join(folder.path, 'data')
  const disk = plan.ownDisk ? await mountDisk(dataDir) : undefined
  let server: ChaosServer | undefined
  let seen: SeenProcesses | undefined
  try {
    await template.copyTo(disk ? `${folder.path}/` : dataDir, plan.log)
    const started = await ChaosServer.start({ folder: folder.path, plan, ...(kafka ? { brokers: kafka.brokers } : {}) })
    server = started
    seen = new SeenProcesses(dataDir)
    const { base } = started
    if (options.writers) for (const sql of [CREATE_LEDGER, createChanged(`${SCHEMA}.`)]) await createTable(base, sql)
    const start = performance.now()
    const beganAt = Date.now()
    const now = (): number => performance.now() - start
    const faults = new FaultRunner(
      plan,
      { server: started, ...(disk ? { disk } : {}), ...(kafka ? { kafka } : {}) },
      now,
    )
    const clients = Array.from({ length: options.clients - (python ? 1 : 0) }, (_, index) =>
      runClient({
        base,
        name: `client-${index + 1}`,
        random: createRandom(plan.seed, `client ${index + 1}`),
        right,
        now,
        passed: (point) => faults.passed(point),
        untilMs: loadMs,
      }),
    )
    const published = python ? [runPythonClient({ python, base, seed: plan.seed, forMs: loadMs, right, beganAt })] : []
    const writing = Array.from({ length: options.writers ?? 0 }, (_, index) =>
      runWritingClient({
        base,
        name: `writer-${index + 1}`,
        random: createRandom(plan.seed, `writer ${index + 1}`),
        now,
        passed: (point) => faults.passed(point),
        untilMs: loadMs,
        changes: true,
      }),
    )
    const outcomes = (await Promise.all([...clients, ...published])).flat()
    const writes = (await Promise.all(writing)).flat()
    await faults.end()
    const wrong = outcomes
      .filter(({ result }) => result === 'wrong')
      .map(({ id, name, client, behaviour, why }) => `${client} (${behaviour}) ${name} ${id ?? ''}: ${why}`)
    wrong.push(...(await becomesQuiet(started)))
    if (options.writers) wrong.push(...(await failing('the writes', () => checkWrites(base, writes))))
    wrong.push(...(await workersAreClean(started, plan.waitsForPages)))
    wrong.push(...(await auditLog(started)))
    wrong.push(...(await failing('the streams', () => checkStreams(started, outcomes, right))))
    wrong.push(...(await stopsWhole(started, seen)))
    const lost =
      outcomes.some(({ result }) => result === 'clean') ||
      writes.some(({ end, why }) => end === 'not done' && why !== undefined && cleanErrors.has(why))
    const verdict = wrong.length > 0 ? 'wrong' : lost ? 'failed cleanly' : 'survived'
    const wallMs = performance.now() - began
    const result = { plan, verdict, wrong, faults: faults.done, outcomes, writes, wallMs } as const
    if (verdict !== 'wrong') return result
    const keptIn = join(options.keepIn, `seed-${plan.seed}`)
    cpSync(folder.path, keptIn, { recursive: true, filter: (path) => !/\/fifo-\d+$|\.s\.PGSQL/.test(path) })
    writeFileSync(join(keptIn, 'result.json'), JSON.stringify(result, undefined, 2))
    return { ...result, keptIn }
  } finally {
    seen?.stop()
    await server?.stop()
    // After an error, processes may still run on the folder: they end with it.
    if (disk) await disk.makeRoom().catch(() => {})
    await folder.remove().catch(() => {})
    if (disk) {
      await disk.remove().catch(() => {})
      await folder.remove().catch(() => {})
    }
  }
}

/** Creates a table of the writers. No fault has begun, but a busy machine may delay this client for seconds. */
async function createTable(base: string, sql: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    const { error } = await run(base, sql)
    if (!error) return
    if (tries === 3) throw new Error(`No table to write to: ${error.message}`)
  }
}

async function failing(what: string, check: () => Promise<string[]>): Promise<string[]> {
  try {
    return await check()
  } catch (error) {
    return [`${what} could not be checked: ${String(error)}`]
  }
}
