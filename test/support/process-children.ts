import { readFile } from 'node:fs/promises'
import { isAlive, stateOf, waitUntil } from './quipu-process.ts'

/** The pids of the children of a process, for example the engines of a worker; empty when the process is gone. */
export async function childrenOf(pid: number): Promise<readonly number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return text.split(' ').filter(Boolean).map(Number)
}

/** Sends SIGSTOP. Resolves when the process is stopped or gone. */
export async function freezeProcess(pid: number): Promise<void> {
  signalTo(pid, 'SIGSTOP')
  await waitUntil(`process ${pid} stands still`, () => !isAlive(pid) || stateOf(pid) === 'T')
}

/**
 * Stops a process and its children. Resolves when all are stopped. The parent stops first, so that it forks no more.
 * @returns a function that resumes them
 */
export async function freezeFamily(pid: number): Promise<() => void> {
  await freezeProcess(pid)
  const children = await childrenOf(pid)
  await Promise.all(children.map(freezeProcess))
  return () => [...children, pid].forEach((each) => signalTo(each, 'SIGCONT'))
}

/** Sends a signal; does nothing where the process has ended. */
export function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process ended meanwhile.
  }
}
