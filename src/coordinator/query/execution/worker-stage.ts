import type { Split } from '../../../execution/api/fragment.ts'
import type { TaskStats, TaskStatus, TaskUpdate } from '../../../execution/api/task.ts'
import type { EventLog } from '../../../events/event-log.ts'
import type { Clock } from '../../../shared/clock.ts'
import { EngineError, failureOf, type Failure } from '../../../shared/engine-error.ts'
import { taskId as makeTaskId } from '../../../shared/ids.ts'
import type { StagePlan } from '../../../planner/stage-plan.ts'
import type { TaskHub } from '../../scheduler/task-hub.ts'
import { StaleEpoch, WorkerUnreachable, type WorkerClient } from '../../scheduler/worker-client.ts'
import type { WorkerDirectory, WorkerNode } from '../../scheduler/workers.ts'
import type { QueryCommand } from '../decider.ts'
import type { QueryAggregate } from '../query-aggregate.ts'
import { isTaskTerminal, type TaskRecord } from '../state.ts'
import { Suspended } from '../suspended.ts'
import type { RunContext } from './run-context.ts'
import { PageGone, TaskPages } from './task-pages.ts'

export interface WorkerStageDeps {
  readonly log: Pick<EventLog, 'keepPages'>
  readonly clock: Clock
  readonly client: WorkerClient
  readonly hub: TaskHub
  readonly workers: WorkerDirectory
  readonly maxAttempts: number
  /** How long a query waits for a worker to be there, milliseconds. */
  readonly workerWaitMs: number
  readonly limits: { readonly queryRunMs: number }
}

/** A task whose rows were written, at its end: nothing of it is published or recorded yet. */
export interface FinishedTask {
  readonly taskId: string
  readonly stage: number
  readonly node: Pick<WorkerNode, 'nodeId' | 'url'>
  readonly status: TaskStatus
}

/**
 * Stage 1 on one worker and stage 0's relay: creates the task, follows its news, publishes its pages, tries it again
 * elsewhere while nothing of it is published. Resolves when the whole result is published; of a stage that writes, when
 * its task has ended, with that task: its end is the caller's to record.
 * @throws EngineError | the task's failure as EngineError
 */
export async function runWorkerStage(
  deps: WorkerStageDeps,
  run: RunContext,
  stage: StagePlan,
  plan: QueryCommand | undefined,
): Promise<FinishedTask | undefined> {
  let lost: { readonly taskId: string; readonly reason: string } | undefined
  let failures = 0
  const adopted = openTask(run, stage)
  if (adopted) {
    const outcome = await adoptTask(deps, run, stage, adopted)
    lost = await settle(run, adopted.taskId, outcome)
    if (!lost) return finishedTask(outcome)
    failures++
  }
  // Each recovery numbers on from the next thousand: no coordinator reuses an id that another gave out unseen.
  const firstNumber = recoveries(run.aggregate) * 1000
  for (let number = firstNumber; ; number++) {
    if (!stage.fragment) throw secretsAreGone()
    const node = await chooseWorker(deps, run.signal)
    const splits = await run.splitsOf(stage)
    const taskId = makeTaskId(run.queryId, stage.id, number)
    const create: QueryCommand = {
      type: 'CreateTask',
      data: {
        taskId,
        stage: stage.id,
        nodeId: node.nodeId,
        nodeUrl: node.url,
        splits: stage.splits.length,
        attempt: failures,
        ...(lost ? { retryOf: lost.taskId, retryReason: lost.reason } : {}),
      },
    }
    const retry: QueryCommand[] = lost
      ? [{ type: 'RetryTask', data: { taskId: lost.taskId, newTaskId: taskId, reason: lost.reason } }]
      : []
    // Not waited for: the task's POST goes out beside the append. A task that the log does not know is deleted at adoption.
    const begun = number === firstNumber && plan ? [plan, ...retry, create] : [...retry, create]
    const [first] = await Promise.all([
      followTask(deps, run, stage, { node, taskId, attempt: failures }, { splits }),
      run.record(begun),
    ])
    const task = openTask(run, stage)
    // Part of its output is the result already: only the pages on its worker's disk can complete it.
    const outcome = first.kind === 'lost' && isPinned(run) && task ? await adoptTask(deps, run, stage, task) : first
    lost = await settle(run, taskId, outcome)
    if (!lost) return finishedTask(outcome)
    if (++failures >= deps.maxAttempts && outcome.kind === 'lost') throw engineError(outcome.failure)
  }
}

