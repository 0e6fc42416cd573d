import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { raw } from '../support/statement-client.ts'
import { auditLog, becomesQuiet, checkStreams, stopsWhole } from './checks.ts'
import { checkWrites } from './check-writes.ts'
import { runClient } from './client.ts'
import { CLUSTER_NAMES, PAUSE_MS, startClusterBed, type ClusterBed } from './cluster-bed.ts'
import { FaultRunner } from './faults.ts'
import { cleanErrors, type Outcome } from './outcome.ts'
import { clusterPlanOf, type EventPoint, type Plan } from './plan.ts'
import { createRandom } from './random.ts'
import type { RightAnswer } from './right-answers.ts'
import type { SeedResult } from './run-seed.ts'
import type { StatementName } from './statements.ts'
import type { DataTemplate } from './template.ts'
import { runWritingClient, type WriteOutcome } from './writing-client.ts'

export interface ClusterSeedsOptions {
  readonly loadMs: number
  readonly clients: number
  readonly writers: number
  readonly template: DataTemplate
  readonly right: ReadonlyMap<StatementName, RightAnswer>
  /** The data and logs of a wrong run are copied below this folder. */
  readonly keepIn: string
}

const QUIET_MS = 40_000
const clusterSchema = z.array(z.object({ name: z.string(), running: z.number(), waiting: z.number() }))

/** Runs seeds one after the other on the same gateway and clusters. */
export class ClusterSeeds {
  readonly #options: ClusterSeedsOptions
  readonly #bed: ClusterBed
  /** The outcomes of all seeds so far. */
  readonly #outcomes: Outcome[] = []
  readonly #writes: WriteOutcome[] = []
  readonly #points: Points

  private constructor(options: ClusterSeedsOptions, bed: ClusterBed, points: Points) {
    this.#options = options
    this.#bed = bed
    this.#points = points
  }

  /** @param seed for the choices of the proxies before the clusters */
  static async start(options: ClusterSeedsOptions, seed: number): Promise<ClusterSeeds> {
    const points: Points = { passed: () => {} }
    const bed = await startClusterBed(clusterPlanOf(seed, 0), options.template, {
      random: createRandom(seed, 'proxies'),
      passed: (point) => points.passed(point),
    })
    return new ClusterSeeds(options, bed, points)
  }

  async run(seed: number): Promise<SeedResult> {
    const { loadMs, clients, writers, right } = this.#options
    const { gateway, clusters } = this.#bed
    const plan = clusterPlanOf(seed, loadMs)
    const start = performance.now()
    const now = (): number => performance.now() - start
    const faults = new FaultRunner(plan, { server: gateway, clusters }, now)
    this.#points.passed = (point) => faults.passed(point)
    gateway.note(`— ${new Date().toISOString()} seed ${seed} —\n`)
    const of = (kind: string, index: number) => ({
      base: gateway.base,
      name: `${kind}-${seed}-${index + 1}`,
      random: createRandom(seed, `${kind} ${index + 1}`),
      now,
      passed: this.#points.passed,
      untilMs: loadMs,
    })
    const reading = Array.from({ length: clients }, (_, index) =>
      runClient({ ...of('client', index), right, pauseMs: PAUSE_MS }),
    )
    const writing = Array.from({ length: writers }, (_, index) =>
      runWritingClient({ ...of('writer', index), delegated: true }),
    )
    const outcomes = (await Promise.all(reading)).flat()
    const writes = (await Promise.all(writing)).flat()
    await faults.end()
    this.#points.passed = () => {}
    this.#outcomes.push(...outcomes)
    this.#writes.push(...writes)
    const wrong = [
      ...outcomes.filter(({ result }) => result === 'wrong').map(lineOf),
      ...outcomes.filter(namesNoCluster).map((one) => `${lineOf(one)} names no cluster`),
      ...(await becomesQuiet(gateway)),
      ...(await Promise.all(clusters.map(({ server }) => becomesQuiet(server)))).flat(),
      ...(await slotsAreFree(gateway.base)),
      ...(await checkWrites(gateway.base, this.#writes)),
    ]
    return this.#result(plan, { wrong, outcomes, writes, faults: faults.done, wallMs: now() })
  }

  /** Checks the log of the gateway, and stops all servers. @returns the violations, a line each */
  async close(): Promise<string[]> {
    const { gateway, seen } = this.#bed
    try {
      return [
        ...(await auditLog(gateway)),
        ...(await checkStreams(gateway, this.#outcomes, this.#options.right)),
        ...(await stopsWhole(gateway, seen)),
      ]
    } finally {
      await this.#bed.close()
    }
  }

  #result(plan: Plan, found: Omit<SeedResult, 'plan' | 'verdict'>): SeedResult {
    const { wrong, outcomes, writes } = found
    const isLost =
      outcomes.some(({ result }) => result === 'clean') ||
      writes.some(({ end, why }) => end !== 'done' && why !== undefined && cleanErrors.has(why))
    const verdict = wrong.length > 0 ? 'wrong' : isLost ? 'failed cleanly' : 'survived'
    if (verdict !== 'wrong') return { ...found, plan, verdict }
    const keptIn = join(this.#options.keepIn, `cluster-seed-${plan.seed}`)
    mkdirSync(keptIn, { recursive: true })
    for (const { server, name } of [{ server: this.#bed.gateway, name: 'gateway' }, ...this.#bed.clusters])
      if (existsSync(`${server.dataDir}.log`)) cpSync(`${server.dataDir}.log`, join(keptIn, `${name}.log`))
    const result = { ...found, plan, verdict, keptIn } as const
    writeFileSync(join(keptIn, 'result.json'), JSON.stringify(result, undefined, 2))
    return result
  }
}

/** Receives the moments that proxies and clients report, for the seed that runs now. */
interface Points {
  passed: (point: EventPoint) => void
}

function lineOf({ id, name, client, behaviour, why }: Outcome): string {
  return `${client} (${behaviour}) ${name} ${id ?? ''}: ${why}`
}

/** An error about a lost cluster must name it. An error that the cluster itself gives stays as it is. */
function namesNoCluster({ result, why = '' }: Outcome): boolean {
  const isAboutCluster = /^(REMOTE_HOST_GONE|NO_NODES_AVAILABLE(?!: No nodes available to run query))/.test(why)
  return result === 'clean' && isAboutCluster && !CLUSTER_NAMES.some((name) => why.includes(name))
}

/** Waits until no statement has a slot at a cluster, and none waits for one. */
async function slotsAreFree(base: string): Promise<string[]> {
  let taken: unknown
  for (const until = performance.now() + QUIET_MS; performance.now() < until; await sleep(100)) {
    const answer = await raw(`${base}/v1/cluster`, { headers: { 'x-trino-user': 'chaos' } }).catch(() => undefined)
    if (answer?.status !== 200) continue
    const clusters = clusterSchema.parse(JSON.parse(answer.text))
    taken = clusters.filter(({ running, waiting }) => running > 0 || waiting > 0)
    if (Array.isArray(taken) && taken.length === 0) return []
  }
  return [`slots are taken ${QUIET_MS} ms after the last client: ${JSON.stringify(taken)}`]
}
