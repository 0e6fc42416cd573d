import { chmodSync, chownSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { lstat, opendir, rmdir, unlink } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { dirname, join } from 'node:path'
import { hasCode } from '../../shared/node-error.ts'

/** The folders that one engine shares with its parent; all absolute, with trailing slash. */
export interface SlotFolders {
  /** Holds the FIFOs and the channel's socket. */
  readonly folder: string
  /** DuckDB may read and write it. The engine's own user may too, so its content must not be trusted. */
  readonly own: string
  readonly spill: string
}

/**
 * Creates the folders of a slot.
 * @param user the engine's user, whose group this process has; undefined when the engine runs as this process's user
 */
export function makeSlotFolders(
  parents: { readonly folder: string; readonly spillFolder: string },
  slot: number,
  user: number | undefined,
): SlotFolders {
  const folder = join(parents.folder, `${slot}`, '/')
  const spill = join(parents.spillFolder, `${slot}`, '/')
  if (user === undefined) {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return { folder, own: folder, spill }
  }
  const own = join(folder, 'own', '/')
  for (const [path, mode] of [
    [folder, 0o2750],
    [own, 0o2770],
    [spill, 0o2770],
  ] as const) {
    // An earlier engine of the slot left it.
    removeTree(path).catch(() => undefined)
    mkdirSync(path, { mode: 0o700 })
    chownSync(path, process.getuid!(), user)
    chmodSync(path, mode)
  }
  return { folder, own, spill }
}

const LEFT = 'left-'
/** The deepest nesting of folders that is removed; DuckDB makes two levels. */
const MOST_DEPTH = 100

/**
 * Removes a folder of an engine that is gone. Its name is free at once; its content, any number of files, is removed
 * without blocking the event loop. Folders that the engine closed to its parent, or nested too deeply, stay until root
 * starts Quipu again.
 */
export async function removeTree(path: string): Promise<void> {
  const whole = path.replace(/\/$/, '')
  const aside = join(dirname(whole), `${LEFT}${randomUUID()}`)
  try {
    renameSync(whole, aside)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    throw error
  }
  await removeAside(aside)
}

/** Makes the folder if it is missing, and empties it. */
export async function makeEmpty(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    await (name.startsWith(LEFT) ? removeAside(path) : removeTree(path))
  }
}

async function removeAside(path: string): Promise<void> {
  await removeBelow(path, 0).catch(() => undefined)
}

/** Links are removed, never followed. */
async function removeBelow(path: string, depth: number): Promise<void> {
  if (depth > MOST_DEPTH) return
  if (!(await lstat(path)).isDirectory()) return unlink(path)
  for await (const { name } of await opendir(path)) await removeBelow(join(path, name), depth + 1)
  await rmdir(path)
}
