import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** A process with its start time: if the system gives its number to another process later, the two are not confused. */
export interface ProcessIdentity {
  readonly pid: number
  /** When it started, in the system's own units, with the id of the boot. Only compared for equality. */
  readonly startTime: string
}

/** The identity of a running process, or undefined when there is none with this number (zombies count as gone). */
export function identify(pid: number): ProcessIdentity | undefined {
  try {
    if (process.platform === 'linux') {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      // The name in parentheses may itself hold spaces and parentheses: count fields after the last one.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (fields[0] === 'X' || (fields[0] === 'Z' && !hasThreads(pid))) return undefined
      return { pid, startTime: `${bootId()}/${fields[19]}` }
    }
    const startTime = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
    return startTime === '' ? undefined : { pid, startTime }
  } catch {
    return undefined
  }
}

/**
 * Whether other threads still live. A killed process whose first thread is gone keeps its sockets until the last thread
 * ends.
 */
function hasThreads(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).length > 1
}

/** Whether the process still runs, and no other process has its number. */
export function isRunning({ pid, startTime }: ProcessIdentity): boolean {
  return identify(pid)?.startTime === startTime
}

/** The name of the program that a process runs; undefined if there is no such process. */
export function programOf(pid: number): string | undefined {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
    const path = execFileSync('ps', ['-o', 'comm=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
    return path.split('/').at(-1)
  } catch {
    return undefined
  }
}

/** The number of the user a process runs as; undefined when there is no such process. */
export function userOf(pid: number): number | undefined {
  try {
    const text =
      process.platform === 'linux'
        ? /^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
        : execFileSync('ps', ['-o', 'uid=', '-p', String(pid)], {
            encoding: 'utf8',
            stdio: ['ignore', 'pipe', 'ignore'],
          })
    return text === undefined || text.trim() === '' ? undefined : Number(text)
  } catch {
    return undefined
  }
}

/** Sends a signal; false when the process is gone, or another user's. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ESRCH' || code === 'EPERM') return false
    throw error
  }
}

/** Waits until the process is gone; false when it still runs after `timeoutMs`. */
export async function waitUntilGone(identity: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  const until = performance.now() + timeoutMs
  for (;;) {
    if (!isRunning(identity)) return true
    if (performance.now() >= until) return false
    await sleep(10)
  }
}

let boot: string | undefined

function bootId(): string {
  boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return boot
}
