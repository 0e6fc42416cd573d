import type { TaskStats, TaskStatus } from '../../../execution/api/task.ts'
import { asFailure, EngineError, failureOf, type Failure } from '../../../shared/engine-error.ts'
import type { TaskId } from '../../../shared/ids.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import { WorkerError } from '../../scheduler/worker-error.ts'
import type { WorkerNode } from '../../scheduler/workers.ts'
import type { QueryCommand } from '../stream/decider.ts'
import { PageGone } from '../results/page-gone.ts'

/** A task at its end whose rows do not go to the client: its end is not recorded yet. */
export interface FinishedTask {
  readonly taskId: TaskId
  readonly stage: number
  readonly node: Pick<WorkerNode, 'nodeId' | 'url'>
  readonly status: TaskStatus
}

/** Records the end of the task. */
export function finishTask({ taskId, stage, node, status }: FinishedTask): QueryCommand {
  return {
    type: 'FinishTask',
    data: { taskId, stage, nodeId: node.nodeId, nodeUrl: node.url, stats: status.stats },
  }
}

/** The outcome of one attempt at a stage. */
export type TaskOutcome =
  | { readonly kind: 'done'; readonly finished?: FinishedTask }
  | { readonly kind: 'failed'; readonly failure: Failure; readonly stats?: TaskStats }
  | { readonly kind: 'lost'; readonly failure: Failure; readonly reason: string; readonly stats?: TaskStats }

/** The outcome of an attempt that ended with an error; undefined for an error that its worker did not cause. */
export function outcomeOf(error: unknown): TaskOutcome | undefined {
  if (error instanceof PageGone) return lost(error.message, 'pages_lost')
  if (!(error instanceof WorkerError)) return undefined
  switch (error.kind) {
    case 'lost':
      return lost(error.message, 'worker_lost')
    case 'refused':
      return { kind: 'failed', failure: failureOf('REMOTE_TASK_ERROR', error.message) }
    case 'stale':
      return undefined
    default:
      return unreachable(error.kind)
  }
}

export function lost(message: string, reason: string): TaskOutcome {
  return { kind: 'lost', failure: failureOf('REMOTE_HOST_GONE', message), reason }
}

/** The failure of a task that ended badly. The task's word on retries is not part of the query's failure. */
function failureOfTask(taskId: TaskId, { state, failure }: TaskStatus): Failure {
  return asFailure(failure ?? failureOf('REMOTE_TASK_FAILED', `Task ${taskId} was ${state.toLowerCase()}`))
}

/** The outcome of a task that ended badly; undefined when it did not. */
export function badEnd(taskId: TaskId, status: TaskStatus): TaskOutcome | undefined {
  const { state, stats } = status
  if (state !== 'FAILED' && state !== 'ABORTED' && state !== 'CANCELED') return undefined
  const failure = failureOfTask(taskId, status)
  if (status.failure?.retriable) return { kind: 'lost', failure, reason: 'engine_crash', stats }
  // This coordinator stops listening once it aborts a task, so the worker aborted it: it stopped, or no coordinator
  // asked for long.
  if (state === 'ABORTED' && !status.failure) return { kind: 'lost', failure, reason: 'worker_lost', stats }
  return { kind: 'failed', failure, stats }
}

/** The failure of a task as an error of the query. */
export function engineError(failure: Failure): EngineError {
  const at = failure.location
  // The message already contains its location.
  const message = at ? failure.message.replace(/^line \d+:\d+: /, '') : failure.message
  return new EngineError(failure.errorName, message, at ? { location: at } : {})
}
