import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { processTree, type ProcessTree } from '../chaos/process-tree.ts'
import type { Random } from '../chaos/random.ts'
import { unreachable } from '../../src/shared/unreachable.ts'
import { isAlive, waitUntil } from '../support/quipu-process.ts'
import type { SoakNode, SoakSet } from './set.ts'

export const soakFaults = [
  'kill writer',
  'kill stand-by',
  'kill worker',
  'kill engine',
  'kill launcher',
  'kill supervisor',
  'Kafka down',
  'Postgres down',
  'disk full',
  'processors busy',
] as const
export type SoakFault = (typeof soakFaults)[number]

/** Faults in which a dependency is away: statements that need it meanwhile may fail. */
export const outages: ReadonlySet<SoakFault> = new Set(['Kafka down', 'Postgres down', 'disk full'])

/** The durations of faults and pauses, in milliseconds. */
export interface Durations {
  readonly outageMs: number
  readonly diskFullMs: number
  readonly busyMs: number
  /** The time without a fault, between two faults. */
  readonly calmMs: number
}

export interface DoneSoakFault {
  readonly kind: SoakFault
  /** The process or the dependency that the fault hit. */
  readonly target: string
  /** Milliseconds since the clients began. */
  readonly fromMs: number
  /** The moment of the kill, or of the return of the dependency. */
  readonly toMs: number
  /** The time from then until a new statement was answered right. */
  readonly recoveryMs: number
  /** Why this fault was not possible on this machine. */
  readonly missed?: string
}

/** Returns every kind once, in an order that the seed decides. */
export function shuffled(random: Random): readonly SoakFault[] {
  const left = [...soakFaults]
  return soakFaults.map(() => left.splice(random.whole(0, left.length - 1), 1)[0]!)
}

const BUSY_PROCESSES = 20
const FULL_BYTES = 64 * 1024

export interface FaultBed {
  readonly set: SoakSet
  readonly random: Random
  readonly durations: Durations
  /** Milliseconds since the clients began. */
  readonly now: () => number
  /** Runs new statements until an answer is right. */
  readonly rightAnswer: () => Promise<void>
}

/** Causes one fault, and waits until a new statement is answered right. */
export async function doFault(kind: SoakFault, bed: FaultBed): Promise<DoneSoakFault> {
  const { set, now } = bed
  const fromMs = now()
  for (const { program } of set.nodes) program.note(`— ${new Date().toISOString()} ${kind} —\n`)
  const done = await carryOut(kind, bed).catch((error: unknown): Done => ({
    target: 'nothing',
    missed: error instanceof Error ? error.message : String(error),
  }))
  const toMs = now()
  for (const { program } of set.nodes) program.note(`— ${new Date().toISOString()} ${kind} is over —\n`)
  await bed.rightAnswer()
  const recoveryMs = now() - toMs
  const [from, to, recovery] = [fromMs, toMs, recoveryMs].map(Math.round) as [number, number, number]
  return { kind, ...done, fromMs: from, toMs: to, recoveryMs: recovery }
}

interface Done {
  readonly target: string
  readonly missed?: string
}

async function carryOut(kind: SoakFault, { set, random, durations }: FaultBed): Promise<Done> {
  const { kafka, postgres, disk, nodes } = set
  const coordinators = nodes.filter((node) => node.kind === 'coordinator')
  const worker = random.pick(nodes.filter((node) => node.kind === 'worker'))
  switch (kind) {
    case 'kill writer':
      return killOf(await writerOf(set), ({ coordinator }) => coordinator)
    case 'kill stand-by': {
      const writer = await writerOf(set)
      return killOf(
        coordinators.find((node) => node !== writer)!,
        ({ coordinator }) => coordinator,
      )
    }
    case 'kill worker':
      return killOf(worker, ({ workers }) => workers[0])
    case 'kill engine':
      return killOf(worker, ({ engines }) => engines[0])
    case 'kill launcher':
      // Only a start as root has a launcher.
      if (process.getuid?.() !== 0) return { target: worker.name, missed: 'not root: there is no launcher' }
      return killOf(worker, ({ launcher }) => launcher)
    case 'kill supervisor':
      return killOf(random.pick(nodes), ({ supervisor }) => supervisor)
    case 'Kafka down':
      await kafka.kill()
      await sleep(durations.outageMs)
      await kafka.start()
      return { target: 'Kafka' }
    case 'Postgres down':
      await postgres.kill('SIGKILL')
      await sleep(durations.outageMs)
      await postgres.start()
      return { target: 'Postgres' }
    case 'disk full':
      if (!disk) return { target: 'disk', missed: 'nothing can be mounted here' }
      try {
        await disk.leave(FULL_BYTES)
        await sleep(durations.diskFullMs)
      } finally {
        await disk.makeRoom()
      }
      return { target: 'disk' }
    case 'processors busy':
      await busy(durations.busyMs)
      return { target: `${BUSY_PROCESSES} processes` }
    default:
      return unreachable(kind)
  }
}

async function writerOf(set: SoakSet): Promise<SoakNode> {
  let found: SoakNode | undefined
  await waitUntil('one coordinator writes', async () => (found = (await set.writer())?.node) !== undefined, 300_000)
  return found!
}

/** Sends SIGKILL to a process of a node; waits if the process is still starting. */
async function killOf(node: SoakNode, of: (tree: ProcessTree) => number | undefined): Promise<Done> {
  let pid: number | undefined
  await waitUntil(`${node.name} has the process`, async () => {
    pid = of(await processTree(node.dataDir))
    return pid !== undefined && isAlive(pid)
  })
  process.kill(pid!, 'SIGKILL')
  return { target: node.name }
}

async function busy(forMs: number): Promise<void> {
  const children = Array.from({ length: BUSY_PROCESSES }, () =>
    spawn(process.execPath, [
      '-e',
      `const parent = process.ppid; for (;;) if (process.ppid !== parent) process.exit()`,
    ]),
  )
  try {
    await sleep(forMs)
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
}
