import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { makeDataFolder } from './data-folder.ts'
import { canEnter, type PosixUser } from './posix-user.ts'

/** Folders of the cluster, its socket and copies of the binaries. */
export interface PostgresFolders {
  readonly cluster: string
  readonly socket: string
  /** Copies of the binaries go here if they are needed. */
  readonly copies: string
}

/** Unix socket paths are cut at 107 bytes (Linux) or 103 (macOS). */
const LONGEST_SOCKET_PATH = 103
const SYSTEM_FOLDER = '/var/lib/quipu'

/**
 * Chooses and makes the folders: `<data>/postgres` and `<data>/run`. If `user` cannot enter the data folder, the
 * cluster gets a folder of its own below /var/lib/quipu, with a link to it in the data folder. A socket whose path
 * would be too long goes to the temporary folder.
 */
export function preparePostgresFolders(
  dataDir: string,
  user: PosixUser | undefined,
  print: (line: string) => void,
): PostgresFolders {
  makeDataFolder(dataDir)
  const data = realpathSync(dataDir)
  const cluster = join(data, 'postgres')
  const target = linkTarget(cluster, user)
  if (target !== undefined) return elsewhere(target, user)
  if (user === undefined || canEnter(data, user)) {
    return { cluster, socket: socketFolder(join(data, 'run'), cluster, user), copies: data }
  }
  const home = join(SYSTEM_FOLDER, randomBytes(8).toString('hex'))
  print(`User ${user.name} cannot enter ${data}: the database is in ${home}`)
  symlinkSync(join(home, 'postgres'), cluster)
  return elsewhere(join(home, 'postgres'), user)
}

function elsewhere(cluster: string, user: PosixUser | undefined): PostgresFolders {
  const home = dirname(cluster)
  makePassable(SYSTEM_FOLDER)
  makePassable(home)
  return { cluster, socket: socketFolder(join(home, 'run'), cluster, user), copies: SYSTEM_FOLDER }
}

function socketFolder(wanted: string, cluster: string, user: PosixUser | undefined): string {
  const fits = Buffer.byteLength(join(wanted, '.s.PGSQL.5432.lock')) <= LONGEST_SOCKET_PATH
  const name = createHash('sha256').update(cluster).digest('hex').slice(0, 16)
  const folder = fits ? wanted : join(tmpdir(), `quipu-${name}`)
  const owner = user?.uid ?? process.getuid?.()
  if (!existsSync(folder)) {
    mkdirSync(folder, { mode: 0o700 })
    if (user) lchownSync(folder, user.uid, user.gid)
  }
  const found = lstatSync(folder)
  // All users can write to the temporary folder. If another user has made this folder, it must not get our socket.
  if (!found.isDirectory() || (!fits && found.uid !== owner)) {
    throw new Error(`${folder} does not belong to this user, or is not a folder: remove it and start again`)
  }
  const open = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    if (found.uid !== owner && user) fchownSync(open, user.uid, user.gid)
    if ((found.mode & 0o777) !== 0o700) fchmodSync(open, 0o700)
  } finally {
    closeSync(open)
  }
  return folder
}

/**
 * The target of a symbolic link; undefined if the path is not a link.
 * @throws Error if Postgres' user may have made the link: root would follow it anywhere
 */
function linkTarget(path: string, user: PosixUser | undefined): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found?.isSymbolicLink()) return undefined
  if (user && found.uid !== 0)
    throw new Error(`${path} is a link that does not belong to root: remove it and start again`)
  return readlinkSync(path)
}

/** Makes a folder that others may pass through but not list, whatever the umask says. */
function makePassable(folder: string): void {
  if (existsSync(folder)) return
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o711)
}
