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

/** What the file holds: who supervises this data folder, its children, and the last writer of the log among them. */
export interface LockState {
  readonly supervisor: ProcessIdentity
  readonly children: readonly ProcessIdentity[]
  readonly writer?: string | undefined
}

export interface DataFolderLock {
  /** The writer that the previous supervisor of this folder knew of; it and its children are dead. */
  readonly deadWriter: string | undefined
  update(state: { children: readonly ProcessIdentity[]; writer: string | undefined }): void
  /**
   * To be called last. Removes the file; but where a writer ended without handing its place over, the file stays, no
   * lock any more once this process is gone, and tells the next start who it was.
   */
  release(): void
}

/** Of the supervisor that a data folder belongs to, and of one that stands by for it. */
const FILES = { owner: 'supervisor.json', standby: 'standby.json' } as const

export type LockRole = keyof typeof FILES
/** Children see their supervisor's end within a second; what then still lives is stopped or hung. */
const ORPHANS_END_MS = 1_500

/**
 * Makes this process the one supervisor of a data folder. A file left by a dead supervisor is no lock: it counts only
 * while the process it names, by number and start time, runs. What that one left running is ended first.
 * @throws Error with one line when another supervisor lives
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
  // Another user's note must not make this one end processes, nor believe who is dead.
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

/** Whether a supervisor lives that has this role on a data folder, or may live as another user. */
export function isHeld(dataDir: string, role: LockRole): boolean {
  try {
    const found = read(join(dataDir, FILES[role]))
    return found?.state !== undefined && isRunning(found.state.supervisor)
  } catch {
    return true
  }
}

/** The supervisor that lives in this role on a data folder, as a file tells that nobody but its user has written. */
export function holderOf(dataDir: string, role: LockRole): { readonly pid: number; readonly uid: number } | undefined {
  const found = read(join(dataDir, FILES[role]))
  if (!found?.isOurs || !found.state || !isRunning(found.state.supervisor)) return undefined
  const { pid } = found.state.supervisor
  const uid = userOf(pid)
  return uid === undefined ? undefined : { pid, uid }
}

/** Ends what supervisors of this process's user that are gone have left running on a data folder. */
export async function endLeftBehind(dataDir: string): Promise<void> {
  for (const file of Object.values(FILES)) {
    const found = read(join(dataDir, file))
    if (found?.isOurs && found.state && !isRunning(found.state.supervisor))
      await Promise.all(found.state.children.map(endOrphan))
  }
}

/** Creates the file whole or not at all; false when there is one. */
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
  // Never through a link that another user laid there.
  writeFileSync(own, `${JSON.stringify(state)}\n`, { mode: 0o600, flag: 'wx' })
  return own
}

interface Found {
  /** No other file of this folder ever has it. */
  readonly id: string
  /** What it holds; undefined when that was not written whole. */
  readonly state: LockState | undefined
  /** Written by this process's user. */
  readonly isOurs: boolean
}

/**
 * Undefined when there is none.
 * @throws Error with one line when it is another user's, who may be running
 */
function read(path: string): Found | undefined {
  let file: number
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES')
      throw new Error(`${path} is another user's: start as that user, or as root`)
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
 * Puts this process's file in the place of one that was left. Many may start at once and all have found that one: who
 * makes the file named after it is its only successor, so nobody's file is ever replaced but a dead one's; where that
 * successor died on its way, the next is named after it in turn. False when the place was taken meanwhile.
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
