import { createHash } from 'node:crypto'
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { appendFile, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { splitTaskId, taskId as makeTaskId, isQueryId, type QueryId, type TaskId } from '../../shared/ids.ts'
import type { ClosedPage } from '../api/task.ts'
import { diskSpaceOf, isBelowFloor, type DiskSpace } from './disk-space.ts'
import { parseIndex, type IndexLine } from './page-index.ts'
import { createRecentPages } from './recent-pages.ts'

export interface PageStoreOptions {
  /** `<data>/worker-<n>/pages`, absolute. */
  readonly folder: string
  /** Pages of one query that wait to be acknowledged; above it that query's engines stop. */
  readonly queryBytes: number
  /** The same for all queries together. */
  readonly totalBytes: number
  /** Asked before each page is written. */
  readonly diskSpace?: (folder: string) => Promise<DiskSpace>
}

/** A task found on disk at the start. */
export interface StoredTask {
  readonly taskId: TaskId
  readonly lines: readonly IndexLine[]
  /** Token of the first page that is still there: those before it were acknowledged. */
  readonly firstPresent: number | undefined
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
  const { folder } = options
  const diskSpace = options.diskSpace ?? diskSpaceOf
  const bytesByQuery = new Map<QueryId, number>()
  let allBytes = 0
  let waiting: { queryId: QueryId; resolve: () => void }[] = []
  /** Pages whose bytes this process has not written or checked itself. */
  const unchecked = new Set<string>()
  const recent = createRecentPages(RECENT_BYTES)

  mkdirSync(folder, { recursive: true })

  function folderOf(id: TaskId): string {
    const { queryId, stage, task } = splitTaskId(id)!
    return join(folder, queryId, `${stage}.${task}`)
  }
  const pathOf = (id: TaskId, token: number): string => join(folderOf(id), `${token}.json`)
  const indexOf = (id: TaskId): string => join(folderOf(id), 'index.jsonl')

  const hasRoom = (queryId: QueryId): boolean =>
    (bytesByQuery.get(queryId) ?? 0) < options.queryBytes && allBytes < options.totalBytes

  function count(queryId: QueryId, bytes: number): void {
    allBytes += bytes
    const left = (bytesByQuery.get(queryId) ?? 0) + bytes
    if (left > 0) bytesByQuery.set(queryId, left)
    else bytesByQuery.delete(queryId)
    if (bytes >= 0) return
    const still: typeof waiting = []
    for (const waiter of waiting) {
      if (hasRoom(waiter.queryId)) waiter.resolve()
      else still.push(waiter)
    }
    waiting = still
  }

  return {
    restore() {
      const found: StoredTask[] = []
      for (const queryId of readdirSync(folder)) {
        if (!isQueryId(queryId)) continue
        for (const name of readdirSync(join(folder, queryId))) {
          const match = /^(\d+)\.(\d+)$/.exec(name)
          if (!match) continue
          const id = makeTaskId(queryId, Number(match[1]), Number(match[2]))
          const lines = readIndex(indexOf(id))
          const present = new Set(readdirSync(folderOf(id)))
          if (lines[0]?.type !== 'task') {
            rmSync(folderOf(id), { recursive: true, force: true })
            continue
          }
          let firstPresent: number | undefined
          const listed = new Set<string>(['index.jsonl'])
          for (const line of lines) {
            if (line.type !== 'page' || !present.has(`${line.token}.json`)) continue
            firstPresent ??= line.token
            listed.add(`${line.token}.json`)
            unchecked.add(pathOf(id, line.token))
            count(queryId, line.bytes)
          }
          for (const file of present) if (!listed.has(file)) rmSync(join(folderOf(id), file), { force: true })
          found.push({ taskId: id, lines, firstPresent })
        }
      }
      return found
    },

    begin(taskId, line) {
      mkdirSync(folderOf(taskId), { recursive: true })
      appendFileSync(indexOf(taskId), `${JSON.stringify(line)}\n`)
    },

    async write(taskId, token, bytes) {
      if (isBelowFloor(await diskSpace(folder))) {
        throw new EngineError('OUT_OF_SPILL_SPACE', 'The disk of the worker has too little room left for result pages')
      }
      const path = pathOf(taskId, token)
      if (bytes.length <= WRITE_AT_ONCE_BYTES) {
        writeFileSync(`${path}.tmp`, bytes)
        renameSync(`${path}.tmp`, path)
      } else {
        await writeFile(`${path}.tmp`, bytes)
        await rename(`${path}.tmp`, path)
      }
      count(splitTaskId(taskId)!.queryId, bytes.length)
      recent.add(path, bytes)
    },

    async list(taskId, page) {
      const line = `${JSON.stringify({ type: 'page', ...page } satisfies IndexLine)}\n`
      if (page.bytes <= WRITE_AT_ONCE_BYTES) appendFileSync(indexOf(taskId), line)
      else await appendFile(indexOf(taskId), line)
    },

    end(taskId, line) {
      try {
        appendFileSync(indexOf(taskId), `${JSON.stringify(line)}\n`)
      } catch (error) {
        // Removed meanwhile by a DELETE: nobody will ask.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      }
    },

    async read(taskId, page) {
      const path = pathOf(taskId, page.token)
      const kept = recent.get(path)
      if (kept) return kept
      const bytes = await readFile(path).catch((cause: NodeJS.ErrnoException) => {
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
      const path = pathOf(taskId, token)
      unchecked.delete(path)
      recent.remove(path)
      count(splitTaskId(taskId)!.queryId, -bytes)
      await rm(path, { force: true })
    },

    async removeTask(taskId, bytes) {
      count(splitTaskId(taskId)!.queryId, -bytes)
      await rm(folderOf(taskId), { recursive: true, force: true })
      // The query's folder goes with its last task.
      const parent = join(folderOf(taskId), '..')
      try {
        rmdirSync(parent)
      } catch {
        // Other tasks of the query still have theirs.
      }
    },

    room(queryId) {
      if (hasRoom(queryId)) return
      return new Promise((resolve) => waiting.push({ queryId, resolve }))
    },

    usage: () => ({ bytes: allBytes, queries: bytesByQuery.size }),
  }
}

function readIndex(path: string): IndexLine[] {
  try {
    return parseIndex(readFileSync(path, 'utf8'))
  } catch {
    return []
  }
}
