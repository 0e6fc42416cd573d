import { randomUUID } from 'node:crypto'
import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import { EngineError, toFailure } from '../../shared/engine-error.ts'
import { splitTaskId, type TaskId } from '../../shared/ids.ts'
import type { Clock } from '../../shared/clock.ts'
import type { RowDigester } from '../../shared/row-digest.ts'
import { readsForRules } from '../api/fragment.ts'
import {
  isTaskTerminal,
  type ClosedPage,
  type PipelineStats,
  type TaskFailure,
  type TaskState,
  type TaskStatus,
  type TaskUpdate,
} from '../api/task.ts'
import { EngineLost, type EngineBound, type EngineBounds, type EnginePool, type EngineUsage } from '../engine/engine.ts'
import type { BatchFigures } from './batch-figures.ts'
import { batchBytes } from './scan-input.ts'
import { BatchPinned, runBatch, type BatchLimits, type BatchRunInput } from './batch-run.ts'
import { planBatches, type Batch } from './batches.ts'
import type { DiskSpace } from './disk-space.ts'
import { addPipelines } from './pipelines.ts'
import type { PageStore } from './page-store.ts'
import type { PageSink } from './page-writer.ts'
import { NOTHING_USED, taskStats } from './task-figures.ts'
import type { TaskNews } from './task-news.ts'
import { TaskOutput } from './task-output.ts'
import { runWrite, type Written } from './write-run.ts'
import { lostFailure, wireFailure } from './wire-failure.ts'
import type { WorkerEvent } from './worker-events.ts'

export interface TaskDeps {
  readonly engines: Pick<EnginePool, 'run' | 'stagedIn'>
  readonly catalogs: Catalogs
  readonly pages: PageStore
  readonly clock: Clock
  /** Called before and while a table is written. */
  readonly diskSpace: (folder: string) => Promise<DiskSpace>
  readonly digester: RowDigester
  readonly limits: BatchLimits & { readonly batchBytes: number }
  readonly news: Pick<TaskNews, 'next' | 'wake'>
  onEvent(event: WorkerEvent): void
}

/** PLANNED ─► RUNNING ─► FLUSHING ─► FINISHED;  every live state ─► CANCELED, ABORTED, FAILED */
export interface WorkerTask {
  readonly taskId: TaskId
  version(): number
  state(): TaskState
  /** Idempotent: splits and flags that are known already change nothing. */
  update(update: TaskUpdate): void
  /** @param since pages listed after this version; all when undefined */
  status(since?: number): TaskStatus
  /**
   * Ends the task CANCELED or ABORTED, unless it has ended, and cancels its running batch. Returns before the batch has
   * stopped.
   */
  cancel(state: 'CANCELED' | 'ABORTED'): void
  /** Resolves with the final state when the task ends. */
  readonly ended: Promise<TaskState>
  /**
   * A listed page's bytes; undefined when there is no such page (yet).
   * @throws EngineError PAGE_TRANSPORT_ERROR when the page is lost
   */
  page(token: number): Promise<{ readonly page: ClosedPage; readonly bytes: Buffer } | undefined>
  isAcknowledged(token: number): boolean
  /** True once no further page will come. */
  isComplete(): boolean
  waitForPage(token: number, millis: number): Promise<void>
  acknowledge(before: number): Promise<void>
  /** Notes that an answer carried everything: the task's end, and the bytes of its pages. No effect after `keep`. */
  send(): void
  isSent(): boolean
  /**
   * Whether the answer of the task's POST reports on it, or has reported everything: the news then leave the task out.
   */
  isQuiet(): boolean
  /**
   * Notes that the coordinator will come back for the task: it has received the current status. From here on the news
   * report the task, and it survives a restart of the worker.
   */
  keep(): void
  /** Removes all pages and ends the output; a live task is canceled first. */
  drop(): Promise<void>
}

export function createTask(deps: TaskDeps, taskId: TaskId, first: TaskUpdate): WorkerTask {
  return new Task(deps, taskId, first)
}

/** How often the usage of a running batch becomes news, milliseconds. */
const TELL_USAGE_MS = 500

interface RunningBatch {
  readonly batch: Batch
  readonly done: Promise<{ readonly figures: BatchFigures; readonly written?: Written }>
  cancel(): void
}

/**
 * A task that this process runs: its splits become batches, which run in order, one at a time.
 *
 *     update ─► #advance ─► #begin ─► #finished ─► #advance … ─► #end
 *                              └────► #broken ──────────────────► #end
 */
