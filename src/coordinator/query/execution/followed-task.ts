import { setTimeout as sleep } from 'node:timers/promises'
import type { Split } from '../../../execution/api/fragment.ts'
import { isTaskTerminal, type TaskStatus, type TaskUpdate } from '../../../execution/api/task.ts'
import type { Stage } from '../../../planner/query-plan.ts'
import { deferred } from '../../../shared/deferred.ts'
import type { TaskId } from '../../../shared/ids.ts'
import { WorkerLost } from '../../scheduler/worker-error.ts'
import type { WorkerNode } from '../../scheduler/workers.ts'
import type { RunningWork } from './ongoing-work.ts'
import type { ExecutionDeps } from './execution-deps.ts'
import type { RunContext } from './run-context.ts'
import { secretsNotKept } from '../secrets/secrets-not-kept.ts'
import { badEnd, lost, outcomeOf, type TaskOutcome } from './task-outcome.ts'
import { TaskPages } from './task-pages.ts'

export type FollowDeps = Pick<ExecutionDeps, 'log' | 'clock' | 'client' | 'hub' | 'digester' | 'profiles'>

/** One attempt at a stage: a task on a worker. */
export interface TaskAttempt {
  readonly stage: Stage
  readonly node: WorkerNode
  readonly taskId: TaskId
  readonly attempt: number
}

const ASK_AGAIN_MS = 250
/** If this number of answers of a worker lack pages, the task counts as lost. */
const MOST_ANSWERS = 20

/**
 * Follows a task to its end: a task that is created now, or one that exists already. If its pages are the result, they
 * are published, and the end comes once all of them are.
 *
 *     create / adopt ─► #onStatus ─► #publish ─► #onStatus … ─► #end
 *                          ├── finished, without a result ────► #end
 *                          └── lost, refused, failed, aborted ─► #end
 */
export class FollowedTask {
  readonly #deps: FollowDeps
  readonly #run: RunContext
  readonly #task: TaskAttempt
  /** Publishes the pages of a task whose pages are the result. */
  readonly #pages: TaskPages | undefined
  readonly #traceparent: string | undefined
  readonly #outcome = deferred<TaskOutcome>()
  /** The highest version that a status had. */
  #version = -Infinity
  #publishing = false
  #settled = false
  /** The answer to the task's POST came, or the task was adopted: from here on the worker's news include every page. */
  #isKnown = false
  #asking = false
  #timer: NodeJS.Timeout | undefined
  #forgetWork: () => void = () => {}

  constructor(deps: FollowDeps, run: RunContext, task: TaskAttempt) {
    const { stage, node, taskId } = task
    const known = stage.fragment ?? stage.withheld
    if (!known) throw new Error('a worker stage has a fragment')
    this.#deps = deps
    this.#run = run
    this.#task = task
    this.#traceparent = run.spanOf(stage.id)
    this.#pages =
      stage.output === 'client'
        ? new TaskPages({ deps, run, stage: stage.id, streams: known.streams, node, taskId })
        : undefined
  }

  /** Continues with a task that its worker has; `status` is the worker's state of it. */
  adopt(status: TaskStatus): Promise<TaskOutcome> {
    if (this.#begin(this.#updateOf(this.#task.stage.splits))) {
      this.#isKnown = true
      this.#onStatus(status)
      // News sent before this coordinator listened are lost.
      if (!isTaskTerminal(status.state)) void this.#askForAll()
    }
    return this.#outcome.promise
  }

  create(splits: readonly Split[]): Promise<TaskOutcome> {
    const { client } = this.#deps
    const { node, taskId } = this.#task
    const update = this.#updateOf(splits)
    if (!this.#begin(update)) return this.#outcome.promise
    if (!update) {
      // Without the secrets the task cannot be created again.
      this.#end(undefined, secretsNotKept())
      return this.#outcome.promise
    }
    client.createTask(node.url, taskId, update).then(
      (status) => {
        this.#isKnown = true
        this.#onStatus(status)
      },
      (error: unknown) => {
        // It is unknown whether the request arrived: the attempt is given up, and the task is deleted in case it runs.
        if (error instanceof WorkerLost) this.#delete()
        this.#end(outcomeOf(error), error)
      },
    )
    return this.#outcome.promise
  }

  /**
   * Registers the task as work of the query, and listens to its news.
   * @returns false when the query has ended meanwhile
   */
  #begin(update: TaskUpdate | undefined): boolean {
    const { signal } = this.#run
    const { node, taskId } = this.#task
    const batches = update && this.#batchesOf(update)
    const work = { outlivesCoordinator: true, cancel: () => this.#delete(), ...(batches && { batches }) }
    this.#forgetWork = this.#run.onWork(work)
    if (signal.aborted) {
      this.#onAbort()
      return false
    }
    signal.addEventListener('abort', this.#onAbort)
    this.#deps.hub.listen(node.url, taskId, {
      onStatus: (status) => this.#onStatus(status),
      onLost: (error) => this.#end(outcomeOf(error), error),
    })
    return true
  }

