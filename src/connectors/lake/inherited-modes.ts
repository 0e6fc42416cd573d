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
  await chmod(folder, await modeOf(dirname(folder)))
}

/**
 * Makes a folder and those above it that are not there, all with the mode of one that is. The next above may be another's
 * of this moment, who has not given it its mode yet.
 * @param like above the folder
 */
export async function makeFoldersLike(like: string, folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true })
  if (first === undefined) return
  const mode = await modeOf(like)
  const made = [folder]
  while (made[0] !== first) made.unshift(dirname(made[0]!))
  for (const path of made) await chmod(path, mode)
}

async function modeOf(folder: string): Promise<number> {
  return (await stat(folder)).mode & 0o2777
}
