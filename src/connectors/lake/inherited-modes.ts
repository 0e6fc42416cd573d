import type { Stats } from 'node:fs'
import { chmod, mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

// By default processes make files that only their own user can read. A lake belongs to its operator: users who may read
// its folder may read the files that Quipu writes there, and no other users. The tables of `memory` are in a folder of
// Quipu's own, and stay private.

/** The mode of a file in the folder. */
export function fileMode(folder: Pick<Stats, 'mode'>): number {
  return folder.mode & 0o666
}

/** Makes one folder. @throws EEXIST like `mkdir` */
export async function makeFolderLikeParent(folder: string): Promise<void> {
  await mkdir(folder)
  await chmod(folder, await modeOf(dirname(folder)))
}

/**
 * Makes a folder and its missing parents, all with the mode of an existing folder above them. The nearest parent is not
 * used: another process may have just made it, and not yet set its mode.
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
