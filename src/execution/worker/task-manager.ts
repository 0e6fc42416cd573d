import { join } from 'node:path'
import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import { systemClock, type Clock } from '../../shared/clock.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { TaskId } from '../../shared/ids.ts'
import type { Service } from '../../shared/service.ts'
import type { TaskStatus, TaskUpdate } from '../api/task.ts'
import type { EnginePool } from '../engine/engine.ts'
import { BATCH_BYTES } from './batches.ts'
import { diskSpaceOf, type DiskSpace } from './disk-space.ts'
import { createEpochGuard, type EpochGuard } from './epoch-guard.ts'
import { createPageStore } from './page-store.ts'
import { restoreTask } from './restored-task.ts'
import { createTask, type TaskDeps, type WorkerTask } from './task.ts'
import type { WorkerEvent } from './worker-events.ts'

export interface TaskManagerOptions {
  /** `<data>/worker-<n>`, absolute. */
  readonly folder: string
  readonly engines: Pick<EnginePool, 'run'>
  readonly catalogs: Catalogs
  readonly clock?: Clock
  readonly onEvent?: (event: WorkerEvent) => void
  /** Without a coordinator for so long, all tasks are dropped. @default 600_000 */
  readonly forgetAfterMs?: number
  /** How long the infos of deleted tasks are listed. @default 900_000 */
  readonly listDeletedMs?: number
  readonly limits?: Partial<TaskManagerLimits>
  readonly diskSpace?: (folder: string) => Promise<DiskSpace>
}

export interface TaskManagerLimits {
  /** @default 1 MB */
  readonly pageBytes: number
  /** @default 64 MB */
  readonly pageMaxBytes: number
  /** Unacknowledged pages of one query. @default 1 GB */
  readonly queryBytes: number
  /** Unacknowledged pages of all queries. @default 10 GB */
  readonly totalBytes: number
  /** @default 64 MB */
  readonly batchBytes: number
  /** @default 4 */
  readonly attempts: number
}

const MB = 1024 * 1024
const defaults: TaskManagerLimits = {
  pageBytes: MB,
  pageMaxBytes: 64 * MB,
  queryBytes: 1024 * MB,
  totalBytes: 10 * 1024 * MB,
  batchBytes: BATCH_BYTES,
  attempts: 4,
}
const INLINE_BYTES = 64 * 1024
/** Deleted tasks that are listed on, at most: their infos are all that is left of them. */
const MAX_DELETED = 2000

/** All tasks of a worker. */
export interface TaskManager extends Service {
  readonly epochs: EpochGuard
  /** A coordinator was heard: its tasks are wanted. */
  heard(): void
  /**
   * Creates a task or adds to it; idempotent. A deleted task is not created again.
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
  /** No new tasks from now on. */
  drain(): void
  usage(): { readonly tasks: number; readonly running: number; readonly pageBytes: number }
}

