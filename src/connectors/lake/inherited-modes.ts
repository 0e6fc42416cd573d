import type { Stats } from 'node:fs'
import { chmod, mkdir, readdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { hasCode } from '../../shared/node-error.ts'

/** Permissions, and the bit by which new entries get the group of the folder. */
const MODE_BITS = 0o2777

// By default processes make files that only their own user can read. A lake belongs to its operator: users who may read
// its folder may read the files that Quipu writes there, and no other users. The tables of `memory` are in a folder of
// Quipu's own, and stay private.

/** The mode of a file in the folder. */
export function fileMode(folder: Pick<Stats, 'mode'>): number {
  return folder.mode & 0o666
}

/**
 * Makes one folder with the mode of its parent. An empty folder that exists already gets this mode too: the process that
 * made it may have been killed before it set the mode.
 */
export async function makeFolderLikeParent(folder: string): Promise<void> {
  const made = await mkdir(folder).then(
    () => true,
    (error: unknown) => {
      if (hasCode(error, 'EEXIST')) return false
      throw error
    },
  )
  const mode = await modeOf(dirname(folder))
  if (made || ((await modeOf(folder)) !== mode && (await isEmpty(folder)))) await setMode(folder, mode)
}

async function isEmpty(folder: string): Promise<boolean> {
  return (await readdir(folder).catch(() => ['unreadable'])).length === 0
}

/**
 * Makes a folder and its missing parents, all with the mode of an existing folder above them. The nearest parent is not
 * used: another process may have just made it, and not yet set its mode. Parents that exist get this mode too, because
 * the process that made them may have been killed before it set the mode.
 * @param like above the folder; all folders between are Quipu's own
 */
export async function makeFoldersLike(like: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  const mode = await modeOf(like)
  const folders = []
  for (let path = folder; path !== like; path = dirname(path)) folders.unshift(path)
  for (const path of folders) await setMode(path, mode)
}

/** Sets the mode of a folder, unless it has the mode or belongs to another user. */
async function setMode(folder: string, mode: number): Promise<void> {
  const { mode: present, uid } = await stat(folder)
  if ((present & MODE_BITS) !== mode && uid === process.geteuid?.()) await chmod(folder, mode)
}

async function modeOf(folder: string): Promise<number> {
  return (await stat(folder)).mode & MODE_BITS
}
