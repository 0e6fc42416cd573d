import { failureOf, type Failure } from '../../shared/engine-error.ts'
import type { TaskFailure } from '../api/task.ts'

/** A failure as a task's status carries it: a missing location is left out, since it may not be undefined. */
export function wireFailure({ location, ...rest }: Failure): TaskFailure {
  return location ? { ...rest, location } : rest
}

/** The failure of a task whose engine or worker is gone, while the statement is not known to be the cause. */
export function lostFailure(message: string): TaskFailure {
  return { ...wireFailure(failureOf('REMOTE_TASK_ERROR', message)), retriable: true }
}
