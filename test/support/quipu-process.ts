import { spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LockState } from '../../src/supervisor/data-folder-lock.ts'
import { isRunning, programOf } from '../../src/supervisor/process-identity.ts'
import { commandOf, familyOf } from './process-users.ts'
import { repository } from './repository.ts'

const PROGRAM = join(repository, 'dist', 'cli', 'quipu.js')

/** A running `quipu`, started from dist/ as a user starts it. */
export interface QuipuProcess {
  readonly pid: number
  /** The address that it prints when it is ready. Rejects when the process ends before. */
  readonly url: Promise<string>
  readonly exit: Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>
  /** The output so far. */
  stdout(): string
  stderr(): string
  signal(name: NodeJS.Signals): void
}

export interface QuipuOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly user?: { readonly uid: number; readonly gid: number }
  readonly cwd?: string
  /** The program of another build. */
  readonly program?: string
  /** Keeps the waits of the product, for tests of messages about long waits. */
  readonly productWaits?: true
}

/** Long limits, so that a pause of the machine does not end anything. No spare engines: each costs 0.3 s of CPU. */
const LONG_WAITS = {
  QUIPU_POST_LOG_WAIT_MS: '60s',
  QUIPU_DELETE_VALIDITY_WAIT_MS: '60s',
  QUIPU_OWN_WRITES_WAIT_MS: '30s',
  QUIPU_WORKER_WAIT_MS: '60s',
  QUIPU_COORDINATOR_DEAD_MS: '60s',
  QUIPU_SPARE_ENGINE_MS: '1h',
}

/** Runs `quipu` with these arguments in a separate process group, without the settings of this environment. */
export function spawnQuipu(args: readonly string[], options: QuipuOptions = {}): QuipuProcess {
  const child = spawn(process.execPath, [options.program ?? PROGRAM, ...args], {
    cwd: options.cwd ?? repository,
    env: {
      PATH: process.env['PATH'],
      HOME: tmpdir(),
      ...(options.productWaits ? {} : LONG_WAITS),
      ...options.env,
    },
    ...options.user,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const exit = ended(child).then((code) => ({ code, stdout, stderr }))
  const url = new Promise<string>((resolve, reject) => {
    child.stdout.on('data', () => {
      const found = /^Quipu is up in .*: (http\S+)$/m.exec(stdout)
      if (found) resolve(found[1]!)
    })
    void exit.then(({ code }) => reject(new Error(`quipu ended with ${code}: ${stderr}`)))
  })
  url.catch(() => {})
  return {
    pid: child.pid!,
    url,
    exit,
    stdout: () => stdout,
    stderr: () => stderr,
    signal: (name) => void process.kill(child.pid!, name),
  }
}

function ended(child: ChildProcess): Promise<number | null> {
  // `exit`, not `close`, because children of a killed supervisor keep standard error open.
  return new Promise((resolve) => child.once('exit', (code) => setTimeout(() => resolve(code), 50)))
}

/** A folder that every user may enter, as the parent of a data folder. `remove` ends processes that still run on it. */
export function temporaryFolder(): { readonly path: string; remove(): Promise<void> } {
  const path = mkdtempSync(join(tmpdir(), 'quipu-'))
  chmodSync(path, 0o711)
  return {
    path,
    remove: async () => {
      for (const name of readdirSync(path)) await endAll(join(path, name))
      rmSync(path, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

/** The processes of a data folder, as its supervisor records them, the coordinator first. */
export function processesOf(dataDir: string): { readonly supervisor: number; readonly children: readonly number[] } {
  const state = JSON.parse(readFileSync(join(dataDir, 'supervisor.json'), 'utf8')) as {
    supervisor: { pid: number }
    children: { pid: number }[]
  }
  return { supervisor: state.supervisor.pid, children: state.children.map((child) => child.pid) }
}

/** Finds the processes that run `program` for the server of a data folder: their arguments name the folder. */
export function runningOn(data: string, program: string): number[] {
  return familyOf(1).filter((pid) => {
    const [, file, ...rest] = commandOf(pid).split('\0')
    return file?.endsWith(`/${program}.js`) === true && rest.some((word) => word.includes(data)) && isAlive(pid)
  })
}

/** The embedded Postgres of a data folder; undefined when none is recorded. */
export function postgresOf(dataDir: string): number | undefined {
  const path = join(dataDir, 'postgres', 'postmaster.pid')
  return existsSync(path) ? Number(readFileSync(path, 'utf8').split('\n')[0]) : undefined
}

/** Sends SIGKILL to all processes at once, and ignores processes that ended because another ended. */
export function killAll(pids: readonly number[]): void {
  for (const pid of pids)
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
}

/** Whether a process runs; zombies do not. */
export function isAlive(pid: number): boolean {
  return !['Z', 'X'].includes(stateOf(pid))
}

/** The state letter of a process, as in proc(5); X if there is no such process. */
export function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2)[0]!
  } catch {
    return 'X'
  }
}

/** Waits until the condition holds, and checks it every 20 ms. */
export async function waitUntil(what: string, condition: () => boolean | Promise<boolean>, timeoutMs = 90_000) {
  const until = performance.now() + timeoutMs
  while (!(await condition())) {
    if (performance.now() > until) throw new Error(`Waited ${timeoutMs} ms in vain until ${what}`)
    await sleep(20)
  }
}

/** Sends SIGKILL to the processes that the files of a data folder name, if they are still the same and not this one. */
async function endAll(dataDir: string): Promise<void> {
  const file = join(dataDir, 'supervisor.json')
  const state = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as LockState) : undefined
  const processes = state ? [state.supervisor, ...state.children].filter((one) => one.pid !== process.pid) : []
  const running = processes.filter(isRunning).map((one) => one.pid)
  const postgres = postgresOf(dataDir)
  if (postgres !== undefined && programOf(postgres) === 'postgres') running.push(postgres)
  killAll(running)
  await waitUntil('the processes of a test end', () => !running.some(isAlive))
}
