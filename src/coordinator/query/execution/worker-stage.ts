import { createHash } from 'node:crypto'
import type { Split } from '../../../execution/api/fragment.ts'
import type { ClosedPage, TaskStats, TaskStatus, TaskUpdate } from '../../../execution/api/task.ts'
import type { EventLog, KeptPages, PagePlace, ResultPage } from '../../../events/event-log.ts'
import type { Clock } from '../../../shared/clock.ts'
import { EngineError, failureOf, type Failure } from '../../../shared/engine-error.ts'
import { taskId as makeTaskId } from '../../../shared/ids.ts'
import type { StagePlan } from '../../../planner/stage-plan.ts'
import { createBatchPublisher, type PublishableGroup, type PublishedBefore } from '../../scheduler/batch-publisher.ts'
import type { TaskHub } from '../../scheduler/task-hub.ts'
import { StaleEpoch, WorkerUnreachable, type WorkerClient } from '../../scheduler/worker-client.ts'
import type { WorkerDirectory, WorkerNode } from '../../scheduler/workers.ts'
import type { QueryCommand } from '../decider.ts'
import type { QueryAggregate, Step } from '../query-aggregate.ts'
import { relayTaskStats } from '../relay-stats.ts'
import { isTaskTerminal, type TaskRecord } from '../state.ts'
import { Suspended } from '../suspended.ts'
import type { RunContext } from './run-context.ts'