/** Records how a task ended badly. Undefined when the stage is done. @throws EngineError when it cannot be tried again */
async function settle(
  run: RunContext,
  taskId: string,
  outcome: TaskOutcome,
): Promise<{ taskId: string; reason: string } | undefined> {
  if (outcome.kind === 'done') return undefined
  const pinned = isPinned(run)
  const { failure, stats } = outcome
  await run.record([{ type: 'FailTask', data: { taskId, failure, ...(stats ? { stats } : {}) } }])
  if (outcome.kind === 'failed') throw engineError(outcome.failure)
  if (pinned)
    throw new EngineError(
      'REMOTE_TASK_FAILED',
      `Task ${taskId} was lost after part of its result was published: ${outcome.failure.message}`,
    )
  return { taskId, reason: outcome.reason }
}

function finishedTask(outcome: TaskOutcome): FinishedTask | undefined {
  return outcome.kind === 'done' ? outcome.finished : undefined
}

function isPinned(run: RunContext): boolean {
  return run.aggregate.intended.kind !== 'NONE' && run.aggregate.intended.pages.length > 0
}

/** The stage's task that the log has no end of: another coordinator created it. */
function openTask(run: RunContext, stage: StagePlan): TaskRecord | undefined {
  const query = run.aggregate.intended
  if (query.kind === 'NONE') return undefined
  return [...query.tasks.values()].findLast((task) => task.stage === stage.id && !isTaskTerminal(task.state))
}

function recoveries(aggregate: QueryAggregate): number {
  return aggregate.intended.kind === 'NONE' ? 0 : aggregate.intended.recoveries
}

/** Goes on with a task that runs, or ran, on its worker: nothing it did is done again. */
async function adoptTask(
  deps: WorkerStageDeps,
  run: RunContext,
  stage: StagePlan,
  task: TaskRecord,
): Promise<TaskOutcome> {
  const { taskId, attempt } = task
  const unreachable = (message: string): TaskOutcome => ({
    kind: 'lost',
    failure: failureOf('REMOTE_HOST_GONE', message),
    reason: 'worker_lost',
  })
  for (let tries = 0; ; tries++) {
    const node = deps.workers.byId(task.nodeId) ?? { nodeId: task.nodeId, url: task.nodeUrl }
    try {
      const status = await deps.client.getTask(node.url, task.taskId)
      if (!status) return unreachable(`Worker ${node.url} has no task ${task.taskId}`)
      return await followTask(deps, run, stage, { node, taskId, attempt }, { adopted: status })
    } catch (error) {
      run.signal.throwIfAborted()
      if (error instanceof StaleEpoch || !(error instanceof WorkerUnreachable)) throw error
      // It may be starting again: its pages lie on its disk.
      if (tries >= ADOPTION_TRIES) return unreachable(error.message)
      await new Promise((resolve) => setTimeout(resolve, ADOPTION_PAUSE_MS))
    }
  }
}

const ADOPTION_TRIES = 12
const ADOPTION_PAUSE_MS = 250

type TaskOutcome =
  | { readonly kind: 'done'; readonly finished?: FinishedTask }
  | { readonly kind: 'failed'; readonly failure: Failure; readonly stats?: TaskStats }
  | { readonly kind: 'lost'; readonly failure: Failure; readonly reason: string; readonly stats?: TaskStats }

