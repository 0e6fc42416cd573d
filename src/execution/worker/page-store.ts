import { createHash } from 'node:crypto'
import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { appendFile, readFile, rename, rm, writeFile, rmdir } from 'node:fs/promises'
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
import { UnwrittenTasks } from './unwritten-tasks.ts'

export interface PageStoreOptions extends PageRoomLimits {
  /** `<data>/worker-<n>/pages`, absolute. */
  readonly folder: string
  /** Called before each page is written. */
  readonly diskSpace?: (folder: string) => Promise<DiskSpace>
}

/**
 * Result pages on disk: `<folder>/<queryId>/<stage>.<task>/<token>.json`. A page is written, closed, then listed, and
 * never changed; acknowledged pages are removed. A small output stays in memory until `keep` is called.
 */
export interface PageStore {
  /** Reads the pages that earlier processes left; to be called once, before any other method. */
  restore(): readonly StoredTask[]
  begin(taskId: TaskId, line: Extract<IndexLine, { type: 'task' }>): void
  /** Puts all of the task on the disk from now on: a restart serves it. */
  keep(taskId: TaskId): void
  /**
   * Writes a page under its name, without an entry in the index: `list` adds the entry.
   * @throws EngineError OUT_OF_SPILL_SPACE when the disk has too little room left
   */
  write(taskId: TaskId, token: number, bytes: Buffer): Promise<void>
  /** Names a written page in the index; from now on a restart serves it, if the task is kept. */
  list(taskId: TaskId, page: ClosedPage): Promise<void>
  end(taskId: TaskId, line: Extract<IndexLine, { type: 'end' }>): void
  /**
   * A page's bytes.
   * @throws EngineError PAGE_TRANSPORT_ERROR when they are gone or (at the first use after a restart) differ from those
   * listed
   */
  read(taskId: TaskId, page: ClosedPage): Promise<Buffer>
  /** Removes one page: acknowledged, or written and never listed. */
  remove(taskId: TaskId, token: number, bytes: number): Promise<void>
  removeTask(taskId: TaskId, bytes: number): Promise<void>
  /** Pending while the query, or all queries together, hold more than their limit. */
  room(queryId: QueryId): void | Promise<void>
  /** Bytes on disk or in memory. */
  usage(): { readonly bytes: number; readonly queries: number }
}

/** A page up to this size is written synchronously: the thread pool would cost more than the write. */
const WRITE_AT_ONCE_BYTES = 64 * 1024
const RECENT_BYTES = 8 * 1024 * 1024

export function createPageStore(options: PageStoreOptions): PageStore {
  return new DiskPages(options)
}

class DiskPages implements PageStore {
  readonly #folders: PageFolders
  readonly #room: PageRoom
  readonly #diskSpace: NonNullable<PageStoreOptions['diskSpace']>
  /** Pages whose bytes this process has not written or checked itself. */
  readonly #unchecked = new Set<string>()
  readonly #recent = createRecentPages(RECENT_BYTES)
  readonly #unwritten = new UnwrittenTasks()

