import { childrenOf } from '../support/process-children.ts'
import { commandOf } from '../support/process-users.ts'
import { isAlive, postgresOf, processesOf } from '../support/quipu-process.ts'
import { identify, isRunning, type ProcessIdentity } from '../../src/supervisor/process-identity.ts'

/** The current processes of a data folder. */
export interface ProcessTree {
  readonly supervisor: number | undefined
  readonly coordinator: number | undefined
  readonly workers: readonly number[]
  /** A process of root; it exists when each engine has its own system user. */
  readonly launcher: number | undefined
  /** The engines of the workers and of the coordinator. */
  readonly engines: readonly number[]
  /** The server first, then its sessions. */
  readonly postgres: readonly number[]
}

export async function processTree(dataDir: string): Promise<ProcessTree> {
  const supervisor = supervisorOf(dataDir)
  const children = supervisor === undefined ? [] : await childrenOf(supervisor)
  const running = (program: string): number[] => children.filter((pid) => commandOf(pid).includes(program))
  const coordinator = running('coordinator-process')[0]
  const workers = running('worker-process')
  const engines: number[] = []
  const launcher = running('engine-launcher')[0]
  for (const parent of [...workers, coordinator, launcher].filter((pid) => pid !== undefined)) {
    for (const pid of await childrenOf(parent)) if (commandOf(pid).includes('engine-process')) engines.push(pid)
  }
  const server = postgresOf(dataDir)
  const postgres =
    server !== undefined && commandOf(server).includes('postgres') ? [server, ...(await childrenOf(server))] : []
  return { supervisor, coordinator, workers, launcher, engines, postgres }
}

function supervisorOf(dataDir: string): number | undefined {
  try {
    const { supervisor } = processesOf(dataDir)
    return isAlive(supervisor) && commandOf(supervisor).includes('quipu.js') ? supervisor : undefined
  } catch {
    // There is no supervisor between two starts.
    return undefined
  }
}

/** All processes of a data folder that were ever seen. The check at the end of a run needs them. */
export class SeenProcesses {
  readonly #dataDir: string
  readonly #seen = new Map<number, ProcessIdentity>()
  readonly #timer: NodeJS.Timeout

  constructor(dataDir: string) {
    this.#dataDir = dataDir
    this.#timer = setInterval(() => void this.look(), 250)
  }

  async look(): Promise<void> {
    const { supervisor, coordinator, workers, launcher, engines, postgres } = await processTree(this.#dataDir)
    for (const pid of [supervisor, coordinator, ...workers, launcher, ...engines, ...postgres]) {
      const identity = pid === undefined ? undefined : identify(pid)
      if (identity) this.#seen.set(identity.pid, identity)
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** The ids of the processes that still run. */
  running(): number[] {
    return [...this.#seen.values()].filter(isRunning).map(({ pid }) => pid)
  }
}
