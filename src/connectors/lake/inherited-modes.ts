import type { Stats } from 'node:fs'
import { chmod, mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

// Processes make files for their own user alone. A lake is its operator's: who may read its folder may read what is written
// there, and nobody else. The tables of `memory` lie in a folder of Quipu's own, and stay private.

/** Of a file in the folder. */
export function fileMode(folder: Pick<Stats, 'mode'>): number {
  return folder.mode & 0o666
}

/** Makes one folder. @throws EEXIST like `mkdir` */
export async function makeFolderLikeParent(folder: string): Promise<void> {
  await mkdir(folder)
  await chmod(folder, await modeOfParent(folder))
}

/** Makes a folder and those above it that are not there. */
export async function makeFoldersLikeParent(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true })
  if (first === undefined) return
  const made = [folder]
  while (made[0] !== first) made.unshift(dirname(made[0]!))
  for (const path of made) await chmod(path, await modeOfParent(path))
}

async function modeOfParent(folder: string): Promise<number> {
  return (await stat(dirname(folder))).mode & 0o2777
}
