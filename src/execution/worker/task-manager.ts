import { join } from 'node:path'
import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import { systemClock, type Clock } from '../../shared/clock.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { TaskId } from '../../shared/ids.ts'
import type { RowDigester } from '../../shared/row-digest.ts'
import type { Service } from '../../shared/service.ts'
import type { TaskStatus, TaskUpdate } from '../api/task.ts'
import type { EnginePool } from '../engine/engine.ts'
import { BATCH_BYTES } from './batches.ts'
import { diskSpaceOf, type DiskSpace } from './disk-space.ts'
import { createEpochGuard, type EpochGuard } from './epoch-guard.ts'
import { createPageStore, type PageStore } from './page-store.ts'
import { restoreTask } from './restored-task.ts'
import { createTask, type TaskDeps, type WorkerTask } from './task.ts'
import { TaskNews } from './task-news.ts'
import type { WorkerEvent } from './worker-events.ts'

export interface TaskManagerOptions {
  /** `<data>/worker-<n>`, absolute. */
  readonly folder: string
  readonly engines: Pick<EnginePool, 'run' | 'stagedIn'>
  readonly catalogs: Catalogs
  readonly digester: RowDigester
  readonly clock?: Clock
  readonly onEvent?: (event: WorkerEvent) => void
  /** If no coordinator is heard for this time, milliseconds, the worker drops all tasks. */
  readonly forgetAfterMs: number
  /** How long the infos of deleted tasks are listed. @default 900_000 */
  readonly listDeletedMs?: number
  readonly limits: TaskManagerLimits
  readonly diskSpace?: (folder: string) => Promise<DiskSpace>
}

interface TaskManagerLimits {
  /** Size that pages are cut at. */
  readonly pageBytes: number
  /** Largest page: one wide row. */
  readonly pageMaxBytes: number
  /** Unacknowledged pages of one query. */
  readonly queryBytes: number
  /** Unacknowledged pages of all queries. */
  readonly totalBytes: number
  /** Bytes of splits in one batch of a streaming fragment. @default 64 MB */
  readonly batchBytes?: number
  /** Attempts at a batch when its engine is lost. @default 4 */
  readonly attempts?: number
}

const ATTEMPTS = 4
const LIST_DELETED_MS = 900_000
const INLINE_BYTES = 64 * 1024
const FLUSH_MS = 500
const HOLD_MS = 50
const WATCH_MS = 1000
/** The largest number of deleted tasks that stay listed, with nothing but their infos. */
const MAX_DELETED = 2000

/** All tasks of a worker. */
export interface TaskManager extends Service {
  readonly epochs: EpochGuard
  /** Notes that a coordinator was heard, so tasks are still wanted. */
  noteContact(): void
  /**
   * Creates a task or adds to it; idempotent.
   * @throws EngineError NOT_FOUND for a task that was deleted, even if the DELETE came before its POST
   * @throws EngineError SERVER_SHUTTING_DOWN while draining
   */
  update(taskId: TaskId, update: TaskUpdate): WorkerTask
  get(taskId: TaskId): WorkerTask | undefined
  /** Ends a task, removes its pages; its final status stays listed for a while. */
  delete(taskId: TaskId, how: 'CANCELED' | 'ABORTED'): Promise<TaskStatus | undefined>
  /** The final status of a task that was deleted lately. */
  deleted(taskId: TaskId): TaskStatus | undefined
  /** Statuses of all tasks, or of those that changed after a version. */
  statuses(since?: number): readonly TaskStatus[]
  version(): number
  /** Resolves once there is something newer than `since`, or the time is over. */
  waitForNews(since: number, millis: number): Promise<void>
  /** Stops accepting new tasks. */
  drain(): void
  usage(): { readonly tasks: number; readonly running: number; readonly pageBytes: number }
}

interface DeletedTask {
  readonly status: TaskStatus
  readonly at: number
  /** Whether an answer has reported the end: then it is not news. */
  readonly isSent: boolean
}

export function createTaskManager(options: TaskManagerOptions): TaskManager {
  return new Tasks(options)
}

class Tasks implements TaskManager {
  readonly epochs: EpochGuard
  readonly #options: TaskManagerOptions
  readonly #clock: Clock
  readonly #pages: PageStore
  readonly #news: TaskNews
  readonly #deps: TaskDeps
  readonly #tasks = new Map<TaskId, WorkerTask>()
  readonly #deleted = new Map<TaskId, DeletedTask>()
  /**
   * Tasks that were deleted before they were created, and when: a POST that is still under way must not create a task
   * that no coordinator would fetch.
   */
  readonly #unmade = new Map<TaskId, number>()
  #heardAt: number
  #draining = false
  #timer: NodeJS.Timeout | undefined
  #started: Promise<void> | undefined
  #stopped: Promise<void> | undefined

