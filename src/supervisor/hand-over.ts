import {
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fstatSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { isHeld } from './data-folder-lock.ts'
import { emptyFolder, openFolder, type Folder } from './opened-folder.ts'
import { withRightsOf, type PosixUser } from './posix-user.ts'

/** The names that Quipu makes in a data folder, with the endings of files that are being made. */
const OWN =
  /^(supervisor\.json|standby\.json|secret|anchor-key\.pem(\.pub)?|anchors\.jsonl|data-keys\.jsonl|coordinator(-standby)?|(standby-)?worker-\d+|tables|postgres(\.log|\.new|-[\w.-]+)?|run|node-id|epoch|pages|engines|spill)(\.\w+)*$/
/** Every data folder has one of these names, or a database. No other folder has. */
const MARK = /^(supervisor\.json|secret|coordinator|worker-1|node-id)$/

/** Makes a folder and its parents: with the rights of the user if they suffice, else as root for the user. */
export function makeFolderFor(folder: string, user: PosixUser): void {
  try {
    withRightsOf(user, () => mkdirSync(folder, { recursive: true, mode: 0o700 }))
    return
  } catch {
    // The parent folder belongs to root.
  }
  const umask = process.umask(0)
  try {
    // Parents allow the user to pass through.
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
 * Gives a data folder to a user, with the files that Quipu made in it as root. Touches no other files and does not
 * leave the folder. Entries that the user may have put there meanwhile (links, hard links to files of others) stay as
 * they are.
 * @throws Error with one line if the folder is not a data folder of Quipu
 */
export function handOverDataFolder(dataDir: string, user: PosixUser): void {
  makeFolderFor(dataDir, user)
  const top = openFolder(realpathSync(dataDir))
  try {
    // Read before the owner, as in `handOverTables`.
    const names = readdirSync(top.path)
    const { uid } = fstatSync(top.fd)
    if (uid !== user.uid && !isEmpty(names) && !isDataFolder(top.path, names))
      throw new Error(
        `${dataDir} does not belong to user ${user.name} and holds files that are not of Quipu: choose another folder`,
      )
    // Until now only root could write there.
    const trusted = uid === 0
    for (const name of names) {
      if (!OWN.test(name)) continue
      // This comes first: the remains of engines may be deeper than `giveTree` can walk.
      removeLeft(dataDir, top, name)
      giveTree(top.path, name, user, trusted)
    }
    if (trusted) giveCluster(join(top.path, 'postgres'), user)
    // This comes last, so that an interrupted hand-over is repeated.
    if (uid !== user.uid) fchownSync(top.fd, user.uid, user.gid)
  } finally {
    closeSync(top.fd)
  }
}

const OF_STANDBY = /^(coordinator-standby|standby-worker-\d+)$/
const OF_PROCESSES = /^(coordinator(-standby)?|(standby-)?worker-\d+)$/

/**
 * Removes files that engines of an earlier start have left. Engines with users of their own may have made folders that
 * `user` cannot look into. Files of a running start stay as they are.
 */
function removeLeft(dataDir: string, top: Folder, name: string): void {
  if (isHeld(dataDir, OF_STANDBY.test(name) ? 'standby' : 'owner')) return
  if (isOfEngines(name)) return emptyFolder(top.path, name)
  if (!OF_PROCESSES.test(name) || !lstatSync(join(top.path, name), { throwIfNoEntry: false })?.isDirectory()) return
  const inner = openFolder(join(top.path, name))
  try {
    for (const one of readdirSync(inner.path)) if (isOfEngines(one)) emptyFolder(inner.path, one)
  } finally {
    closeSync(inner.fd)
  }
}

function isOfEngines(name: string): boolean {
  return name === 'engines' || name === 'spill'
}

/**
 * Makes sure that a user may write to a folder of tables. Makes the folder if it is missing. Gives it to the user if it
 * is root's and is empty or holds tables of Quipu.
 * @param catalogs names of the catalogs whose tables lie there, one folder each
 * @throws Error with one line if the folder belongs to another user
 */
export function handOverTables(folder: string, catalogs: readonly string[], user: PosixUser): void {
  makeFolderFor(folder, user)
  if (withRightsOf(user, () => mayMakeIn(folder))) return
  const top = openFolder(realpathSync(folder))
  try {
    // Read before the owner: once another start has given the folder to the user, it may hold other files.
    const names = readdirSync(top.path)
    const { uid, mode } = fstatSync(top.fd)
    // Another start, on this folder too, was faster.
    if (uid === user.uid && (mode & 0o300) === 0o300) return
    const isOurs =
      uid === 0 && (mode & 0o022) === 0 && (isEmpty(names) || names.every((name) => catalogs.includes(name)))
    if (!isOurs)
      throw new Error(
        `user ${user.name} cannot write ${folder} (--tables-dir), which belongs to user ${uid}: change its owner (chown), or set --run-as to its owner`,
      )
    for (const name of names) if (catalogs.includes(name)) giveTree(top.path, name, user, false)
    fchownSync(top.fd, user.uid, user.gid)
  } finally {
    closeSync(top.fd)
  }
}

/** Whether the effective user can write here. `access` would check the real user, as which this process was started. */
function mayMakeIn(folder: string): boolean {
  try {
    rmdirSync(mkdtempSync(join(folder, '.quipu-')))
    return true
  } catch {
    return false
  }
}

/** Whether the folder is empty. The root of a freshly formatted disk counts as empty. */
function isEmpty(names: readonly string[]): boolean {
  return names.every((name) => name === 'lost+found')
}

function isDataFolder(path: string, names: readonly string[]): boolean {
  return names.some((name) => MARK.test(name)) || existsSync(join(path, 'postgres', 'PG_VERSION'))
}

/**
 * Gives the user a database, and its socket, that lies outside the data folder because Postgres' user could not enter
 * that folder.
 */
function giveCluster(path: string, user: PosixUser): void {
  const link = lstatSync(path, { throwIfNoEntry: false })
  if (!link?.isSymbolicLink()) return
  const home = dirname(readlinkSync(path))
  for (const name of ['postgres', 'run', 'postgres.log']) giveTree(home, name, user, true)
}

/** @param trusted only root has written there, so owners and hard links of files need no check */
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