  constructor(options: PageStoreOptions) {
    this.#folders = new PageFolders(options.folder)
    this.#room = new PageRoom(options)
    this.#diskSpace = options.diskSpace ?? diskSpaceOf
    mkdirSync(this.#folders.root, { recursive: true })
  }

  restore(): readonly StoredTask[] {
    return this.#folders.restore(({ path, queryId, bytes }) => {
      this.#unchecked.add(path)
      this.#room.count(queryId, bytes)
    })
  }

  begin(taskId: TaskId, line: Extract<IndexLine, { type: 'task' }>): void {
    this.#unwritten.begin(taskId, line)
  }

  keep(taskId: TaskId): void {
    const task = this.#unwritten.take(taskId)
    if (!task) return
    mkdirSync(this.#folders.ofTask(taskId), { recursive: true })
    for (const [token, bytes] of task.pages) {
      const path = this.#folders.page(taskId, token)
      writeAtOnce(path, bytes)
      this.#recent.add(path, bytes)
    }
    appendFileSync(this.#folders.index(taskId), task.lines.map(lineOf).join(''))
  }

  async write(taskId: TaskId, token: number, bytes: Buffer): Promise<void> {
    if (this.#unwritten.add(taskId, token, bytes)) return this.#room.count(queryOf(taskId), bytes.length)
    if (isBelowFloor(await this.#diskSpace(this.#folders.root))) {
      throw new EngineError('OUT_OF_SPILL_SPACE', 'The disk of the worker has too little room left for result pages')
    }
    this.keep(taskId)
    const path = this.#folders.page(taskId, token)
    await writeWhole(path, bytes)
    this.#room.count(queryOf(taskId), bytes.length)
    this.#recent.add(path, bytes)
  }

  async list(taskId: TaskId, page: ClosedPage): Promise<void> {
    const noted = { type: 'page', ...page } as const
    if (this.#unwritten.note(taskId, noted)) return
    const line = lineOf(noted)
    if (page.bytes <= WRITE_AT_ONCE_BYTES) appendFileSync(this.#folders.index(taskId), line)
    else await appendFile(this.#folders.index(taskId), line)
  }

  end(taskId: TaskId, line: Extract<IndexLine, { type: 'end' }>): void {
    if (this.#unwritten.note(taskId, line)) return
    try {
      appendFileSync(this.#folders.index(taskId), lineOf(line))
    } catch (error) {
      // A DELETE removed it meanwhile: no client will ask for it.
      if (!hasCode(error, 'ENOENT')) throw error
    }
  }

  async read(taskId: TaskId, page: ClosedPage): Promise<Buffer> {
    const path = this.#folders.page(taskId, page.token)
    const kept = this.#unwritten.page(taskId, page.token) ?? this.#recent.get(path)
    if (kept) return kept
    const bytes = await readFile(path).catch((cause: unknown) => {
      throw new EngineError('PAGE_TRANSPORT_ERROR', `Page ${page.token} of task ${taskId} is lost`, { cause })
    })
    if (this.#unchecked.has(path)) {
      if (createHash('sha256').update(bytes).digest('hex') !== page.sha256) {
        throw new EngineError('PAGE_TRANSPORT_ERROR', `Page ${page.token} of task ${taskId} is damaged`)
      }
      this.#unchecked.delete(path)
    }
    return bytes
  }

  async remove(taskId: TaskId, token: number, bytes: number): Promise<void> {
    const path = this.#folders.page(taskId, token)
    this.#unchecked.delete(path)
    this.#recent.remove(path)
    this.#room.count(queryOf(taskId), -bytes)
    if (this.#unwritten.has(taskId)) return this.#unwritten.removePage(taskId, token)
    await rm(path, { force: true })
  }

  async removeTask(taskId: TaskId, bytes: number): Promise<void> {
    const folder = this.#folders.ofTask(taskId)
    this.#room.count(queryOf(taskId), -bytes)
    if (this.#unwritten.take(taskId)) return
    await rm(folder, { recursive: true, force: true })
    // The query's folder goes with its last task.
    await rmdir(dirname(folder)).catch(() => {
      // Other tasks of the query still have their folders.
    })
  }

  room(queryId: QueryId): void | Promise<void> {
    return this.#room.wait(queryId)
  }

  usage(): { readonly bytes: number; readonly queries: number } {
    return this.#room.usage
  }
}

/** Writes a file so that its name has all of the bytes or does not exist. */
async function writeWhole(path: string, bytes: Buffer): Promise<void> {
  if (bytes.length <= WRITE_AT_ONCE_BYTES) return writeAtOnce(path, bytes)
  await writeFile(freshOf(path), bytes)
  await rename(freshOf(path), path)
}

function writeAtOnce(path: string, bytes: Buffer): void {
  writeFileSync(freshOf(path), bytes)
  renameSync(freshOf(path), path)
}

function freshOf(path: string): string {
  return `${path}.tmp`
}

function lineOf(line: IndexLine): string {
  return `${JSON.stringify(line)}\n`
}

function queryOf(taskId: TaskId): QueryId {
  return splitTaskId(taskId)!.queryId
}