class Task implements WorkerTask {
  readonly taskId: TaskId
  readonly ended: Promise<TaskState>
  readonly #deps: TaskDeps
  readonly #first: TaskUpdate
  readonly #instanceId = randomUUID()
  readonly #createdAt: number
  readonly #createdMonotonic: number
  readonly #output: TaskOutput
  /** Batches that must not run (again). */
  readonly #skipped: ReadonlySet<number>
  readonly #done: BatchFigures[] = []
  /** The usage of the running batch, or of the batch that failed. */
  #unfinished: EngineUsage = NOTHING_USED
  #usageReportedAt: number
  #resolveEnded!: (state: TaskState) => void
  #pipelines: readonly PipelineStats[] = []
  /** The fields that updates change. */
  #latest: Pick<TaskUpdate, 'splits' | 'noMoreSplits' | 'dropPendingBatches'>
  #batches: readonly Batch[] = []
  /** Batches begun or skipped so far. */
  #next = 0
  #running: RunningBatch | undefined
  #written: Written | undefined
  #state: TaskState = 'PLANNED'
  #startedAt: number | undefined
  #endedAt: number | undefined
  #failure: TaskFailure | undefined
  #failedBatch: number | undefined
  #heartbeatAt: number
  #version: number
  /** True while the answer of a small task's POST waits for the task's end: the news do not report the task before. */
  #quiet: boolean

