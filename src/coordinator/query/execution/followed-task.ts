import type { Split } from '../../../execution/api/fragment.ts'
import type { TaskStatus, TaskUpdate } from '../../../execution/api/task.ts'
import type { StagePlan } from '../../../planner/stage-plan.ts'
import { deferred } from '../../../shared/deferred.ts'
import type { TaskId } from '../../../shared/ids.ts'
import type { RowDigester } from '../../../shared/row-digest.ts'
import type { TaskHub } from '../../scheduler/task-hub.ts'
import type { WorkerClient } from '../../scheduler/worker-client.ts'
import { WorkerLost } from '../../scheduler/worker-error.ts'
import type { WorkerNode } from '../../scheduler/workers.ts'
import { Suspended } from '../suspended.ts'
import type { RunContext } from './run-context.ts'
import { secretsAreGone } from './secrets-are-gone.ts'
import { badEnd, outcomeOf, type TaskOutcome } from './task-outcome.ts'
import { TaskPages, type TaskPagesDeps } from './task-pages.ts'

export interface FollowDeps extends TaskPagesDeps {
  readonly client: WorkerClient
  readonly hub: TaskHub
  /** Absent where digests are switched off. */
  readonly digester: RowDigester | undefined
  /** Whether one more small task may be profiled now, while so many tasks run. */
  readonly profiles: (running: number) => boolean
}

/** One attempt at a stage: a task on a worker. */
export interface TaskAttempt {
  readonly stage: StagePlan
  readonly node: WorkerNode
  readonly taskId: TaskId
  readonly attempt: number
}

/**
 * A task until its whole output is published: one that is created now, or one that is there already.
 *
 *     create / adopt ─► #onStatus ─► #publish ─► #onStatus … ─► #end
 *                          └── lost, refused, failed, aborted ──► #end
 */
export class FollowedTask {
  readonly #deps: FollowDeps
  readonly #run: RunContext
  readonly #task: TaskAttempt
  readonly #pages: TaskPages
  readonly #writes: boolean
  readonly #traceparent: string | undefined
  readonly #outcome = deferred<TaskOutcome>()
  #publishing = false
  #settled = false
  #timer: NodeJS.Timeout | undefined

  constructor(deps: FollowDeps, run: RunContext, task: TaskAttempt) {
    const { stage, node, taskId } = task
    const known = stage.fragment ?? stage.withheld
    if (!known) throw new Error('a worker stage has a fragment')
    this.#deps = deps
    this.#run = run
    this.#task = task
    this.#writes = (stage.fragment?.write ?? stage.withheld?.target) !== undefined
    this.#traceparent = run.spanOf(stage.id)
    this.#pages = new TaskPages({ deps, run, stage: stage.id, streams: known.streams, node, taskId })
  }

  /** Goes on with a task that its worker has; `status` is what the worker says of it. */
  adopt(status: TaskStatus): Promise<TaskOutcome> {
    if (this.#begin()) {
      const update = this.#updateOf(this.#task.stage.splits)
      if (update) this.#offerCut(update)
      this.#onStatus(status)
    }
    return this.#outcome.promise
  }

  create(splits: readonly Split[]): Promise<TaskOutcome> {
    if (!this.#begin()) return this.#outcome.promise
    const { client } = this.#deps
    const { node, taskId } = this.#task
    const update = this.#updateOf(splits)
    if (!update) {
      // Nobody can make it any more.
      this.#end(undefined, secretsAreGone())
      return this.#outcome.promise
    }
    this.#offerCut(update)
    client.createTask(node.url, taskId, update).then(
      (status) => this.#onStatus(status),
      (error: unknown) => {
        // Whether it got there is unknown: the attempt is given up, a task that runs all the same is deleted.
        if (error instanceof WorkerLost) this.#delete()
        this.#end(outcomeOf(error), error)
      },
    )
    return this.#outcome.promise
  }

  /** @returns false when the query has ended meanwhile */
  #begin(): boolean {
    const { signal } = this.#run
    const { node, taskId } = this.#task
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

  /** Undefined when what it takes to make the task is not kept. */
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
      profile: !fragment.estimate.small || this.#deps.profiles(this.#deps.hub.followed()),
      ...limits.forTask(),
      batchAttempts: limits.attempts,
      ...(this.#deps.digester && { digests: true }),
      ...(this.#traceparent === undefined ? {} : { traceparent: this.#traceparent }),
    }
  }

  /** Its batches that have not begun can be dropped; a table gets all rows or none. */
  #offerCut(update: TaskUpdate): void {
    const { stage, node, taskId } = this.#task
    if (update.fragment.write || stage.withheld) return
    this.#run.onRunning(async () => {
      await this.#deps.client.createTask(node.url, taskId, { ...update, dropPendingBatches: true })
    })
  }

  #onStatus(status: TaskStatus): void {
    if (this.#settled || this.#pages.knowsNewer(status)) return
    const { stage, node, taskId } = this.#task
    this.#run.onStats(taskId, status.stats)
    this.#pages.take(status)
    const bad = badEnd(taskId, status)
    if (bad) return this.#end(bad)
    if (!this.#writes) return void this.#publish()
    if (status.state === 'FINISHED') this.#end({ kind: 'done', finished: { taskId, stage: stage.id, node, status } })
  }

  /** Publishes what may be published, one append at a time: tokens go on without gaps. */
  async #publish(): Promise<void> {
    if (this.#publishing || this.#settled) return
    this.#publishing = true
    try {
      for (;;) {
        const { group, last } = this.#pages.next()
        if (!group && !last) break
        await this.#pages.publish(group, last, () => this.#settled)
        if (this.#settled) return
        if (last) return this.#end({ kind: 'done' })
      }
    } catch (error) {
      this.#end(outcomeOf(error), error)
    } finally {
      this.#publishing = false
    }
    const wait = this.#pages.waitMs()
    clearTimeout(this.#timer)
    if (wait !== undefined && !this.#settled) this.#timer = setTimeout(() => void this.#publish(), wait + 1)
  }

  readonly #onAbort = (): void => {
    const { reason } = this.#run.signal as { reason: unknown }
    if (!(reason instanceof Suspended)) this.#delete()
    this.#end(undefined, reason)
  }

  #delete(): void {
    const { node, taskId } = this.#task
    void this.#deps.client.deleteTask(node.url, taskId, true, this.#traceparent).catch(() => {})
  }

  /** @param outcome undefined for an error that is the query's */
  #end(outcome: TaskOutcome | undefined, error?: unknown): void {
    if (this.#settled) return
    const { node, taskId } = this.#task
    this.#settled = true
    clearTimeout(this.#timer)
    this.#deps.hub.forget(node.url, taskId)
    this.#run.signal.removeEventListener('abort', this.#onAbort)
    if (outcome) this.#outcome.resolve(outcome)
    else this.#outcome.reject(error)
  }
}
