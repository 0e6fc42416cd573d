import { closeSync, constants, openSync, readdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'

export interface Folder {
  readonly fd: number
  /**
   * A path that always leads to the opened folder, even if another folder gets its name meanwhile.
   */
  readonly path: string
}

/** Enough rounds for this many nested folders. The next call continues with the rest. */
const MOST_ROUNDS = 1_000_000

/** @throws Error when the path is not a folder, or is a link to one */
export function openFolder(path: string): Folder {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  return { fd, path: process.platform === 'linux' ? `/proc/self/fd/${fd}` : path }
}

/**
 * Removes everything in a folder and nothing else, at any depth, whichever user made it. Paths and the stack are never
 * deeper than two folders. Entries that cannot be removed stay.
 */
export function emptyFolder(parent: string, name: string): void {
  const top = tryTo(() => openFolder(join(parent, name)))
  if (top === undefined) return
  try {
    // Folders that are moved up are handled in the next round. Another process may still write into them.
    for (let round = 0, removed = true; removed && round < MOST_ROUNDS; round++) {
      removed = false
      for (const one of readdirSync(top.path)) removed = removeIn(top, one) || removed
    }
  } finally {
    closeSync(top.fd)
  }
}

/** @returns whether the entry is gone */
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