/** Result pages up to this many bytes are kept beside the log. */
export const DURABLE_PAGE_BYTES = 64 * 1024

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
  const { clock, client, hub } = deps
  const { fragment, withheld } = stage
  const known = fragment ?? withheld
  if (!known) throw new Error('a worker stage has a fragment')
  const writes = (fragment?.write ?? withheld?.target) !== undefined
  const publisher = createBatchPublisher(
    known.streams,
    () => clock.monotonicMs(),
    publishedBefore(run.aggregate, taskId),
  )
  const traceparent = run.spanOf(stage.id)
  const createdAt = clock.now()
  let firstListedAt: number | undefined
  let newest: TaskStatus | undefined
  /** Bytes that came with the answer of the task's POST. */
  const inline = new Map<number, Buffer>()
  let requests = 0
  let fetchedBytes = 0
  let cpuMicros = 0
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
      if (settled || (newest && status.version < newest.version)) return
      newest = status
      run.onStats(taskId, status.stats)
      for (const page of status.inlinePages ?? []) inline.set(page.token, Buffer.from(page.data))
      if (status.pages.length > 0) firstListedAt ??= clock.now()
      publisher.list(status.pages)
      for (const batch of status.batchesDone) publisher.batchDone(batch)
      if (status.state === 'FAILED' || status.state === 'ABORTED' || status.state === 'CANCELED') {
        const failure =
          status.failure ?? failureOf('REMOTE_TASK_FAILED', `Task ${taskId} was ${status.state.toLowerCase()}`)
        const { location, ...rest } = failure
        const known: Failure = location ? { ...rest, location } : rest
        if (known.errorName === 'REMOTE_TASK_ERROR' || known.errorName === 'REMOTE_HOST_GONE')
          end({ kind: 'lost', failure: known, reason: 'engine_crash', stats: status.stats })
        // Not by this coordinator, which listens no longer once it aborts: the worker stopped, or heard nobody for long.
        else if (status.state === 'ABORTED' && !status.failure)
          end({ kind: 'lost', failure: known, reason: 'worker_lost', stats: status.stats })
        else end({ kind: 'failed', failure: known, stats: status.stats })
        return
      }
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
          const group = publisher.next()
          const finished = newest?.state === 'FINISHED' && publisher.pending === 0
          if (!group && !finished) break
          await publishGroup(group, finished)
          if (settled) return
          if (finished) return end({ kind: 'done' })
        }
      } catch (error) {
        if (error instanceof PageGone) lost(error.message, 'pages_lost')
        else if (error instanceof WorkerUnreachable) lost(error.message, 'worker_lost')
        else end(undefined, error)
      } finally {
        publishing = false
      }
      const wait = publisher.waitMs()
      clearTimeout(timer)
      if (wait !== undefined && !settled) timer = setTimeout(() => void publish(), wait + 1)
    }

    async function publishGroup(group: PublishableGroup | undefined, last: boolean): Promise<void> {
      const firstToken = resultPages(run.aggregate)
      const small: ResultPage[] = []
      for (const [index, page] of (group?.pages ?? []).entries()) {
        if (page.bytes > DURABLE_PAGE_BYTES) continue
        const bytes = await fetchSmall(page)
        small.push({ token: firstToken + index, bytes })
        run.onPage(firstToken + index, bytes)
      }
      const kept = small.length > 0 ? await deps.log.keepPages(run.queryId, small) : NOTHING_KEPT
      const places = new Map(small.map(({ token }, index) => [token, kept.places[index]]))
      if (settled) return
      const pages = (group?.pages ?? []).map((page, index) => ({
        rows: page.rows,
        bytes: page.bytes,
        sha256: page.sha256,
        kept: page.bytes > DURABLE_PAGE_BYTES ? ('worker' as const) : ('log' as const),
        ...placed(places.get(firstToken + index)),
        taskToken: page.token,
      }))
      const publishCommand: QueryCommand = {
        type: 'PublishPages',
        data: {
          taskId,
          nodeUrl: node.url,
          batch: group?.batch ?? 0,
          firstToken,
          pages,
          lastOfBatch: group?.lastOfBatch ?? true,
          lastOfResult: last,
        },
      }
      if (!last || !newest) return run.record([publishCommand], kept.beside)
      const before = run.aggregate.intended
      const earlier = before.kind === 'NONE' ? [] : before.pages
      const totals = [...earlier, ...pages]
      const relay = relayTaskStats({
        sourceUri: `${node.url}/v1/task/${taskId}/results/0`,
        createdAt,
        firstListedAt,
        lastPublishedAt: clock.now(),
        pages: totals.length,
        rows: totals.reduce((sum, page) => sum + page.rows, 0),
        bytes: totals.reduce((sum, page) => sum + page.bytes, 0),
        requestsScheduled: requests,
        requestsCompleted: requests,
        fetchedBytes,
        cpuNanos: cpuMicros * 1000,
        blockedNanos: Math.max(0, (firstListedAt ?? clock.now()) - createdAt) * 1e6,
      })
      const commands: Step[] = [
        {
          type: 'FinishTask',
          data: { taskId, stage: stage.id, nodeId: node.nodeId, nodeUrl: node.url, stats: newest.stats },
        },
        publishCommand,
        {
          type: 'FinishTask',
          data: {
            taskId: makeTaskId(run.queryId, 0, 0),
            stage: 0,
            nodeId: 'coordinator',
            nodeUrl: '',
            stats: relay,
          },
        },
      ]
      if (totals.every((page) => page.kept === 'log')) commands.push(run.finish())
      return run.record(commands, kept.beside)
    }

    async function fetchSmall(page: ClosedPage): Promise<Buffer> {
      requests++
      const bytes = inline.get(page.token) ?? (await client.fetchPage(node.url, taskId, page.token))
      inline.delete(page.token)
      if (!bytes) throw new PageGone(`Page ${page.token} of ${taskId} is gone`)
      fetchedBytes += bytes.length
      const start = performance.now()
      const right = createHash('sha256').update(bytes).digest('hex') === page.sha256
      cpuMicros += Math.round((performance.now() - start) * 1000)
      if (!right) throw new PageGone(`Page ${page.token} of ${taskId} does not match its hash`)
      return bytes
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

/** What a successor would have to run is not kept. */
export function secretsAreGone(): EngineError {
  return new EngineError(
    'COORDINATOR_RESTARTED',
    'The coordinator was restarted while the statement ran; the secrets in it are not kept, so submit it again',
  )
}

class PageGone extends Error {}

const NOTHING_KEPT: KeptPages = { places: [], beside: [] }

/** A page's place, as an event has it: absent where stream and token find the page. */
export function placed(place: PagePlace | undefined): { readonly place?: PagePlace } {
  return place ? { place } : {}
}

function publishedBefore(aggregate: QueryAggregate, taskId: string): PublishedBefore {
  const query = aggregate.intended
  const pages = query.kind === 'NONE' ? [] : query.pages.filter((page) => page.taskId === taskId)
  return { tokens: new Set(pages.map((page) => page.taskToken)), batches: new Set(pages.map((page) => page.batch)) }
}

function resultPages(aggregate: QueryAggregate): number {
  return aggregate.intended.kind === 'NONE' ? 0 : aggregate.intended.pages.length
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
