import { randomUUID } from 'node:crypto'
import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import { EngineError, failureOf, toFailure, type Failure } from '../../shared/engine-error.ts'
import { splitTaskId, type TaskId } from '../../shared/ids.ts'
import type { Clock } from '../../shared/clock.ts'
import type { ClosedPage, PipelineStats, TaskState, TaskStatus, TaskUpdate } from '../api/task.ts'
import { EngineLost, type EnginePool } from '../engine/engine.ts'
import type { BatchFigures } from './batch-figures.ts'
import { BatchPinned, runBatch, type BatchLimits, type BatchRun } from './batch-run.ts'
import { planBatches, type Batch } from './batches.ts'
import type { DiskSpace } from './disk-space.ts'
import { createOutputBuffer } from './output-buffer.ts'
import { addPipelines } from './pipelines.ts'
import type { PageStore } from './page-store.ts'
import { taskStats } from './task-figures.ts'
import { runWrite, type Written } from './write-run.ts'
import { readPage } from './read-page.ts'
import { wireFailure } from './wire-failure.ts'
import type { WorkerEvent } from './worker-events.ts'

export interface TaskDeps {
  readonly engines: Pick<EnginePool, 'run'>
  readonly catalogs: Catalogs
  readonly pages: PageStore
  readonly clock: Clock
  /** Asked before and while a table is written. */
  readonly diskSpace: (folder: string) => Promise<DiskSpace>
  readonly limits: BatchLimits & { readonly batchBytes: number }
  /** The worker's next version: every change that a coordinator may want to know has one. */
  nextVersion(): number
  onEvent(event: WorkerEvent): void
}

/** PLANNED ─► RUNNING ─► FLUSHING ─► FINISHED;  every live state ─► CANCELED, ABORTED, FAILED */
export interface WorkerTask {
  readonly taskId: TaskId
  readonly version: () => number
  state(): TaskState
  /** Idempotent: splits and flags that are known already change nothing. */
  update(update: TaskUpdate): void
  /** @param since pages listed after this version; all when undefined */
  status(since?: number): TaskStatus
  /** Ends it CANCELED or ABORTED, unless it has ended; resolves once its engine is told. */
  cancel(state: 'CANCELED' | 'ABORTED'): void
  /** Resolves with the final state. */
  readonly ended: Promise<TaskState>
  /**
   * A listed page's bytes; undefined when there is no such page (yet).
   * @throws EngineError PAGE_TRANSPORT_ERROR when it is lost
   */
  page(token: number): Promise<{ readonly page: ClosedPage; readonly bytes: Buffer } | undefined>
  isAcknowledged(token: number): boolean
  /** True once no further page will come. */
  isComplete(): boolean
  waitForPage(token: number, millis: number): Promise<void>
  acknowledge(before: number): Promise<void>
  /** Removes all pages and ends the output; a live task is canceled first. */
  drop(): Promise<void>
}

const LIVE: readonly TaskState[] = ['PLANNED', 'RUNNING', 'FLUSHING']

