import { chmodSync, lstatSync, mkdirSync, readdirSync, realpathSync, type Stats } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isEngineGroup } from './engine-ids.ts'

/** What a process of Quipu makes is for its own user alone: files 0600, folders 0700. Its children inherit it. */
export function keepFilesPrivate(): void {
  process.umask(0o077)
}

/** Postgres keeps these to itself; a copy of its binaries is for all to read. */
const OF_POSTGRES = /^(postgres|run$)/

/**
 * Makes the data folder, for its user alone; where Postgres has another user (a start as root), others may pass through it
 * but not list it. What lies in one of a version before, and could be entered or read by others, no longer can be.
 */
export function makeDataFolder(dataDir: string): void {
  const passable = process.getuid?.() === 0
  const first = mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  if (passable && first !== undefined) {
    for (let folder = resolve(dataDir); folder.length >= first.length; folder = dirname(folder))
      chmodSync(folder, 0o711)
  }
  const folder = realpathSync(dataDir)
  if (!passable) closeToOthers(folder)
  for (const name of readdirSync(folder)) {
    if (!OF_POSTGRES.test(name)) closeToOthers(join(folder, name))
  }
}

function closeToOthers(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined || found.isSymbolicLink() || !isOurs(found)) return
  // What is open to engines of users of their own stays so.
  const kept = isEngineGroup(found.gid) ? 0o2770 : 0o700
  if ((found.mode & 0o077 & ~kept) === 0) return
  try {
    chmodSync(path, found.mode & kept)
  } catch (error) {
    // Another start's, which is gone again.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function isOurs({ uid }: Pick<Stats, 'uid'>): boolean {
  const own = process.getuid?.()
  return own === 0 || uid === own
}
