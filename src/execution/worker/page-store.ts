import { createHash } from 'node:crypto'
import { appendFileSync, mkdirSync, renameSync, rmdirSync, writeFileSync } from 'node:fs'
import { appendFile, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { splitTaskId, type QueryId, type TaskId } from '../../shared/ids.ts'
import { hasCode } from '../../shared/node-error.ts'
import type { ClosedPage } from '../api/task.ts'
import { diskSpaceOf, isBelowFloor, type DiskSpace } from './disk-space.ts'
import { PageFolders, type StoredTask } from './page-folders.ts'
import type { IndexLine } from './page-index.ts'
import { PageRoom, type PageRoomLimits } from './page-room.ts'
import { createRecentPages } from './recent-pages.ts'

export interface PageStoreOptions extends PageRoomLimits {
  /** `<data>/worker-<n>/pages`, absolute. */
  readonly folder: string
  /** Asked before each page is written. */
  readonly diskSpace?: (folder: string) => Promise<DiskSpace>
}

/**
 * Result pages on disk: `<folder>/<queryId>/<stage>.<task>/<token>.json`. A page is written, closed, then listed, and
 * never changed; acknowledged pages are removed.
 */
export interface PageStore {
  /** What earlier processes left; to be called once, before anything else. */
  restore(): readonly StoredTask[]
  /** Begins a task's folder. */
  begin(taskId: TaskId, line: Extract<IndexLine, { type: 'task' }>): void
  /**
   * Writes a page under its name. It is not in the index yet: `list` puts it there.
   * @throws EngineError OUT_OF_SPILL_SPACE when the disk has too little room left
   */
  write(taskId: TaskId, token: number, bytes: Buffer): Promise<void>
  /** Names a written page in the index; from now on a restart serves it. */
  list(taskId: TaskId, page: ClosedPage): Promise<void>
  end(taskId: TaskId, line: Extract<IndexLine, { type: 'end' }>): void
  /**
   * A page's bytes.
   * @throws EngineError PAGE_TRANSPORT_ERROR when they are gone or (first use after a restart) not those listed
   */
  read(taskId: TaskId, page: ClosedPage): Promise<Buffer>
  /** Removes one page: acknowledged, or written and never listed. */
  remove(taskId: TaskId, token: number, bytes: number): Promise<void>
  removeTask(taskId: TaskId, bytes: number): Promise<void>
  /** Pending while the query, or all queries together, hold more than they may. */
  room(queryId: QueryId): void | Promise<void>
  /** Bytes on disk. */
  usage(): { readonly bytes: number; readonly queries: number }
}

/** A page this small is written at once: the thread pool would cost more than the write. */
const WRITE_AT_ONCE_BYTES = 64 * 1024
const RECENT_BYTES = 8 * 1024 * 1024

export function createPageStore(options: PageStoreOptions): PageStore {
  const { diskSpace = diskSpaceOf } = options
  const folders = new PageFolders(options.folder)
  const room = new PageRoom(options)
  /** Pages whose bytes this process has not written or checked itself. */
  const unchecked = new Set<string>()
  const recent = createRecentPages(RECENT_BYTES)

  mkdirSync(folders.root, { recursive: true })

  return {
    restore: () =>
      folders.restore(({ path, queryId, bytes }) => {
        unchecked.add(path)
        room.count(queryId, bytes)
      }),

    begin(taskId, line) {
      mkdirSync(folders.ofTask(taskId), { recursive: true })
      appendFileSync(folders.index(taskId), `${JSON.stringify(line)}\n`)
    },

    async write(taskId, token, bytes) {
      if (isBelowFloor(await diskSpace(folders.root))) {
        throw new EngineError('OUT_OF_SPILL_SPACE', 'The disk of the worker has too little room left for result pages')
      }
      const path = folders.page(taskId, token)
      await writeWhole(path, bytes)
      room.count(queryOf(taskId), bytes.length)
      recent.add(path, bytes)
    },

    async list(taskId, page) {
      const line = `${JSON.stringify({ type: 'page', ...page } satisfies IndexLine)}\n`
      if (page.bytes <= WRITE_AT_ONCE_BYTES) appendFileSync(folders.index(taskId), line)
      else await appendFile(folders.index(taskId), line)
    },

    end(taskId, line) {
      try {
        appendFileSync(folders.index(taskId), `${JSON.stringify(line)}\n`)
      } catch (error) {
        // Removed meanwhile by a DELETE: nobody will ask.
        if (!hasCode(error, 'ENOENT')) throw error
      }
    },

    async read(taskId, page) {
      const path = folders.page(taskId, page.token)
      const kept = recent.get(path)
      if (kept) return kept
      const bytes = await readFile(path).catch((cause: unknown) => {
        throw new EngineError('PAGE_TRANSPORT_ERROR', `Page ${page.token} of task ${taskId} is lost`, { cause })
      })
      if (unchecked.has(path)) {
        if (createHash('sha256').update(bytes).digest('hex') !== page.sha256) {
          throw new EngineError('PAGE_TRANSPORT_ERROR', `Page ${page.token} of task ${taskId} is damaged`)
        }
        unchecked.delete(path)
      }
      return bytes
    },

    async remove(taskId, token, bytes) {
      const path = folders.page(taskId, token)
      unchecked.delete(path)
      recent.remove(path)
      room.count(queryOf(taskId), -bytes)
      await rm(path, { force: true })
    },

    async removeTask(taskId, bytes) {
      const folder = folders.ofTask(taskId)
      room.count(queryOf(taskId), -bytes)
      await rm(folder, { recursive: true, force: true })
      // The query's folder goes with its last task.
      try {
        rmdirSync(dirname(folder))
      } catch {
        // Other tasks of the query still have theirs.
      }
    },

    room: (queryId) => room.wait(queryId),
    usage: () => room.usage,
  }
}

/** Under its name there are all of the bytes, or none. */
async function writeWhole(path: string, bytes: Buffer): Promise<void> {
  const fresh = `${path}.tmp`
  if (bytes.length <= WRITE_AT_ONCE_BYTES) {
    writeFileSync(fresh, bytes)
    renameSync(fresh, path)
  } else {
    await writeFile(fresh, bytes)
    await rename(fresh, path)
  }
}

function queryOf(taskId: TaskId): QueryId {
  return splitTaskId(taskId)!.queryId
}