  constructor(options: TaskManagerOptions) {
    const { folder, limits, diskSpace, clock = systemClock } = options
    this.#options = options
    this.#clock = clock
    this.#heardAt = clock.monotonicMs()
    this.#news = new TaskNews(clock.now() * 1000)
    this.epochs = createEpochGuard(join(folder, 'epoch'))
    const { queryBytes, totalBytes } = limits
    const pagesFolder = join(folder, 'pages')
    this.#pages = createPageStore({ folder: pagesFolder, queryBytes, totalBytes, ...(diskSpace && { diskSpace }) })
    this.#deps = {
      engines: options.engines,
      catalogs: options.catalogs,
      digester: options.digester,
      pages: this.#pages,
      clock,
      diskSpace: diskSpace ?? diskSpaceOf,
      limits: {
        batchBytes: BATCH_BYTES,
        attempts: ATTEMPTS,
        ...limits,
        inlineBytes: INLINE_BYTES,
        flushMs: FLUSH_MS,
        holdMs: HOLD_MS,
      },
      news: this.#news,
      onEvent: (event) => options.onEvent?.(event),
    }
  }

  noteContact(): void {
    this.#heardAt = this.#clock.monotonicMs()
  }

  update(taskId: TaskId, update: TaskUpdate): WorkerTask {
    const task = this.#tasks.get(taskId) ?? this.#create(taskId, update)
    task.update(update)
    return task
  }

  #create(taskId: TaskId, update: TaskUpdate): WorkerTask {
    if (this.#deleted.has(taskId) || this.#unmade.has(taskId))
      throw new EngineError('NOT_FOUND', `Task ${taskId} was deleted`)
    if (this.#draining) throw new EngineError('SERVER_SHUTTING_DOWN', 'The worker is shutting down', { retry: 'later' })
    const task = createTask(this.#deps, taskId, update)
    this.#tasks.set(taskId, task)
    this.#deps.onEvent({ type: 'taskCreated', taskId, traceparent: update.traceparent })
    return task
  }

  get(taskId: TaskId): WorkerTask | undefined {
    return this.#tasks.get(taskId)
  }

  async delete(taskId: TaskId, how: 'CANCELED' | 'ABORTED'): Promise<TaskStatus | undefined> {
    const task = this.#tasks.get(taskId)
    if (!task) {
      const status = this.deleted(taskId)
      if (!status) this.#unmade.set(taskId, this.#clock.monotonicMs())
      return status
    }
    task.cancel(how)
    // Removed from the list before its pages: no client may be offered a page that is being removed.
    this.#tasks.delete(taskId)
    const last = task.status(Infinity)
    const status: TaskStatus = { deleted: true, ...last, bufferState: 'FINISHED', version: this.#news.next() }
    this.#deleted.set(taskId, { status, at: this.#clock.monotonicMs(), isSent: task.isSent() })
    if (!task.isSent()) this.#news.wake()
    await task
      .drop()
      .catch((error: unknown) => this.#deps.onEvent({ type: 'failedOutside', what: `pages of ${taskId}`, error }))
    return status
  }

  deleted(taskId: TaskId): TaskStatus | undefined {
    return this.#deleted.get(taskId)?.status
  }

  statuses(since?: number): readonly TaskStatus[] {
    const changed: TaskStatus[] = []
    for (const task of this.#tasks.values()) {
      if (since === undefined || (task.version() > since && !task.isQuiet())) changed.push(task.status(since))
    }
    for (const { status, isSent } of this.#deleted.values())
      if (since === undefined || (status.version > since && !isSent)) changed.push(status)
    return changed
  }

  version(): number {
    return this.#news.version
  }

  waitForNews(since: number, millis: number): Promise<void> {
    return this.#news.wait(since, millis)
  }

  drain(): void {
    this.#draining = true
  }

  usage(): { readonly tasks: number; readonly running: number; readonly pageBytes: number } {
    return {
      tasks: this.#tasks.size,
      running: [...this.#tasks.values()].filter((task) => !task.isComplete()).length,
      pageBytes: this.#pages.usage().bytes,
    }
  }

  start(): Promise<void> {
    this.#started ??= (async () => {
      for (const stored of this.#pages.restore()) this.#tasks.set(stored.taskId, restoreTask(this.#deps, stored))
      this.#timer = setInterval(() => this.#watch(), WATCH_MS)
      this.#timer.unref()
    })()
    return this.#started
  }

  stop(): Promise<void> {
    this.#stopped ??= (async () => {
      await this.#started
      this.#draining = true
      clearInterval(this.#timer)
      this.#news.stop()
      // Pages stay on disk: the next process of this worker serves them.
      for (const task of this.#tasks.values()) task.cancel('ABORTED')
    })()
    return this.#stopped
  }

  /** Removes old entries of deleted tasks, and drops all tasks when no coordinator wants them. */
  #watch(): void {
    const { forgetAfterMs, listDeletedMs = LIST_DELETED_MS } = this.#options
    const now = this.#clock.monotonicMs()
    for (const [taskId, { at }] of this.#deleted) {
      if (now - at > listDeletedMs || this.#deleted.size > MAX_DELETED) this.#deleted.delete(taskId)
    }
    for (const [taskId, at] of this.#unmade) {
      if (now - at > listDeletedMs || this.#unmade.size > MAX_DELETED) this.#unmade.delete(taskId)
    }
    if (this.#tasks.size === 0 || now - this.#heardAt < forgetAfterMs) return
    this.#deps.onEvent({ type: 'coordinatorSilent', tasksDropped: this.#tasks.size })
    for (const taskId of this.#tasks.keys()) void this.delete(taskId, 'ABORTED')
  }
}
