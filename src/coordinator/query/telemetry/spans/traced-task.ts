import type { TaskStats } from '../../../../execution/api/task.ts'
import type { TaskRecord } from '../../stream/state.ts'

/** A task, and when the task's own span begins and ends, in milliseconds since the epoch. */
export interface TracedTask {
  readonly task: TaskRecord
  readonly stats: TaskStats
  readonly spanId: string
  readonly startMs: number
  readonly endMs: number
}