export function createTask(deps: TaskDeps, taskId: TaskId, first: TaskUpdate): WorkerTask {
  const { clock, pages } = deps
  const { queryId } = splitTaskId(taskId)!
  const { fragment, attempt, traceparent } = first
  const instanceId = randomUUID()
  const createdAt = clock.now()
  const createdMonotonic = clock.monotonicMs()
  const buffer = createOutputBuffer()
  const skipped = new Set(first.doneBatches ?? [])
  const done: BatchFigures[] = []
  let pipelines: readonly PipelineStats[] = []
  let latest = first
  let batches: readonly Batch[] = []
  /** Batches begun or skipped so far: they run in order, one at a time. */
  let next = 0
  let running:
    { readonly batch: Batch; readonly run: Pick<BatchRun, 'cancel'> & { readonly done: Promise<unknown> } } | undefined
  let written: Written | undefined
  let state: TaskState = 'PLANNED'
  let startedAt: number | undefined
  let endedAt: number | undefined
  let failure: Failure | undefined
  let failedBatch: number | undefined
  let heartbeatAt = createdAt
  let version = deps.nextVersion()
  let resolveEnded!: (state: TaskState) => void
  const ended = new Promise<TaskState>((resolve) => (resolveEnded = resolve))

  pages.begin(taskId, { type: 'task', instanceId, attempt, createTime: new Date(createdAt).toISOString() })

  const isLive = (): boolean => LIVE.includes(state)

  function end(final: 'FINISHED' | 'CANCELED' | 'ABORTED' | 'FAILED'): void {
    if (!isLive()) return
    state = final
    endedAt = clock.now()
    buffer.close(final === 'FINISHED' ? 'ended' : final === 'FAILED' ? 'failed' : 'dropped')
    version = deps.nextVersion()
    const { pages: _, ...status } = statusNow(Infinity)
    pages.end(taskId, { type: 'end', status })
    deps.onEvent({ type: 'taskEnded', status: statusNow(Infinity), traceparent })
    resolveEnded(final)
  }

  function fail(error: unknown, batch: number): void {
    if (!isLive()) return
    failedBatch = batch
    if (error instanceof EngineLost || error instanceof BatchPinned) {
      failure = failureOf('REMOTE_TASK_ERROR', `Task ${taskId} lost its engine: ${error.message}`)
    } else {
      failure = toFailure(error)
      if (!(error instanceof EngineError)) deps.onEvent({ type: 'failedOutside', what: `task ${taskId}`, error })
    }
    end('FAILED')
  }

  /** Runs what can run; called whenever splits came or a batch ended. */
  function advance(): void {
    if (!isLive() || running) return
    while (skipped.has(next) && next < batches.length) next++
    const batch = batches[next]
    if (batch && !latest.dropPendingBatches) return begin(batch)
    if (!latest.noMoreSplits && !latest.dropPendingBatches) return
    state = 'FLUSHING'
    end('FINISHED')
  }

  function begin(batch: Batch): void {
    next++
    const readyAt = clock.now()
    startedAt ??= readyAt
    if (state === 'PLANNED') {
      state = 'RUNNING'
      version = deps.nextVersion()
    }
    const remaining =
      first.remainingMillis === undefined
        ? undefined
        : Math.max(0, first.remainingMillis - (clock.monotonicMs() - createdMonotonic))
    const batchInput = { taskId, fragment, batch, profile: first.profile, remainingMillis: remaining, readyAt }
    const tell = (figures: BatchFigures | undefined, error: unknown): void =>
      deps.onEvent({
        type: 'batchEnded',
        taskId,
        batch: batch.batch,
        catalogs: [...new Set(batch.splits.map((split) => split.catalog))],
        splits: batch.splits.length,
        traceparent,
        startedAt: figures?.startedAt ?? readyAt,
        endedAt: clock.now(),
        figures,
        error,
      })
    const finished = (figures: BatchFigures): void => {
      running = undefined
      tell(figures, undefined)
      if (!isLive()) return
      done.push(figures)
      if (figures.pipelines) pipelines = addPipelines(pipelines, figures.pipelines)
      version = deps.nextVersion()
      advance()
    }
    const broken = (error: unknown): void => {
      running = undefined
      tell(undefined, error)
      fail(error, batch.batch)
    }
    if (fragment.write) {
      const run = runWrite({ ...deps, now: clock.now }, batchInput)
      running = { batch, run }
      run.done.then(({ figures, written: files }) => {
        written = files
        finished(figures)
      }, broken)
      return
    }
    const run = runBatch(
      {
        ...deps,
        now: clock.now,
        sink: {
          write: (token, bytes) => pages.write(taskId, token, bytes),
          remove: (token, bytes) => pages.remove(taskId, token, bytes),
          room: () => pages.room(queryId),
          async list(page) {
            // Ended meanwhile by a cancel: nobody will ask for the page.
            if (!isLive()) return pages.remove(taskId, page.token, page.bytes)
            await pages.list(taskId, page)
            version = deps.nextVersion()
            buffer.list(page, version)
            deps.onEvent({ type: 'pageListed', taskId, rows: page.rows, bytes: page.bytes })
          },
        },
      },
      { ...batchInput, firstToken: buffer.listed() },
    )
    running = { batch, run }
    run.done.then(finished, broken)
  }

  function statusNow(since: number | undefined): TaskStatus {
    const known = latest.dropPendingBatches ? next : batches.length
    return {
      taskId,
      instanceId,
      version,
      state,
      lastHeartbeat: new Date(heartbeatAt).toISOString(),
      attempt,
      bufferState: buffer.state(),
      noMoreSplits: latest.noMoreSplits ? fragment.scans.map((_, scan) => String(scan)) : [],
      pages: buffer.since(since),
      batchesDone: [...skipped, ...done.map(({ batch }) => batch)],
      batchesTotal: known,
      pagesSent: buffer.acknowledged(),
      bufferedPages: buffer.listed() - buffer.acknowledged(),
      ...(failedBatch !== undefined && { failedBatch }),
      ...(failure && { failure: wireFailure(failure) }),
      ...(written && state === 'FINISHED' && { written: { rows: written.rows, files: [...written.files] } }),
      stats: taskStats({
        createdAt,
        startedAt,
        endedAt,
        now: clock.now(),
        batchesTotal: Math.max(0, known - skipped.size),
        batchesRunning: running && isLive() ? 1 : 0,
        done,
        outputPositions: written?.rows ?? buffer.rows(),
        outputBytes: written?.files.reduce((sum, file) => sum + file.bytes, 0) ?? buffer.bytes(),
        profile: first.profile,
        pipelines,
      }),
    }
  }

  const task: WorkerTask = {
    taskId,
    version: () => version,
    state: () => state,
    ended,
    update(update) {
      heartbeatAt = clock.now()
      if (!isLive()) return
      const more = update.splits.length > latest.splits.length
      latest = {
        ...latest,
        splits: more ? update.splits : latest.splits,
        noMoreSplits: latest.noMoreSplits || update.noMoreSplits,
        dropPendingBatches: (latest.dropPendingBatches ?? false) || (update.dropPendingBatches ?? false),
      }
      batches = planBatches(fragment, latest.splits, latest.noMoreSplits, deps.limits.batchBytes)
      advance()
    },
    status(since) {
      heartbeatAt = clock.now()
      return statusNow(since)
    },
    cancel(final) {
      end(final)
      running?.run.cancel()
    },
    page: (token) => readPage(deps, taskId, buffer.page(token)),
    isAcknowledged: (token) => token < buffer.acknowledged(),
    isComplete: () => !isLive(),
    waitForPage: (token, millis) => buffer.wait(token, millis),
    async acknowledge(before) {
      await Promise.all(buffer.acknowledge(before).map(({ token, bytes }) => pages.remove(taskId, token, bytes)))
    },
    async drop() {
      task.cancel('CANCELED')
      await running?.run.done.catch(() => undefined)
      const bytes = buffer.bufferedBytes()
      buffer.acknowledge(buffer.listed())
      buffer.close('dropped')
      version = deps.nextVersion()
      await pages.removeTask(taskId, bytes)
    },
  }
  return task
}
