import { readFile } from 'node:fs/promises'
import { isAlive, stateOf, waitUntil } from './quipu-process.ts'

/** Process ids of a process's children, engines of a worker among them; empty when it is gone. */
export async function childrenOf(pid: number): Promise<readonly number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return text.split(' ').filter(Boolean).map(Number)
}

/** SIGSTOP; resolves when it stands still, or is gone. */
export async function freezeProcess(pid: number): Promise<void> {
  signalTo(pid, 'SIGSTOP')
  await waitUntil(`process ${pid} stands still`, () => !isAlive(pid) || stateOf(pid) === 'T')
}

/**
 * Stops a process and its children; resolves when all stand still. The parent is the first: meanwhile nobody is born.
 * @returns lets them go on
 */
export async function freezeFamily(pid: number): Promise<() => void> {
  await freezeProcess(pid)
  const children = await childrenOf(pid)
  await Promise.all(children.map(freezeProcess))
  return () => [...children, pid].forEach((each) => signalTo(each, 'SIGCONT'))
}

function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It ended meanwhile.
  }
}