/** Follows a task until its whole output is published: one it creates, or one that is there already. */
function followTask(
  deps: WorkerStageDeps,
  run: RunContext,
  stage: StagePlan,
  { node, taskId, attempt }: { readonly node: WorkerNode; readonly taskId: string; readonly attempt: number },
  from: { readonly adopted: TaskStatus } | { readonly splits: readonly Split[] },
): Promise<TaskOutcome> {
  const { client, hub } = deps
  const { fragment, withheld } = stage
  const known = fragment ?? withheld
  if (!known) throw new Error('a worker stage has a fragment')
  const writes = (fragment?.write ?? withheld?.target) !== undefined
  const traceparent = run.spanOf(stage.id)
  const pages = new TaskPages({ deps, run, stage: stage.id, streams: known.streams, node, taskId })
  let publishing = false
  let settled = false
  let timer: NodeJS.Timeout | undefined

  return new Promise<TaskOutcome>((resolve, reject) => {
    const end = (outcome: TaskOutcome | undefined, error?: unknown): void => {
      if (settled) return
      settled = true
      clearTimeout(timer)
      hub.forget(node.url, taskId)
      run.signal.removeEventListener('abort', onAbort)
      if (outcome) resolve(outcome)
      else reject(error)
    }
    const onAbort = (): void => {
      const { reason } = run.signal as { reason: unknown }
      if (!(reason instanceof Suspended)) void client.deleteTask(node.url, taskId, true, traceparent).catch(() => {})
      end(undefined, run.signal.reason)
    }
    if (run.signal.aborted) return onAbort()
    run.signal.addEventListener('abort', onAbort)

    const lost = (message: string, reason: string): void =>
      end({ kind: 'lost', failure: failureOf('REMOTE_HOST_GONE', message), reason })

    function onStatus(status: TaskStatus): void {
      if (settled || pages.knowsNewer(status)) return
      run.onStats(taskId, status.stats)
      pages.take(status)
      const bad = badEnd(taskId, status)
      if (bad) return end(bad)
      if (writes) {
        if (status.state !== 'FINISHED') return
        return end({ kind: 'done', finished: { taskId, stage: stage.id, node, status } })
      }
      void publish()
    }

    /** Publishes what may be published, one append at a time: tokens go on without gaps. */
    async function publish(): Promise<void> {
      if (publishing || settled) return
      publishing = true
      try {
        for (;;) {
          const { group, last } = pages.next()
          if (!group && !last) break
          await pages.publish(group, last, () => settled)
          if (settled) return
          if (last) return end({ kind: 'done' })
        }
      } catch (error) {
        if (error instanceof PageGone) lost(error.message, 'pages_lost')
        else if (error instanceof WorkerUnreachable) lost(error.message, 'worker_lost')
        else end(undefined, error)
      } finally {
        publishing = false
      }
      const wait = pages.waitMs()
      clearTimeout(timer)
      if (wait !== undefined && !settled) timer = setTimeout(() => void publish(), wait + 1)
    }

    hub.listen(node.url, taskId, { onStatus, onLost: (reason) => lost(reason, 'worker_lost') })
    // Its task is there, or nobody can make it any more.
    if (!fragment) return 'adopted' in from ? onStatus(from.adopted) : end(undefined, secretsAreGone())
    const update: TaskUpdate = {
      session: { queryId: run.queryId, user: run.user, startTimeMillis: run.startTimeMillis },
      fragment,
      splits: 'splits' in from ? [...from.splits] : [...stage.splits],
      noMoreSplits: true,
      outputBuffers: { buffers: ['0'] },
      attempt,
      profile: run.sampled || !fragment.estimate.small,
      remainingMillis: deps.limits.queryRunMs,
      ...(traceparent === undefined ? {} : { traceparent }),
    }
    // A table gets all rows or none.
    if (!fragment.write && !withheld)
      run.onRunning(async () => {
        await client.createTask(node.url, taskId, { ...update, dropPendingBatches: true })
      })
    if ('adopted' in from) return onStatus(from.adopted)
    client.createTask(node.url, taskId, update).then(onStatus, (error: unknown) => {
      if (error instanceof StaleEpoch || error instanceof EngineError) end(undefined, error)
      // Whether it got there is unknown: the attempt is given up, a task that runs all the same is deleted.
      else {
        void client.deleteTask(node.url, taskId, true, traceparent).catch(() => {})
        lost(error instanceof Error ? error.message : String(error), 'worker_lost')
      }
    })
  })
}

/** How a task ended badly; undefined when it did not. */
function badEnd(taskId: string, status: TaskStatus): TaskOutcome | undefined {
  const { state, stats } = status
  if (state !== 'FAILED' && state !== 'ABORTED' && state !== 'CANCELED') return undefined
  const told = status.failure ?? failureOf('REMOTE_TASK_FAILED', `Task ${taskId} was ${state.toLowerCase()}`)
  const { location, ...rest } = told
  const failure: Failure = location ? { ...rest, location } : rest
  if (failure.errorName === 'REMOTE_TASK_ERROR' || failure.errorName === 'REMOTE_HOST_GONE')
    return { kind: 'lost', failure, reason: 'engine_crash', stats }
  // Not by this coordinator, which listens no longer once it aborts: the worker stopped, or heard nobody for long.
  if (state === 'ABORTED' && !status.failure) return { kind: 'lost', failure, reason: 'worker_lost', stats }
  return { kind: 'failed', failure, stats }
}

/** What a successor would have to run is not kept. */
export function secretsAreGone(): EngineError {
  return new EngineError(
    'COORDINATOR_RESTARTED',
    'The coordinator was restarted while the statement ran; the secrets in it are not kept, so submit it again',
  )
}

export async function chooseWorker(deps: WorkerStageDeps, signal: AbortSignal): Promise<WorkerNode> {
  const deadline = deps.clock.monotonicMs() + deps.workerWaitMs
  for (;;) {
    const [node] = deps.workers.active()
    if (node) return node
    signal.throwIfAborted()
    if (deps.clock.monotonicMs() > deadline)
      throw new EngineError('NO_NODES_AVAILABLE', 'No nodes available to run query')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** A task's failure as the query's. */
export function engineError(failure: Failure): EngineError {
  const at = failure.location
  // The message carries its place already.
  const message = at ? failure.message.replace(/^line \d+:\d+: /, '') : failure.message
  return new EngineError(failure.errorName, message, at ? { location: at } : {})
}
