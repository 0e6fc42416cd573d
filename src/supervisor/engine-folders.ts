import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Absolute paths of the folders that engines with users of their own pass through, and of those that they read. */
export interface EngineAccess {
  /** Parents come before their children. */
  readonly passed: readonly string[]
  /** With everything in them. */
  readonly read: readonly string[]
}

/**
 * Opens folders of this process's user to the group of engines. Makes missing folders.
 * @returns folders of other users: their owner decides which users read them
 */
export function openToEngines({ passed, read }: EngineAccess, gate: number): string[] {
  for (const folder of passed) {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    chownSync(folder, process.getuid!(), gate)
    // Keeps the right of other users to pass through, for example of the user of Postgres.
    chmodSync(folder, 0o710 | (lstatSync(folder).mode & 0o001))
  }
  return read.filter((folder) => {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (lstatSync(folder).uid !== process.getuid!()) return true
    share(folder, gate)
    return false
  })
}

/** Gives a path to the group. Later entries inherit the group and its rights: `connectors/lake/inherited-modes.ts`. */
function share(path: string, gate: number): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined || found.uid !== process.getuid!() || found.isSymbolicLink()) return
  if (!found.isDirectory() && (!found.isFile() || found.nlink > 1)) return
  const mode = (found.mode & 0o777) | (found.isDirectory() ? 0o2050 : 0o040)
  if (found.gid !== gate) chownSync(path, found.uid, gate)
  if (found.gid !== gate || (found.mode & 0o7777) !== mode) chmodSync(path, mode)
  if (found.isDirectory()) for (const name of readdirSync(path)) share(join(path, name), gate)
}
