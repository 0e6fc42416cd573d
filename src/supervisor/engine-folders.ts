import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Folders that engines with users of their own pass through, and those they read; all absolute. */
export interface EngineAccess {
  /** Parents come before what lies in them. */
  readonly passed: readonly string[]
  /** With all that lies in them. */
  readonly read: readonly string[]
}

/**
 * Opens folders of this process's user to the group of engines, making what is missing.
 * @returns those that are somebody else's: their owner says who reads them
 */
export function openToEngines({ passed, read }: EngineAccess, gate: number): string[] {
  for (const folder of passed) {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    chownSync(folder, process.getuid!(), gate)
    // Whoever else may pass (a Postgres of another user) still may.
    chmodSync(folder, 0o710 | (lstatSync(folder).mode & 0o001))
  }
  return read.filter((folder) => {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (lstatSync(folder).uid !== process.getuid!()) return true
    share(folder, gate)
    return false
  })
}

/** What is made in it later has its group, and as much for it: `connectors/lake/inherited-modes.ts`. */
function share(path: string, gate: number): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined || found.uid !== process.getuid!() || found.isSymbolicLink()) return
  if (!found.isDirectory() && (!found.isFile() || found.nlink > 1)) return
  const mode = (found.mode & 0o777) | (found.isDirectory() ? 0o2050 : 0o040)
  if (found.gid !== gate) chownSync(path, found.uid, gate)
  if (found.gid !== gate || (found.mode & 0o7777) !== mode) chmodSync(path, mode)
  if (found.isDirectory()) for (const name of readdirSync(path)) share(join(path, name), gate)
}
