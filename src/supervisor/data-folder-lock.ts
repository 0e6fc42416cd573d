import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeDataFolder } from './data-folder.ts'
import { identify, isRunning, signal, waitUntilGone, type ProcessIdentity } from './process-identity.ts'

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
  let before: LockState | undefined
  while (!create(path, { supervisor, children: [], writer: undefined })) {
    const found = read(path)
    if (found && isRunning(found.supervisor)) {
      throw new Error(`Another Quipu (process ${found.supervisor.pid}) already runs on ${dataDir}`)
    }
    if (!takeAway(path)) continue
    before = found
  }
  await Promise.all((before?.children ?? []).map(endOrphan))
  let writer = before?.writer
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

/** Whether a supervisor lives that has this role on a data folder. */
export function isHeld(dataDir: string, role: LockRole): boolean {
  const found = read(join(dataDir, FILES[role]))
  return found !== undefined && isRunning(found.supervisor)
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
  writeFileSync(own, `${JSON.stringify(state)}\n`, { mode: 0o600 })
  return own
}

function read(path: string): LockState | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as LockState
  } catch {
    return undefined
  }
}

/**
 * Removes a file that was judged dead. Two starts at once may both judge so: the later must not remove the file the
 * earlier has made meanwhile, so what was moved away is looked at again and put back if it lives.
 */
function takeAway(path: string): boolean {
  const aside = `${path}.dead.${process.pid}`
  try {
    renameSync(path, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true
    throw error
  }
  const moved = read(aside)
  if (moved && isRunning(moved.supervisor)) {
    renameSync(aside, path)
    return false
  }
  rmSync(aside, { force: true })
  return true
}

async function endOrphan(child: ProcessIdentity): Promise<void> {
  if (await waitUntilGone(child, ORPHANS_END_MS)) return
  signal(child.pid, 'SIGKILL')
  await waitUntilGone(child, 5_000)
}
