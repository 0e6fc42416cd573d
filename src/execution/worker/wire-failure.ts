import type { Failure } from '../../shared/engine-error.ts'
import type { TaskStatus } from '../api/task.ts'

/** A failure as a task's status carries it; what is absent may not be undefined there. */
export function wireFailure({ location, ...rest }: Failure): NonNullable<TaskStatus['failure']> {
  return location ? { ...rest, location } : rest
}
