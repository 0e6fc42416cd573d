import { closeSync, constants, openSync, readdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'

export interface Folder {
  readonly fd: number
  /** Names below it are found in this very folder, whatever its own name leads to meanwhile. */
  readonly path: string
}

/** As many as folders lie in each other; the next time goes on. */
const MOST_ROUNDS = 1_000_000

/** @throws Error where it is no folder, or a link to one */
export function openFolder(path: string): Folder {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  return { fd, path: process.platform === 'linux' ? `/proc/self/fd/${fd}` : path }
}

/**
 * Removes all that lies in a folder, and nothing else, however deep it is and whoever laid it there: no path is longer, and
 * no stack deeper, than two folders. What cannot be removed stays.
 */
export function emptyFolder(parent: string, name: string): void {
  const top = tryTo(() => openFolder(join(parent, name)))
  if (top === undefined) return
  try {
    // Folders that come up from below are met in the next round; somebody may still be at work in them.
    for (let round = 0, removed = true; removed && round < MOST_ROUNDS; round++) {
      removed = false
      for (const one of readdirSync(top.path)) removed = removeIn(top, one) || removed
    }
  } finally {
    closeSync(top.fd)
  }
}

/** @returns whether it is gone */
function removeIn(top: Folder, name: string): boolean {
  const path = join(top.path, name)
  const inner = tryTo(() => openFolder(path))
  if (inner === undefined) return tryTo(() => unlinkSync(path) ?? true) ?? false
  try {
    for (const one of readdirSync(inner.path, { withFileTypes: true })) {
      const below = join(inner.path, one.name)
      tryTo(() => (one.isDirectory() ? renameSync(below, join(top.path, randomUUID())) : unlinkSync(below)))
    }
  } finally {
    closeSync(inner.fd)
  }
  return tryTo(() => rmdirSync(path) ?? true) ?? false
}

function tryTo<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
