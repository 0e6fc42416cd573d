import { splitsOfStatement } from '../../../execution/api/fragment.ts'
import type { Stage } from '../../../planner/query-plan.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { taskId as makeTaskId, type TaskId, type NodeId } from '../../../shared/ids.ts'
import { WorkerLost } from '../../scheduler/worker-error.ts'
import type { QueryCommand } from '../stream/decider.ts'
import type { QueryAggregate } from '../stream/query-aggregate.ts'
import { isTaskTerminal } from '../../../execution/api/task.ts'
import type { TaskRecord } from '../stream/state.ts'
import { FollowedTask, type FollowDeps } from './followed-task.ts'
import type { ExecutionDeps } from './execution-deps.ts'
import type { RunContext } from './run-context.ts'
import { secretsNotKept } from '../secrets/secrets-not-kept.ts'
import { engineError, lost as lostTo, outcomeOf, type FinishedTask, type TaskOutcome } from './task-outcome.ts'

export type WorkerStageDeps = FollowDeps & Pick<ExecutionDeps, 'workers' | 'placement'>

/**
 * Runs a stage as one task on a worker: creates the task, follows its news, publishes its pages if they are the result,
 * and retries it on another worker while none of them is published.
 * @param takePlan commands to record before the stage's first task
 * @returns undefined once the whole result is published. For any other output the task, once it has ended: the caller
 * records that end.
 * @throws EngineError the task's failure
 */
export async function runWorkerStage(
  deps: WorkerStageDeps,
  run: RunContext,
  stage: Stage,
  takePlan: () => readonly QueryCommand[] = () => [],
): Promise<FinishedTask | undefined> {
  let lost: LostTask | undefined
  let failures = 0
  const adopted = openTask(run, stage)
  if (adopted) {
    const outcome = await adoptTask(deps, run, stage, adopted)
    lost = await settle(run, stage, adopted, outcome)
    if (!lost) return finishedTask(outcome)
    failures++
  }
  // After each recovery the numbers begin at the next thousand: an earlier coordinator may have used ids that the log
  // does not have.
  const firstNumber = recoveries(run.aggregate) * 1000
  for (let number = firstNumber; ; number++) {
    if (!stage.fragment) throw secretsNotKept()
    const slot = await deps.placement.assign(run.signal, lost?.nodeId)
    const { node } = slot
    const splits = await run.splitsOf(stage).catch((error: unknown) => {
      slot.leave()
      throw error
    })
    const taskId = makeTaskId(run.queryId, stage.id, number)
    const create: QueryCommand = {
      type: 'CreateTask',
      data: {
        taskId,
        stage: stage.id,
        nodeId: node.nodeId,
        nodeUrl: node.url,
        splits: splitsOfStatement(stage.fragment, stage.splits).length,
        attempt: failures,
        ...(lost ? { retryOf: lost.taskId, retryReason: lost.reason } : {}),
      },
    }
    const retry: QueryCommand[] = lost
      ? [{ type: 'RetryTask', data: { taskId: lost.taskId, newTaskId: taskId, reason: lost.reason } }]
      : []
    // Not awaited: the task's POST goes out beside the append. Adoption deletes a task that the log does not know.
    const begun = (): readonly QueryCommand[] => [...takePlan(), ...retry, create]
    const [first] = await Promise.all([
      new FollowedTask(deps, run, { stage, node, taskId, attempt: failures }).create(splits).finally(slot.leave),
      // A small task may end before the first append leaves, so its commands wait for that. For any other task the
      // append, which takes a while to make, is made after the POST's bytes are written.
      stage.fragment.estimate.small ? run.recordSoon(begun()) : afterRequests().then(() => run.record(begun())),
    ])
    const task = openTask(run, stage)
    // A part of the task's output is already in the result. Only the pages on its worker's disk can complete the
    // result.
    const outcome =
      first.kind === 'lost' && isPinned(run, stage) && task ? await adoptTask(deps, run, stage, task) : first
    lost = await settle(run, stage, { taskId, nodeId: node.nodeId }, outcome)
    if (!lost) return finishedTask(outcome)
    if (++failures >= attemptsAt(run, stage) && outcome.kind === 'lost') throw engineError(outcome.failure)
  }
}