  constructor(deps: TaskDeps, taskId: TaskId, first: TaskUpdate) {
    const { clock, pages } = deps
    this.taskId = taskId
    this.#deps = deps
    this.#first = first
    this.#latest = first
    this.#createdAt = clock.now()
    this.#createdMonotonic = clock.monotonicMs()
    this.#usageReportedAt = this.#createdMonotonic
    this.#heartbeatAt = this.#createdAt
    this.#output = new TaskOutput(deps, taskId)
    this.#skipped = new Set(first.doneBatches ?? [])
    this.#version = deps.news.next()
    this.#quiet = first.fragment.estimate.small
    this.ended = new Promise<TaskState>((resolve) => (this.#resolveEnded = resolve))
    pages.begin(taskId, {
      type: 'task',
      instanceId: this.#instanceId,
      attempt: first.attempt,
      createTime: new Date(this.#createdAt).toISOString(),
    })
  }

  // --- state for the coordinator -----------------------------------------------------------------------------------
  version(): number {
    return this.#version
  }

  state(): TaskState {
    return this.#state
  }

  isComplete(): boolean {
    return isTaskTerminal(this.#state)
  }

  update(update: TaskUpdate): void {
    this.#heartbeatAt = this.#deps.clock.now()
    if (this.isComplete()) return
    const before = this.#latest
    const more = update.splits.length > before.splits.length
    this.#latest = {
      splits: more ? update.splits : before.splits,
      noMoreSplits: before.noMoreSplits || update.noMoreSplits,
      dropPendingBatches: (before.dropPendingBatches ?? false) || (update.dropPendingBatches ?? false),
    }
    const { splits, noMoreSplits } = this.#latest
    this.#batches = planBatches(this.#first.fragment, splits, noMoreSplits, this.#deps.limits.batchBytes)
    this.#advance()
  }

  status(since?: number): TaskStatus {
    this.#heartbeatAt = this.#deps.clock.now()
    return this.#statusNow(since)
  }

  cancel(final: 'CANCELED' | 'ABORTED'): void {
    this.#end(final)
    this.#running?.cancel()
  }

  page(token: number): Promise<{ readonly page: ClosedPage; readonly bytes: Buffer } | undefined> {
    return this.#output.page(token)
  }

  isAcknowledged(token: number): boolean {
    return this.#output.isAcknowledged(token)
  }

  waitForPage(token: number, millis: number): Promise<void> {
    return this.#output.buffer.wait(token, millis)
  }

  acknowledge(before: number): Promise<void> {
    return this.#output.acknowledge(before)
  }

  send(): void {
    if (this.#quiet) this.#output.buffer.send()
  }

  isSent(): boolean {
    return this.#output.buffer.isSent()
  }

  isQuiet(): boolean {
    return this.#quiet
  }

  keep(): void {
    this.#deps.pages.keep(this.taskId)
    this.#quiet = false
  }

  async drop(): Promise<void> {
    this.cancel('CANCELED')
    await this.#running?.done.catch(() => undefined)
    this.#changed()
    await this.#output.drop()
  }

  // --- batches -------------------------------------------------------------------------------------------------
  /** Starts the next batch if one can run; called whenever splits came or a batch ended. */
  #advance(): void {
    if (this.isComplete() || this.#running) return
    while (this.#skipped.has(this.#next) && this.#next < this.#batches.length) this.#next++
    const batch = this.#batches[this.#next]
    if (batch && !this.#latest.dropPendingBatches) return this.#begin(batch)
    if (!this.#latest.noMoreSplits && !this.#latest.dropPendingBatches) return
    this.#state = 'FLUSHING'
    this.#end('FINISHED')
  }

  #begin(batch: Batch): void {
    const readyAt = this.#deps.clock.now()
    this.#next++
    this.#startedAt ??= readyAt
    if (this.#state === 'PLANNED') {
      // With the splits of the POST, the answer of that POST reports the state.
      this.#state = 'RUNNING'
      this.#version = this.#deps.news.next()
    }
    const unread = this.#scanBeyond(batch)
    if (unread) return this.#broken(batch, new EngineError(unread.errorName, unread.message))
    const running = this.#run(batch, readyAt)
    this.#running = running
    running.done.then(
      ({ figures, written }) => {
        this.#running = undefined
        this.#report(batch, readyAt, figures, undefined)
        this.#written = written
        this.#finished(figures)
      },
      (error: unknown) => {
        this.#running = undefined
        this.#report(batch, readyAt, undefined, error)
        this.#broken(batch, error)
      },
    )
  }

  #profiles(): boolean {
    return this.#first.profile && !readsForRules(this.#first.fragment)
  }

  /** @param readyAt when the batch could have started, wall clock milliseconds */
  #run(batch: Batch, readyAt: number): RunningBatch {
    const { clock } = this.#deps
    const { fragment, digests = false, remainingMillis: given, batchAttempts = Infinity } = this.#first
    const remainingMillis =
      given === undefined ? undefined : Math.max(0, given - (clock.monotonicMs() - this.#createdMonotonic))
    const input: Omit<BatchRunInput, 'firstToken'> = {
      taskId: this.taskId,
      fragment,
      batch,
      profile: this.#profiles(),
      digests,
      remainingMillis,
      bounds: this.#engineBounds(),
      onUsage: (usage) => this.#used(usage),
      readyAt,
    }
    const { limits } = this.#deps
    const attempts = Math.min(limits.attempts, batchAttempts)
    const deps = { now: clock.now, ...this.#deps, limits: { ...limits, attempts } }
    if (fragment.write) return { batch, ...runWrite(deps, input) }
    const firstToken = this.#output.buffer.listed()
    const { done, cancel } = runBatch({ sink: this.#sink(), ...deps }, { firstToken, ...input })
    return { batch, done: done.then((figures) => ({ figures })), cancel }
  }

  /** The bounds of the next batch: the task's bounds minus the usage of earlier batches. */
  #engineBounds(): EngineBounds | undefined {
    const { cpu, memory } = this.#first.bounds ?? {}
    if (!cpu && !memory) return undefined
    const spent = this.#done.reduce((sum, { cpuNanos }) => sum + cpuNanos, 0)
    return { ...(cpu && { cpu: { ...cpu, most: cpu.most - spent } }), ...(memory && { memory }) }
  }

  /** @returns the bound, when the batch would read more than the rest of the bound */
  #scanBeyond(batch: Batch): EngineBound | undefined {
    const { scan } = this.#first.bounds ?? {}
    if (!scan) return undefined
    const read = this.#done.reduce((sum, { rawInputBytes }) => sum + rawInputBytes, 0)
    return read + batchBytes(this.#first.fragment, batch) > scan.most ? scan : undefined
  }

  #sink(): PageSink {
    const { pages, onEvent } = this.#deps
    const { taskId } = this
    const { queryId } = splitTaskId(taskId)!
    return {
      write: (token, bytes) => pages.write(taskId, token, bytes),
      remove: (token, bytes) => pages.remove(taskId, token, bytes),
      room: () => pages.room(queryId),
      list: async (page) => {
        // A cancel ended the task meanwhile: the coordinator will not ask for the page.
        if (this.isComplete()) return pages.remove(taskId, page.token, page.bytes)
        await pages.list(taskId, page)
        this.#output.buffer.list(page, this.#changed())
        onEvent({ type: 'pageListed', taskId, rows: page.rows, bytes: page.bytes })
      },
    }
  }

  #report(batch: Batch, readyAt: number, figures: BatchFigures | undefined, error: unknown): void {
    this.#deps.onEvent({
      type: 'batchEnded',
      taskId: this.taskId,
      batch: batch.batch,
      catalogs: [...new Set(batch.splits.map((split) => split.catalog))],
      splits: batch.splits.length,
      traceparent: this.#first.traceparent,
      startedAt: figures?.startedAt ?? readyAt,
      endedAt: this.#deps.clock.now(),
      figures,
      error,
    })
  }

  /** Reports usage while the batch runs: the coordinator may let other statements wait for this usage. */
  #used(usage: EngineUsage): void {
    if (this.isComplete()) return
    this.#unfinished = usage
    const now = this.#deps.clock.monotonicMs()
    if (now - this.#usageReportedAt < TELL_USAGE_MS) return
    this.#usageReportedAt = now
    this.#changed()
  }

  #finished(figures: BatchFigures): void {
    if (this.isComplete()) return
    this.#unfinished = NOTHING_USED
    this.#done.push(figures)
    if (figures.pipelines) this.#pipelines = addPipelines(this.#pipelines, figures.pipelines)
    this.#changed()
    this.#advance()
  }

  #broken({ batch }: Batch, error: unknown): void {
    if (this.isComplete()) return
    this.#failedBatch = batch
    if (error instanceof EngineLost || error instanceof BatchPinned) {
      this.#failure = lostFailure(`Task ${this.taskId} lost its engine: ${error.message}`)
    } else {
      this.#failure = wireFailure(toFailure(error))
      if (!(error instanceof EngineError))
        this.#deps.onEvent({ type: 'failedOutside', what: `task ${this.taskId}`, error })
    }
    this.#end('FAILED')
  }

  #end(final: 'FINISHED' | 'CANCELED' | 'ABORTED' | 'FAILED'): void {
    if (this.isComplete()) return
    this.#state = final
    this.#endedAt = this.#deps.clock.now()
    this.#output.buffer.close(final === 'FINISHED' ? 'ended' : final === 'FAILED' ? 'failed' : 'dropped')
    this.#changed()
    const status = this.#statusNow(Infinity)
    const { pages: _, ...line } = status
    this.#deps.pages.end(this.taskId, { type: 'end', status: line })
    this.#deps.onEvent({ type: 'taskEnded', status, traceparent: this.#first.traceparent })
    this.#resolveEnded(final)
  }

  // --- reports -----------------------------------------------------------------------------------------------
  #changed(): number {
    this.#version = this.#deps.news.next()
    if (!this.#quiet) this.#deps.news.wake()
    return this.#version
  }

  #statusNow(since: number | undefined): TaskStatus {
    const { fragment, attempt } = this.#first
    const { buffer } = this.#output
    const batchesTotal = this.#batchesTotal()
    return {
      taskId: this.taskId,
      instanceId: this.#instanceId,
      version: this.#version,
      state: this.#state,
      lastHeartbeat: new Date(this.#heartbeatAt).toISOString(),
      attempt,
      bufferState: buffer.state(),
      noMoreSplits: this.#latest.noMoreSplits ? fragment.scans.map((_, scan) => String(scan)) : [],
      pages: buffer.since(since),
      batchesDone: [...this.#skipped, ...this.#done.map(({ batch }) => batch)],
      batchesTotal,
      pagesSent: buffer.sent(),
      bufferedPages: buffer.listed() - buffer.sent(),
      ...(this.#failedBatch !== undefined && { failedBatch: this.#failedBatch }),
      ...(this.#failure && { failure: this.#failure }),
      ...this.#writtenNow(),
      stats: this.#statsNow(batchesTotal),
    }
  }

  #batchesTotal(): number {
    return this.#latest.dropPendingBatches ? this.#next : this.#batches.length
  }

  #writtenNow(): Pick<TaskStatus, 'written'> {
    const written = this.#written
    if (!written || this.#state !== 'FINISHED') return {}
    return { written: { rows: written.rows, files: [...written.files] } }
  }

  #statsNow(batchesTotal: number): TaskStatus['stats'] {
    const { buffer } = this.#output
    const written = this.#written
    return taskStats({
      createdAt: this.#createdAt,
      startedAt: this.#startedAt,
      endedAt: this.#endedAt,
      now: this.#deps.clock.now(),
      batchesTotal: Math.max(0, batchesTotal - this.#skipped.size),
      batchesRunning: this.#running && !this.isComplete() ? 1 : 0,
      done: this.#done,
      unfinished: this.#unfinished,
      outputPositions: written?.rows ?? buffer.rows(),
      outputBytes: written?.files.reduce((sum, file) => sum + file.bytes, 0) ?? buffer.bytes(),
      profile: this.#profiles(),
      pipelines: this.#pipelines,
    })
  }
}