  /** The request that creates the task; undefined when the data that it needs is not kept. */
  #updateOf(splits: readonly Split[]): TaskUpdate | undefined {
    const { queryId, user, startTimeMillis, limits } = this.#run
    const { stage, attempt } = this.#task
    const { fragment } = stage
    if (!fragment) return undefined
    return {
      session: { queryId, user, startTimeMillis },
      fragment,
      splits: [...splits],
      noMoreSplits: true,
      outputBuffers: { buffers: ['0'] },
      attempt,
      profile: stage.output === 'none' || !fragment.estimate.small || this.#deps.profiles(this.#deps.hub.followed()),
      ...limits.forTask(),
      batchAttempts: limits.attempts,
      ...(this.#deps.digester && { digests: true }),
      ...(this.#traceparent === undefined ? {} : { traceparent: this.#traceparent }),
    }
  }

  /**
   * The batches of the task that may be dropped before they begin. None for writes, because a table gets all rows or
   * none, and none where the figures of the whole run are wanted.
   */
  #batchesOf(update: TaskUpdate): RunningWork['batches'] {
    const { stage, node, taskId } = this.#task
    if (stage.output === 'table' || stage.output === 'none' || stage.withheld) return undefined
    const dropPending = async (): Promise<void> => {
      await this.#deps.client.createTask(node.url, taskId, { ...update, dropPendingBatches: true })
    }
    return { stage: stage.id, dropPending }
  }

  #onStatus(status: TaskStatus): void {
    if (this.#settled) return
    const { stage, node, taskId } = this.#task
    const isNewest = status.version >= this.#version
    if (isNewest) this.#version = status.version
    this.#pages?.take(status, isNewest)
    if (isNewest) {
      this.#run.onStats(taskId, status.stats)
      const bad = badEnd(taskId, status)
      if (bad) return this.#end(bad)
    }
    if (this.#pages) {
      if (this.#isKnown && this.#pages.lacksPages()) void this.#askForAll()
      return void this.#publish(this.#pages)
    }
    if (stage.output === 'none') this.#dropPages(status)
    if (isNewest && status.state === 'FINISHED')
      this.#end({ kind: 'done', finished: { taskId, stage: stage.id, node, status } })
  }

  /** Acknowledges the pages of a task whose rows nobody reads, so that the worker can delete them. */
  #dropPages({ pages }: TaskStatus): void {
    const { node, taskId } = this.#task
    const last = pages.at(-1)
    if (last) void this.#deps.client.acknowledge(node.url, taskId, last.token + 1).catch(() => {})
  }

  /** Asks the worker for the task with all its pages, until no page is missing here. */
  async #askForAll(): Promise<void> {
    if (this.#asking) return
    this.#asking = true
    for (let answers = 0; !this.#settled; await sleep(ASK_AGAIN_MS)) {
      const status = await this.#askOnce()
      if (!status) continue
      this.#onStatus(status)
      if (!this.#pages?.lacksPages()) break
      if (++answers === MOST_ANSWERS)
        this.#end(lost(`The worker does not list all pages of task ${status.taskId}`, 'pages_lost'))
    }
    this.#asking = false
  }

  /**
   * The task as its worker has it; undefined while the worker does not answer, or once this object has ended the task.
   */
  async #askOnce(): Promise<TaskStatus | undefined> {
    const { node, taskId } = this.#task
    try {
      const status = await this.#deps.client.getTask(node.url, taskId)
      if (!status) this.#end(lost(`Worker ${node.url} has no task ${taskId}`, 'worker_lost'))
      return status
    } catch (error) {
      // If the worker is silent for too long, its news feed ends the task.
      if (!(error instanceof WorkerLost)) this.#end(outcomeOf(error), error)
      return undefined
    }
  }

  /** Publishes the pages that may be published, one append at a time: tokens have no gaps. */
  async #publish(pages: TaskPages): Promise<void> {
    if (this.#publishing || this.#settled) return
    this.#publishing = true
    try {
      for (;;) {
        const { group, last } = pages.next()
        if (!group && !last) break
        await pages.publish(group, last, () => this.#settled)
        if (this.#settled) return
        if (last) return this.#end({ kind: 'done' })
      }
    } catch (error) {
      this.#end(outcomeOf(error), error)
    } finally {
      this.#publishing = false
    }
    const wait = pages.waitMs()
    clearTimeout(this.#timer)
    if (wait !== undefined && !this.#settled) this.#timer = setTimeout(() => void this.#publish(pages), wait + 1)
  }

  readonly #onAbort = (): void => {
    const { reason } = this.#run.signal as { reason: unknown }
    this.#end(undefined, reason)
  }

  #delete(): void {
    const { node, taskId } = this.#task
    void this.#deps.client.deleteTask(node.url, taskId, true, this.#traceparent).catch(() => {})
  }

  /** @param outcome undefined when the error is the query's, not the task's */
  #end(outcome: TaskOutcome | undefined, error?: unknown): void {
    if (this.#settled) return
    const { node, taskId } = this.#task
    this.#settled = true
    this.#forgetWork()
    clearTimeout(this.#timer)
    this.#deps.hub.forget(node.url, taskId)
    this.#run.signal.removeEventListener('abort', this.#onAbort)
    if (outcome) this.#outcome.resolve(outcome)
    else this.#outcome.reject(error)
  }
}
