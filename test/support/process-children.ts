import { readFile } from 'node:fs/promises'

/** Process ids of a process's children, engines of a worker among them; empty when it is gone. */
export async function childrenOf(pid: number): Promise<readonly number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return text.split(' ').filter(Boolean).map(Number)
}
