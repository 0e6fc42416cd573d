import { failureOf, type Failure } from '../../shared/engine-error.ts'
import type { TaskFailure } from '../api/task.ts'

/** A failure as a task's status carries it; what is absent may not be undefined there. */
export function wireFailure({ location, ...rest }: Failure): TaskFailure {
  return location ? { ...rest, location } : rest
}

/** What ran the task is gone, through no fault that the statement is known to have. */
export function lostFailure(message: string): TaskFailure {
  return { ...wireFailure(failureOf('REMOTE_TASK_ERROR', message)), retriable: true }
}