/**
 * Resolves after Node has given the pending requests their connection and has written them, before it reads any answer.
 */
function afterRequests(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve))
}

interface LostTask {
  readonly taskId: TaskId
  readonly nodeId: NodeId
  readonly reason: string
}

/**
 * Records the bad end of a task. Undefined when the stage is done.
 * @throws EngineError when the task cannot be retried
 */
async function settle(
  run: RunContext,
  stage: Stage,
  { taskId, nodeId }: Pick<LostTask, 'taskId' | 'nodeId'>,
  outcome: TaskOutcome,
): Promise<LostTask | undefined> {
  if (outcome.kind === 'done') return undefined
  const pinned = isPinned(run, stage)
  const { failure, stats } = outcome
  await run.record([{ type: 'FailTask', data: { taskId, failure, ...(stats ? { stats } : {}) } }])
  if (outcome.kind === 'failed') throw engineError(outcome.failure)
  if (pinned)
    throw new EngineError(
      'REMOTE_TASK_FAILED',
      `Task ${taskId} was lost after part of its result was published: ${outcome.failure.message}`,
    )
  return { taskId, nodeId, reason: outcome.reason }
}

function finishedTask(outcome: TaskOutcome): FinishedTask | undefined {
  return outcome.kind === 'done' ? outcome.finished : undefined
}

/** How many tasks the stage may begin. The figures of EXPLAIN ANALYZE are those of one run. */
function attemptsAt(run: RunContext, { output }: Stage): number {
  return output === 'none' ? 1 : run.limits.attempts
}

/** Whether pages of the stage are part of the result: then no other task can continue it. */
function isPinned(run: RunContext, { output }: Stage): boolean {
  return output === 'client' && run.aggregate.intended.kind !== 'NONE' && run.aggregate.intended.pages.length > 0
}

/**
 * The attempt at the stage whose end is not in the log. There is at most one: an attempt ends before the next begins.
 */
function openTask(run: RunContext, stage: Stage): TaskRecord | undefined {
  const query = run.aggregate.intended
  if (query.kind === 'NONE') return undefined
  return [...query.tasks.values()].find((task) => task.stage === stage.id && !isTaskTerminal(task.state))
}

function recoveries(aggregate: QueryAggregate): number {
  return aggregate.intended.kind === 'NONE' ? 0 : aggregate.intended.recoveries
}

/** Continues with a task that runs, or ran, on its worker: no work is repeated. */
async function adoptTask(deps: WorkerStageDeps, run: RunContext, stage: Stage, task: TaskRecord): Promise<TaskOutcome> {
  const { taskId, attempt } = task
  for (let tries = 0; ; tries++) {
    const node = deps.workers.byId(task.nodeId) ?? { nodeId: task.nodeId, url: task.nodeUrl }
    try {
      const status = await deps.client.getTask(node.url, task.taskId)
      if (!status) return lostTo(`Worker ${node.url} has no task ${task.taskId}`, 'worker_lost')
      const slot = deps.placement.take(node)
      return await new FollowedTask(deps, run, { stage, node, taskId, attempt }).adopt(status).finally(slot.leave)
    } catch (error) {
      run.signal.throwIfAborted()
      const outcome = outcomeOf(error)
      if (!outcome) throw error
      // The worker may be restarting: its pages lie on its disk.
      if (!(error instanceof WorkerLost) || tries >= ADOPTION_TRIES) return outcome
      await new Promise((resolve) => setTimeout(resolve, ADOPTION_PAUSE_MS))
    }
  }
}

const ADOPTION_TRIES = 12
const ADOPTION_PAUSE_MS = 250