export function createTaskManager(options: TaskManagerOptions): TaskManager {
  const clock = options.clock ?? systemClock
  const limits = { ...defaults, ...options.limits }
  const onEvent = options.onEvent ?? (() => {})
  const forgetAfterMs = options.forgetAfterMs ?? 600_000
  const listDeletedMs = options.listDeletedMs ?? 900_000
  const epochs = createEpochGuard(join(options.folder, 'epoch'))
  const tasks = new Map<TaskId, WorkerTask>()
  const deleted = new Map<TaskId, { readonly status: TaskStatus; readonly at: number }>()
  const waiting = new Set<() => void>()
  // Versions of a restarted worker must not repeat those of its former process: they begin at its time.
  let version = clock.now() * 1000
  let heardAt = clock.monotonicMs()
  let draining = false
  let timer: NodeJS.Timeout | undefined
  let started: Promise<void> | undefined
  let stopped: Promise<void> | undefined

  const pages = createPageStore({
    folder: join(options.folder, 'pages'),
    queryBytes: limits.queryBytes,
    totalBytes: limits.totalBytes,
    ...(options.diskSpace && { diskSpace: options.diskSpace }),
  })

  const deps: TaskDeps = {
    engines: options.engines,
    catalogs: options.catalogs,
    pages,
    clock,
    diskSpace: options.diskSpace ?? diskSpaceOf,
    limits: { ...limits, inlineBytes: INLINE_BYTES, flushMs: 500, holdMs: 50 },
    nextVersion() {
      version++
      if (waiting.size > 0) {
        // All that changes in one turn is told in one answer.
        const woken = [...waiting]
        waiting.clear()
        setImmediate(() => {
          for (const resolve of woken) resolve()
        })
      }
      return version
    },
    onEvent,
  }

  function watch(): void {
    const now = clock.monotonicMs()
    for (const [taskId, { at }] of deleted) {
      if (now - at > listDeletedMs || deleted.size > MAX_DELETED) deleted.delete(taskId)
    }
    if (tasks.size === 0 || now - heardAt < forgetAfterMs) return
    onEvent({ type: 'coordinatorSilent', tasksDropped: tasks.size })
    for (const taskId of tasks.keys()) void remove(taskId, 'ABORTED')
  }

  async function remove(taskId: TaskId, how: 'CANCELED' | 'ABORTED'): Promise<TaskStatus | undefined> {
    const task = tasks.get(taskId)
    if (!task) return deleted.get(taskId)?.status
    task.cancel(how)
    // Out of the list before its pages go: nobody may be offered a page that is being removed.
    tasks.delete(taskId)
    const status: TaskStatus = {
      ...task.status(Infinity),
      bufferState: 'FINISHED',
      deleted: true,
      version: deps.nextVersion(),
    }
    deleted.set(taskId, { status, at: clock.monotonicMs() })
    await task.drop().catch((error: unknown) => onEvent({ type: 'failedOutside', what: `pages of ${taskId}`, error }))
    return status
  }

  return {
    epochs,
    heard() {
      heardAt = clock.monotonicMs()
    },

    update(taskId, update) {
      let task = tasks.get(taskId)
      if (!task) {
        if (deleted.has(taskId)) throw new EngineError('NOT_FOUND', `Task ${taskId} was deleted`)
        if (draining) throw new EngineError('SERVER_SHUTTING_DOWN', 'The worker is shutting down')
        task = createTask(deps, taskId, update)
        tasks.set(taskId, task)
        onEvent({ type: 'taskCreated', taskId, traceparent: update.traceparent })
      }
      task.update(update)
      return task
    },

    get: (taskId) => tasks.get(taskId),
    delete: remove,
    deleted: (taskId) => deleted.get(taskId)?.status,

    statuses(since) {
      const changed: TaskStatus[] = []
      for (const task of tasks.values()) {
        if (since === undefined || task.version() > since) changed.push(task.status(since))
      }
      for (const { status } of deleted.values()) if (since === undefined || status.version > since) changed.push(status)
      return changed
    },

    version: () => version,

    waitForNews(since, millis) {
      if (version > since || millis <= 0) return Promise.resolve()
      return new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timeout)
          waiting.delete(done)
          resolve()
        }
        const timeout = setTimeout(done, millis)
        waiting.add(done)
      })
    },

    drain() {
      draining = true
    },

    usage: () => ({
      tasks: tasks.size,
      running: [...tasks.values()].filter((task) => !task.isComplete()).length,
      pageBytes: pages.usage().bytes,
    }),

    start() {
      started ??= (async () => {
        for (const stored of pages.restore()) tasks.set(stored.taskId, restoreTask(deps, stored))
        timer = setInterval(watch, 1000)
        timer.unref()
      })()
      return started
    },

    stop() {
      stopped ??= (async () => {
        await started
        draining = true
        clearInterval(timer)
        for (const resolve of waiting) resolve()
        // Pages stay on disk: the next process of this worker serves them on.
        for (const task of tasks.values()) task.cancel('ABORTED')
      })()
      return stopped
    },
  }
}
