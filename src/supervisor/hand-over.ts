import {
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fstatSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { withRightsOf, type PosixUser } from './posix-user.ts'

/** What Quipu makes in a data folder, with the endings of files that are being made. */
const OWN =
  /^(supervisor\.json|standby\.json|secret|anchor-key\.pem(\.pub)?|anchors\.jsonl|data-keys\.jsonl|coordinator(-standby)?|(standby-)?worker-\d+|tables|postgres(\.log|\.new|-[\w.-]+)?|run|node-id|epoch|pages|engines|spill)(\.\w+)*$/
/** One of these, or a database, is in every data folder, and in no other. */
const MARK = /^(supervisor\.json|secret|coordinator|worker-1|node-id)$/

/** Makes a folder with those above it: as the user where that may, else as root for the user. */
export function makeFolderFor(folder: string, user: PosixUser): void {
  try {
    withRightsOf(user, () => mkdirSync(folder, { recursive: true, mode: 0o700 }))
    return
  } catch {
    // Below a folder of root's.
  }
  const umask = process.umask(0)
  try {
    // The user passes through.
    mkdirSync(dirname(folder), { recursive: true, mode: 0o711 })
    mkdirSync(folder, { mode: 0o700 })
    lchownSync(folder, user.uid, user.gid)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    process.umask(umask)
  }
}

/**
 * Gives a data folder to a user, with what Quipu has in it as root: nothing else, and no further than the folder. What
 * that user may have put there meanwhile (links, second names of others' files) is left alone.
 * @throws Error with one line where the folder is not one of Quipu's
 */
export function handOverDataFolder(dataDir: string, user: PosixUser): void {
  makeFolderFor(dataDir, user)
  const top = openFolder(realpathSync(dataDir))
  try {
    const { uid } = fstatSync(top.fd)
    const names = readdirSync(top.path)
    if (uid !== user.uid && !isEmpty(names) && !isDataFolder(top.path, names))
      throw new Error(
        `${dataDir} is not user ${user.name}'s and holds other things than Quipu's: choose another folder`,
      )
    // Nobody but root could write there until now.
    const trusted = uid === 0
    for (const name of names) if (OWN.test(name)) giveTree(top.path, name, user, trusted)
    if (trusted) giveCluster(join(top.path, 'postgres'), user)
    // Last: a hand-over that was cut short is done again.
    if (uid !== user.uid) fchownSync(top.fd, user.uid, user.gid)
  } finally {
    closeSync(top.fd)
  }
}

/** So is the root of a disk that was just formatted. */
function isEmpty(names: readonly string[]): boolean {
  return names.every((name) => name === 'lost+found')
}

function isDataFolder(path: string, names: readonly string[]): boolean {
  return names.some((name) => MARK.test(name)) || existsSync(join(path, 'postgres', 'PG_VERSION'))
}

/** A database that lies elsewhere since Postgres' user could not enter the data folder, with its socket. */
function giveCluster(path: string, user: PosixUser): void {
  const link = lstatSync(path, { throwIfNoEntry: false })
  if (!link?.isSymbolicLink()) return
  const home = dirname(readlinkSync(path))
  for (const name of ['postgres', 'run', 'postgres.log']) giveTree(home, name, user, true)
}

interface Folder {
  readonly fd: number
  /** Names below it are found in this very folder, whatever its own name leads to meanwhile. */
  readonly path: string
}

function openFolder(path: string): Folder {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  return { fd, path: process.platform === 'linux' ? `/proc/self/fd/${fd}` : path }
}

/** @param trusted root alone has written there: then owners and second names of files say nothing */
function giveTree(folder: string, name: string, user: PosixUser, trusted: boolean): void {
  const path = join(folder, name)
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined || (found.uid === user.uid && !trusted)) return
  if (found.isDirectory()) {
    const inner = openFolder(path)
    try {
      for (const one of readdirSync(inner.path)) giveTree(inner.path, one, user, trusted)
      fchownSync(inner.fd, user.uid, user.gid)
    } finally {
      closeSync(inner.fd)
    }
  } else if (trusted) lchownSync(path, user.uid, user.gid)
  else if (found.isFile()) giveFile(path, user)
}

function giveFile(path: string, user: PosixUser): void {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const { nlink } = fstatSync(fd)
    if (nlink === 1) fchownSync(fd, user.uid, user.gid)
  } finally {
    closeSync(fd)
  }
}
