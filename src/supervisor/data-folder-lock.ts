import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { makeDataFolder } from './data-folder.ts'
import { identify, isRunning, signal, userOf, waitUntilGone, type ProcessIdentity } from './process-identity.ts'

/**
 * The content of the lock file: the supervisor of this data folder, its children, and the last writer of the log among
 * them.
 */
export interface LockState {
  readonly supervisor: ProcessIdentity
  readonly children: readonly ProcessIdentity[]
  readonly writer?: string | undefined
}

export interface DataFolderLock {
  /**
   * The writer that the previous supervisor of this folder knew. That writer and its supervisor's children are dead.
   */
  readonly deadWriter: string | undefined
  update(state: { children: readonly ProcessIdentity[]; writer: string | undefined }): void
  /**
   * Removes the lock file; the last call on this object. If a writer ended without handing the log over, the file
   * stays. Once this process is gone, the file is not a lock any more and only names that writer to the next start.
   */
  release(): void
}

/** Lock files of the supervisor that owns a data folder, and of a stand-by supervisor. */
const FILES = { owner: 'supervisor.json', standby: 'standby.json' } as const

export type LockRole = keyof typeof FILES
/**
 * Children notice the end of their supervisor within a second. A child that still lives after this time is stopped or
 * hung.
 */
const ORPHANS_END_MS = 1_500

/**
 * Makes this process the only supervisor of a data folder. A lock file counts only while the process that it names, by
 * number and start time, runs; a dead supervisor's file is no lock. Processes that the dead supervisor left running are
 * ended first.
 * @throws Error with one line if another supervisor lives
 */
export async function lockDataFolder(dataDir: string, role: LockRole = 'owner'): Promise<DataFolderLock> {
  makeDataFolder(dataDir)
  const path = join(dataDir, FILES[role])
  const supervisor = identify(process.pid)
  if (!supervisor) throw new Error('Cannot tell when this process started')
  const own: LockState = { supervisor, children: [], writer: undefined }
  let before: Found | undefined
  while (!create(path, own)) {
    const found = read(path)
    if (!found) continue
    refuseBesides(found, dataDir)
    if (!succeed(path, found, own, dataDir)) continue
    before = found
    break
  }
  // A file that another user wrote must not make this process end other processes or believe that a writer is dead.
  const left = before?.isOurs ? before.state : undefined
  await Promise.all((left?.children ?? []).map(endOrphan))
  let writer = left?.writer
  return {
    deadWriter: writer,
    update: (state) => {
      writer = state.writer
      replace(path, { supervisor, ...state })
    },
    release: () => {
      if (writer === undefined) rmSync(path, { force: true })
      else replace(path, { supervisor, children: [], writer })
    },
  }
}

/** Whether a supervisor with this role on a data folder lives. Also true if it may live as another user. */
export function isHeld(dataDir: string, role: LockRole): boolean {
  try {
    const found = read(join(dataDir, FILES[role]))
    return found?.state !== undefined && isRunning(found.state.supervisor)
  } catch {
    return true
  }
}

/** The living supervisor with this role on a data folder. Reads only a file that this process's user has written. */
export function holderOf(dataDir: string, role: LockRole): { readonly pid: number; readonly uid: number } | undefined {
  const found = read(join(dataDir, FILES[role]))
  if (!found?.isOurs || !found.state || !isRunning(found.state.supervisor)) return undefined
  const { pid } = found.state.supervisor
  const uid = userOf(pid)
  return uid === undefined ? undefined : { pid, uid }
}

/** Ends the processes that dead supervisors of this process's user have left running on a data folder. */
export async function endLeftBehind(dataDir: string): Promise<void> {
  for (const file of Object.values(FILES)) {
    const found = read(join(dataDir, file))
    if (found?.isOurs && found.state && !isRunning(found.state.supervisor))
      await Promise.all(found.state.children.map(endOrphan))
  }
}

/** Creates the file with all of its content, or not at all. Returns false if a file exists. */
function create(path: string, state: LockState): boolean {
  const own = write(path, state)
  try {
    linkSync(own, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(own, { force: true })
  }
}

function replace(path: string, state: LockState): void {
  renameSync(write(path, state), path)
}

function write(path: string, state: LockState): string {
  const own = `${path}.${process.pid}`
  rmSync(own, { force: true })
  // `wx` refuses to write through a link that another user put there.
  writeFileSync(own, `${JSON.stringify(state)}\n`, { mode: 0o600, flag: 'wx' })
  return own
}

interface Found {
  /** Identifies this version of the file: no other file in this folder ever has the same id. */
  readonly id: string
  /** The file's content; undefined if it was not written completely. */
  readonly state: LockState | undefined
  /** Whether this process's user has written the file. */
  readonly isOurs: boolean
}

/**
 * Reads a lock file; undefined if there is none.
 * @throws Error with one line if the file belongs to another user, whose supervisor may be running
 */
function read(path: string): Found | undefined {
  let file: number
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES')
      throw new Error(`${path} belongs to another user: start as that user, or as root`)
    const link = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return link && { id: idOf(link), state: undefined, isOurs: false }
  }
  try {
    const stat = fstatSync(file, { bigint: true })
    return { id: idOf(stat), state: stateIn(file), isOurs: process.getuid?.() === Number(stat.uid) }
  } finally {
    closeSync(file)
  }
}

function idOf({ ino, mtimeNs }: BigIntStats): string {
  return `${ino}-${mtimeNs}`
}

function stateIn(file: number): LockState | undefined {
  try {
    const state = JSON.parse(readFileSync(file, 'utf8')) as Partial<LockState> | null
    if (typeof state?.supervisor?.pid !== 'number' || !Array.isArray(state.children)) return undefined
    return state as LockState
  } catch {
    return undefined
  }
}

function refuseBesides({ state }: Found, dataDir: string): void {
  if (state && isRunning(state.supervisor))
    throw new Error(`Another Quipu (process ${state.supervisor.pid}) already runs on ${dataDir}`)
}

/**
 * Puts this process's file in place of a dead supervisor's file. Many processes may start at once and all find the same
 * dead file. The process that creates the file named after the dead file's id is its only successor, so only a dead
 * file is ever replaced. If that successor dies before it is done, the next successor's file is named after its file in
 * turn. Returns false if another process was faster.
 */
function succeed(path: string, left: Found, own: LockState, dataDir: string): boolean {
  const successors: string[] = []
  for (let last = left; ;) {
    const successor = `${path}.after.${last.id}`
    successors.unshift(successor)
    if (create(successor, own)) break
    const other = read(successor)
    if (!other) return false
    refuseBesides(other, dataDir)
    last = other
  }
  const isStillLeft = read(path)?.id === left.id
  if (isStillLeft) replace(path, own)
  for (const file of successors) rmSync(file, { force: true })
  return isStillLeft
}

async function endOrphan(child: ProcessIdentity): Promise<void> {
  if (await waitUntilGone(child, ORPHANS_END_MS)) return
  if (!signal(child.pid, 'SIGKILL')) return
  await waitUntilGone(child, 5_000)
}
