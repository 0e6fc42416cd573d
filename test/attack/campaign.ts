import { createHash } from 'node:crypto'
import { Agent } from 'node:http'
import { createRandom } from '../chaos/random.ts'
import { Fault, type AttackFamily, type CaseContext, type FoundFault } from './attack-case.ts'
import type { AttackBed } from './bed.ts'
import { checkHealth, hasChanged, type Health } from './checks.ts'
import { absoluteTargets, sockets } from './socket-attacks.ts'
import { endpoints, keyedNonsense, pageAddresses, reads } from './endpoint-attacks.ts'
import { createHostileTexts } from './hostile-texts.ts'
import { literals, parameters, writtenLiterals } from './literal-attacks.ts'
import { alteredPages, foreignRecords } from './log-attacks.ts'
import { sessions } from './session-attacks.ts'
import { strangers } from './stranger-attacks.ts'
import { bodies, statements, systemTables } from './statement-attacks.ts'
import { createWire, type Secrets } from './wire.ts'
import { fakeWorkers } from './worker-attacks.ts'

export const families: readonly AttackFamily[] = [
  sockets,
  absoluteTargets,
  endpoints,
  keyedNonsense,
  pageAddresses,
  reads,
  sessions,
  statements,
  bodies,
  systemTables,
  literals,
  writtenLiterals,
  parameters,
  foreignRecords,
  alteredPages,
  fakeWorkers,
  strangers,
]

export interface CampaignOptions {
  readonly bed: AttackBed
  readonly seed: number
  /** The numbers of the cases, in order. */
  readonly cases: readonly number[]
  /** The names of the families to run. @default all */
  readonly only?: readonly string[]
  /** The number of cases at the same time. @default 6 */
  readonly lanes?: number
  /** The number of cases between two health checks. @default 500 */
  readonly checkEvery?: number
  /** Whether to stop; called between cases. */
  readonly stopping?: () => boolean
  readonly onFault?: (fault: FoundFault) => void
  readonly onProgress?: (done: number, health: Health) => void
}

export interface CampaignResult {
  readonly cases: ReadonlyMap<string, number>
  readonly faults: readonly FoundFault[]
  /** The failed health checks, with the cases before them. */
  readonly sick: readonly string[]
  readonly mostMemory: ReadonlyMap<string, number>
}

/** The family of a case: a pure function of seed and number. */
export function familyOf(seed: number, index: number, from: readonly AttackFamily[]): AttackFamily {
  const all = from.reduce((sum, { weight }) => sum + weight, 0)
  let at = createRandom(seed, `family ${index}`).next() * all
  return from.find(({ weight }) => (at -= weight) < 0) ?? from[0]!
}

/** Runs cases, several at the same time, with health checks between them. Stops after a failed health check. */
export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const { bed, seed, cases, lanes = 6, checkEvery = 500 } = options
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const able = families.filter(
    (family) =>
      (family.needs === undefined || family.needs === (family.needs === 'guard' ? bed.known && 'guard' : bed.log)) &&
      (options.only?.includes(family.name) ?? true),
  )
  const secrets: Secrets = {
    words: { 'the secret': bed.secret, 'the key': bed.bearer, 'a file of the server': bed.canary.word },
  }
  const counts = new Map<string, number>()
  const faults: FoundFault[] = []
  const mostMemory = new Map<string, number>()
  const sick: string[] = []
  const under = new Set<number>()

  async function runCase(index: number): Promise<void> {
    const family = familyOf(seed, index, able)
    counts.set(family.name, (counts.get(family.name) ?? 0) + 1)
    const random = createRandom(seed, `case ${index}`)
    const wire = createWire(secrets, agent, bed.known?.attacker)
    const context: CaseContext = { random, bed, wire, texts: createHostileTexts(random, bed.canary.path) }
    try {
      await family.run(context)
    } catch (error) {
      const message =
        error instanceof Fault ? error.message : `the case itself failed: ${String((error as Error).stack)}`
      const fault = { index, family: family.name, message, sent: wire.sent }
      faults.push(fault)
      options.onFault?.(fault)
    }
  }

  /** Runs cases from the queue. Once a process is gone, it begins no other case and records the running ones. */
  async function lane(queue: number[]): Promise<void> {
    for (let index = queue.shift(); index !== undefined; index = queue.shift()) {
      under.add(index)
      await runCase(index)
      under.delete(index)
      const gone = bed.all.find(hasChanged)
      if (gone && queue.length > 0) sick.push(`${gone.name} ended in case ${[index, ...under].join(' or ')}`)
      if (gone || options.stopping?.()) queue.length = 0
    }
  }

  const before = await checkHealth(bed, undefined)
  let done = 0
  try {
    for (const batch of batchesOf(cases, checkEvery)) {
      const [alone, beside] = [true, undefined].map((wanted) =>
        batch.filter((index) => familyOf(seed, index, able).alone === wanted),
      ) as [number[], number[]]
      await Promise.all(Array.from({ length: lanes }, () => lane(beside)))
      await lane(alone)
      done += batch.length
      const health = await checkHealth(bed, before)
      for (const [name, bytes] of health.memory) mostMemory.set(name, Math.max(bytes, mostMemory.get(name) ?? 0))
      options.onProgress?.(done, health)
      sick.push(...health.wrong.map((wrong) => `after cases ${batch[0]} to ${batch.at(-1)}: ${wrong}`))
      if (health.wrong.length > 0 || options.stopping?.()) break
    }
  } finally {
    agent.destroy()
  }
  return { cases: counts, faults, sick, mostMemory }
}

function batchesOf(cases: readonly number[], size: number): (readonly number[])[] {
  return Array.from({ length: Math.ceil(cases.length / size) }, (_, n) => cases.slice(n * size, (n + 1) * size))
}

/** The first bytes of each sent message, with length and hash if it is longer. */
export function shownBytes(sent: readonly Buffer[]): string {
  return sent
    .map((bytes) => {
      const shown = JSON.stringify(bytes.toString('latin1', 0, 600))
      const more =
        bytes.length > 600
          ? ` … ${bytes.length} bytes, SHA-256 ${createHash('sha256').update(bytes).digest('hex')}`
          : ''
      return `    ${shown}${more}`
    })
    .join('\n')
}
