import { chmodSync, lstatSync, mkdirSync, readdirSync, realpathSync, type Stats } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isEngineGroup } from './engine-ids.ts'

/** Makes new files of this process private to its user: files 0600, folders 0700. Its children inherit the setting. */
export function keepFilesPrivate(): void {
  process.umask(0o077)
}

/** Postgres keeps its own folders private. A copy of its binaries is readable for all. */
const OF_POSTGRES = /^(postgres|run$)/

/**
 * Makes the data folder, private to its user. If Postgres runs as another user (a start as root), others may pass
 * through the folder but not list it. Entries of an older version that others could enter or read become private.
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
  // Entries that are open to engines with users of their own stay open.
  const kept = isEngineGroup(found.gid) ? 0o2770 : 0o700
  if ((found.mode & 0o077 & ~kept) === 0) return
  try {
    chmodSync(path, found.mode & kept)
  } catch (error) {
    // The entry belonged to another start and is gone again.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function isOurs({ uid }: Pick<Stats, 'uid'>): boolean {
  const own = process.getuid?.()
  return own === 0 || uid === own
}
