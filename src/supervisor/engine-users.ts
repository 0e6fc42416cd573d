import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** A killer that was stopped, or waits for a place, is none. */
const KILLER_MS = 1_000
const PAUSE_MS = 5
const MOST_PAUSES = 20
const FEWEST_LOOKS = 5

/**
 * Kills all that runs as a user, and resolves when nothing does. As root only.
 *
 * A process of that user's kills all others in one step of the system, so that nothing can fork itself away; but they may
 * stop or kill it first, or leave it no room. What is found is killed by root too, which they cannot touch, again until
 * nothing is left.
 */
export async function killAllOf(user: number): Promise<void> {
  for (let round = 1; ; round++) {
    const killed = await killTheOthers(user)
    const left = processesOf(user, user + 1)
    // One look may miss who forks; where no killer can be started at all, looks must do.
    if (left.length === 0 && (killed || round >= FEWEST_LOOKS)) return
    for (const { pid } of left) kill(pid, user)
    await sleep(Math.min(round, MOST_PAUSES) * PAUSE_MS)
  }
}

/** Kills what a start before this one left running as one of these users. As root only. */
export async function killLeftOf(first: number, count: number): Promise<void> {
  const left = new Set(processesOf(first, first + count).map(({ user }) => user))
  await Promise.all([...left].map(killAllOf))
}

/**
 * Starts as root and becomes that user only then: who is stopped between fork and exec would stop its parent, which waits for
 * the exec.
 * @returns whether it came to it
 */
function killTheOthers(user: number): Promise<boolean> {
  return new Promise((resolve) => {
    const become = [`--reuid=${user}`, `--regid=${user}`, '--clear-groups']
    const killer = spawn('setpriv', [...become, '/bin/sh', '-c', 'kill -9 -1'], {
      stdio: 'ignore',
      env: { PATH: '/usr/bin:/bin' },
      cwd: '/',
      timeout: KILLER_MS,
      killSignal: 'SIGKILL',
    })
    killer.once('error', () => resolve(false))
    killer.once('exit', (_code, signal) => resolve(signal === null))
  })
}

function kill(pid: number, user: number): void {
  try {
    // The number may be another's by now.
    if (userOf(pid) === user) process.kill(pid, 'SIGKILL')
  } catch {
    // It ended meanwhile.
  }
}

/** What runs as one of the users from `first` to `end`, exclusive; what has ended and waits for its parent does not. */
function processesOf(first: number, end: number): { readonly pid: number; readonly user: number }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), user: userOf(Number(name)) }))
    .flatMap(({ pid, user }) => (user !== undefined && user >= first && user < end ? { pid, user } : []))
}

function userOf(pid: number): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    // Whose first thread alone has ended is at work.
    if (/^State:\t[ZX]/m.test(status) && !/^Threads:\t(?:[2-9]|\d\d)/m.test(status)) return undefined
    const user = /^Uid:\t(\d+)/m.exec(status)?.[1]
    return user === undefined ? undefined : Number(user)
  } catch {
    return undefined
  }
}
