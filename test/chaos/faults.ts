import { writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { unreachable } from '../../src/shared/unreachable.ts'
import type { TestKafka } from '../support/kafka.ts'
import { isAlive } from '../support/quipu-process.ts'
import type { ClusterProxy, ProxyMode } from './cluster-proxy.ts'
import type { OwnDisk } from './own-disk.ts'
import type { EventPoint, FaultKind, Plan, PlannedFault } from './plan.ts'
import { processTree } from './process-tree.ts'
import type { ChaosServer } from './server.ts'

/** A fault that was carried out. Times are milliseconds since the clients began. */
export interface DoneFault {
  readonly kind: FaultKind
  readonly fromMs: number
  readonly toMs: number
  /** The target of the fault did not exist. */
  readonly missed?: true
}

export interface FaultTargets {
  readonly server: ChaosServer
  readonly disk?: OwnDisk
  readonly kafka?: TestKafka
  /** The clusters behind the server. */
  readonly clusters?: readonly ClusterTarget[]
}

/** A cluster behind the server. */
export interface ClusterTarget {
  readonly proxy: ClusterProxy
  readonly server: Pick<ChaosServer, 'dataDir'>
  /** The disk of its data folder; undefined where this machine does not allow to mount one. */
  readonly disk?: OwnDisk | undefined
}

/** A hang is longer than the supervisor waits; see the short waits of `ChaosServer`. */
const HANG_MS = 6_000
const BURST_MS = 60
const PAUSE_MS = 30
/** The server stops keeping pages below 2 GB of free disk, and accepting statements below 1 GB. */
const LOW_BYTES = 1.5 * 1024 ** 3
const FULL_BYTES = 1024 * 1024

/** Carries out the faults of a plan on a server, at their times or event points. */
export class FaultRunner {
  readonly done: DoneFault[] = []
  readonly #targets: FaultTargets
  readonly #now: () => number
  readonly #counts = new Map<EventPoint, number>()
  readonly #waiting: { readonly fault: PlannedFault; readonly point: EventPoint; readonly nth: number }[] = []
  readonly #running = new Set<Promise<void>>()
  readonly #timers: NodeJS.Timeout[] = []
  #over = false

  constructor(plan: Pick<Plan, 'faults'>, targets: FaultTargets, now: () => number) {
    this.#targets = targets
    this.#now = now
    for (const fault of plan.faults) {
      const { when } = fault
      if ('point' in when) this.#waiting.push({ fault, ...when })
      else this.#timers.push(setTimeout(() => this.#begin(fault), when.atMs - now()))
    }
  }

  /** Notes that a client has reached an event point. */
  passed(point: EventPoint): void {
    const count = (this.#counts.get(point) ?? 0) + 1
    this.#counts.set(point, count)
    for (const one of this.#waiting) if (one.point === point && one.nth === count) this.#begin(one.fault)
  }

  /** Begins no more faults. Resolves when the running faults have ended. */
  async end(): Promise<void> {
    this.#over = true
    for (const timer of this.#timers) clearTimeout(timer)
    await Promise.all(this.#running)
  }

  #begin(fault: PlannedFault): void {
    if (this.#over) return
    const fromMs = Math.round(this.#now())
    const running = this.#do(fault)
      .catch((error: unknown) => {
        this.#targets.server.note(`fault ${fault.kind}: ${String(error)}\n`)
        return false
      })
      .then((hit) => {
        const toMs = Math.round(this.#now())
        this.done.push({ kind: fault.kind, fromMs, toMs, ...(hit ? {} : { missed: true as const }) })
        this.#running.delete(running)
      })
    this.#running.add(running)
    this.#targets.server.note(`— ${new Date().toISOString()} ${fault.kind} —\n`)
  }

  /** @returns whether the target of the fault existed */
  async #do({ kind, forMs, choice, shiftMs }: PlannedFault): Promise<boolean> {
    const { server, disk, kafka } = this.#targets
    const tree = await processTree(server.dataDir)
    const coordinator = some(tree.coordinator)
    const worker = some(tree.workers[Math.floor(choice * tree.workers.length)])
    const engine = some(tree.engines[Math.floor(choice * tree.engines.length)])
    const cluster = this.#targets.clusters?.[Math.floor(choice * this.#targets.clusters.length)]
    switch (kind) {
      case 'kill supervisor':
        return kill(some(tree.supervisor))
      case 'stop supervisor':
        return stop(some(tree.supervisor), forMs)
      case 'restart':
        await server.restart()
        return true
      case 'kill coordinator':
        return kill(coordinator)
      case 'stop coordinator':
        return stop(coordinator, forMs)
      case 'hang coordinator':
        return stop(coordinator, HANG_MS)
      case 'slow coordinator':
        return slow(coordinator, forMs)
      case 'kill worker':
        return kill(worker)
      case 'stop worker':
        return stop(worker, forMs)
      case 'slow worker':
        return slow(worker, forMs)
      case 'kill engine':
        return kill(engine)
      case 'stop engine':
        return stop(engine, forMs * 2)
      case 'kill postgres':
        return kill(tree.postgres.slice(0, 1))
      case 'stop postgres':
        return stop(tree.postgres, forMs)
      case 'slow postgres':
        return slow(tree.postgres, forMs)
      case 'restart postgres':
        return send(tree.postgres.slice(0, 1), 'SIGINT')
      case 'cut postgres sessions':
        return send(tree.postgres.slice(1), 'SIGTERM')
      case 'jump clock':
        writeFileSync(server.clockFile, String(shiftMs))
        return true
      case 'kill broker':
        if (!kafka) return false
        await kafka.kill()
        await sleep(forMs)
        await kafka.start()
        return true
      case 'stop broker':
        return frozen(kafka, forMs)
      case 'slow broker':
        for (const until = this.#now() + forMs; this.#now() < until; await sleep(PAUSE_MS))
          await frozen(kafka, BURST_MS)
        return kafka !== undefined
      case 'fill disk':
        return fill(disk, FULL_BYTES, forMs)
      case 'low disk':
        return fill(disk, LOW_BYTES, forMs)
      case 'fill cluster disk':
        return fill(cluster?.disk, FULL_BYTES, forMs)
      case 'cut answers':
        return behave(cluster, 'cut', forMs)
      case 'bad gateway':
        return behave(cluster, 'bad gateway', forMs)
      case 'slow answers':
        return behave(cluster, 'slow', forMs)
      case 'refuse cluster':
        return behave(cluster, 'refuse', forMs * 2)
      case 'mute cluster':
        return behave(cluster, 'mute', forMs)
      case 'forget queries':
        await behave(cluster, 'refuse', forMs)
        cluster?.proxy.forgetQueries()
        return cluster !== undefined
      case 'kill cluster':
        return kill(some((await treeOf(cluster))?.coordinator))
      case 'kill cluster worker':
        return kill(some((await treeOf(cluster))?.workers[0]))
      default:
        return unreachable(kind)
    }
  }
}

/** Leaves so many bytes free on a disk for a while. */
async function fill(disk: OwnDisk | undefined, bytes: number, forMs: number): Promise<boolean> {
  await disk?.leave(bytes)
  await sleep(forMs)
  await disk?.makeRoom()
  return disk !== undefined
}

async function behave(cluster: ClusterTarget | undefined, mode: ProxyMode, forMs: number): Promise<boolean> {
  if (!cluster) return false
  cluster.proxy.mode = mode
  await sleep(forMs)
  cluster.proxy.mode = 'pass'
  return true
}

const treeOf = async (cluster: ClusterTarget | undefined) => cluster && processTree(cluster.server.dataDir)

const some = (pid: number | undefined): number[] => (pid === undefined ? [] : [pid])

function send(pids: readonly number[], signal: NodeJS.Signals): boolean {
  let hit = false
  for (const pid of pids) {
    if (!isAlive(pid)) continue
    try {
      process.kill(pid, signal)
      hit = true
    } catch {
      // The process has just ended.
    }
  }
  return hit
}

const kill = (pids: readonly number[]): boolean => send(pids, 'SIGKILL')

async function stop(pids: readonly number[], forMs: number): Promise<boolean> {
  const hit = send(pids, 'SIGSTOP')
  if (hit) await sleep(forMs)
  send(pids, 'SIGCONT')
  return hit
}

/** Lets processes run for a third of the time, in bursts. Others see this as a slow disk or a busy machine. */
async function slow(pids: readonly number[], forMs: number): Promise<boolean> {
  let hit = false
  for (const until = performance.now() + forMs * 2; performance.now() < until; await sleep(PAUSE_MS)) {
    hit = (await stop(pids, BURST_MS)) || hit
  }
  return hit
}

async function frozen(kafka: TestKafka | undefined, forMs: number): Promise<boolean> {
  if (!kafka) return false
  const thaw = await kafka.freeze()
  await sleep(forMs)
  await thaw()
  return true
}
