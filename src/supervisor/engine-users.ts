import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long a killer may take: a killer that was stopped, or that waits for a free process, does not count. */
const KILLER_MS = 1_000
const PAUSE_MS = 5
const MOST_PAUSES = 20
const FEWEST_LOOKS = 5

/**
 * Kills all processes of a user, and resolves when none is left. Needs root.
 *
 * One process of that user kills all others in a single system call, so that none can escape by forking. But they may
 * stop or kill that process first, or leave no room for it. Root, which they cannot touch, therefore also kills each
 * process that it finds, again and again until none is left.
 */
export async function killAllOf(user: number): Promise<void> {
  for (let round = 1; ; round++) {
    const killed = await killTheOthers(user)
    const left = processesOf(user, user + 1)
    // A single look may miss a process that forks. If no killer can be started at all, several looks must suffice.
    if (left.length === 0 && (killed || round >= FEWEST_LOOKS)) return
    for (const { pid } of left) kill(pid, user)
    await sleep(Math.min(round, MOST_PAUSES) * PAUSE_MS)
  }
}

/** Kills the processes that an earlier start left running as one of these users. Needs root. */
export async function killLeftOf(first: number, count: number): Promise<void> {
  const left = new Set(processesOf(first, first + count).map(({ user }) => user))
  await Promise.all([...left].map(killAllOf))
}

/**
 * Starts a process that kills all others of the user. It starts as root and only then becomes that user: a process of
 * the user that is stopped between fork and exec would stop its parent, which waits for the exec.
 * @returns whether the killer ran to its end
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
    // The number may belong to another user's process by now.
    if (userOf(pid) === user) process.kill(pid, 'SIGKILL')
  } catch {
    // It ended meanwhile.
  }
}

/**
 * The processes of the users from `first` to `end`, exclusive. Processes that have ended and wait for their parent do
 * not count.
 */
function processesOf(first: number, end: number): { readonly pid: number; readonly user: number }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), user: userOf(Number(name)) }))
    .flatMap(({ pid, user }) => (user !== undefined && user >= first && user < end ? { pid, user } : []))
}

function userOf(pid: number): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    // If only the first thread has ended, the process still works.
    if (/^State:\t[ZX]/m.test(status) && !/^Threads:\t(?:[2-9]|\d\d)/m.test(status)) return undefined
    const user = /^Uid:\t(\d+)/m.exec(status)?.[1]
    return user === undefined ? undefined : Number(user)
  } catch {
    return undefined
  }
}
