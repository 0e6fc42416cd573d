import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { isAlive } from '../support/quipu-process.ts'
import { run, trinoHeaders } from '../support/statement-client.ts'
import type { AttackBed, AttackedProcess } from './bed.ts'

/** The health of the servers. */
export interface Health {
  readonly epoch: number
  readonly writer: string
  readonly deadLetters: number
  /** The resident memory of each process, bytes. */
  readonly memory: ReadonlyMap<string, number>
  /** The violations, a line each. */
  readonly wrong: readonly string[]
}

const statusSchema = z.object({
  ready: z.boolean(),
  writer: z.boolean(),
  epoch: z.number(),
  lag: z.object({ events: z.number(), oldestMillis: z.number() }).optional(),
  deadLetters: z.number(),
  openQueries: z.number(),
  workers: z.object({ active: z.number() }),
})
type Status = z.infer<typeof statusSchema>

/** The most memory of a process after any number of hostile requests. */
const MOST_MEMORY = 900 * 1024 * 1024
const SETTLES_MS = 90_000

/**
 * Waits until the servers are quiet, and checks their health.
 * @param before the health at the start of the attack
 */
export async function checkHealth(bed: AttackBed, before: Health | undefined): Promise<Health> {
  const wrong: string[] = []
  const dead = bed.all.filter(hasChanged)
  for (const { name, supervisor } of dead) wrong.push(`${name} was started again: ${supervisor.stderr().slice(-600)}`)
  let statuses: (Status | undefined)[] = []
  const settled = await within(SETTLES_MS, async () => {
    statuses = await Promise.all(bed.coordinators.map(statusOf))
    return statuses.every(
      (one) => one?.ready === true && one.lag?.events === 0 && one.openQueries === 0 && one.workers.active === 1,
    )
  })
  if (!settled) wrong.push(`they do not come to rest: ${JSON.stringify(statuses)}`)
  const writer = bed.coordinators.find((_one, index) => statuses[index]?.writer === true)
  const epoch = statuses.find((one) => one?.writer === true)?.epoch ?? -1
  const deadLetters = statuses.find((one) => one?.writer === true)?.deadLetters ?? -1
  if (!writer) wrong.push('nobody writes')
  if (before && epoch !== before.epoch) wrong.push(`the epoch was ${before.epoch} and is ${epoch}`)
  if (before && deadLetters !== before.deadLetters) wrong.push(`${deadLetters} events could not be projected`)
  for (const { name, url } of bed.coordinators) {
    for (const sql of ['SELECT 1', 'SELECT count(*) FROM tpch.tiny.region']) {
      const headers = { ...trinoHeaders, ...(bed.known && { authorization: bed.known.attacker }) }
      const ran = await run(url, sql, headers).catch((error: Error) => ({ rows: undefined, error: error.message }))
      if (ran.error || JSON.stringify(ran.rows) !== (sql === 'SELECT 1' ? '[[1]]' : '[[5]]')) {
        wrong.push(`${name}: ${sql} gives ${JSON.stringify(ran.rows)} ${JSON.stringify(ran.error)}`)
      }
    }
  }
  const memory = new Map(bed.all.map((one) => [one.name, residentBytes(one.pid)] as const))
  for (const [name, bytes] of memory) {
    if (bytes > MOST_MEMORY) wrong.push(`${name} holds ${Math.round(bytes / 2 ** 20)} MB`)
  }
  const failed = bed.all.flatMap(({ name, supervisor }) =>
    failuresIn(supervisor.stdout() + supervisor.stderr()).map((line) => `${name} logged ${line}`),
  )
  wrong.push(...failed.slice(0, 5))
  for (const heard of bed.attacker.heard.slice(0, 1)) wrong.push(`a server went where a client sent it: ${heard}`)
  return { epoch, writer: writer?.name ?? '', deadLetters, memory, wrong }
}

/** Audits the log after the attack: hashes, order, ends of queries and read models. */
export async function auditLog(bed: AttackBed): Promise<readonly string[]> {
  const { code, stdout, stderr } = await bed.command('audit', 'verify', '--read-models').exit
  return code === 0 ? [] : [`the audit ends with ${code}: ${stdout.slice(-1500)} ${stderr.slice(-500)}`]
}

/** The lines of a server's log that report an internal defect. */
function failuresIn(log: string): string[] {
  return log
    .split('\n')
    .filter((line) =>
      /"level":"(error|fatal)".*"(request\.failed|query\.internal_error)"|Internal error:|"dead_letter"/.test(line),
    )
    .map((line) => line.slice(0, 700))
}

/** Whether the main process or its supervisor has ended. */
export function hasChanged({ pid, supervisor }: AttackedProcess): boolean {
  return !isAlive(pid) || !isAlive(supervisor.pid)
}

async function statusOf({ url }: AttackedProcess): Promise<Status | undefined> {
  try {
    const answer = await fetch(`${url}/v1/status`, { signal: AbortSignal.timeout(10_000) })
    return statusSchema.parse(await answer.json())
  } catch {
    return undefined
  }
}

function residentBytes(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

async function within(timeoutMs: number, condition: () => Promise<boolean>): Promise<boolean> {
  for (const until = performance.now() + timeoutMs; performance.now() < until; await sleep(200)) {
    if (await condition()) return true
  }
  return false
}
