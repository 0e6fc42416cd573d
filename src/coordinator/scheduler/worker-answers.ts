import { z } from 'zod'
import { taskStatusSchema, type TaskStatus } from '../../execution/api/task.ts'
import { Signal } from '../../shared/quipu-error.ts'
import type { ErrorName } from '../../shared/engine-error.ts'
import type { TaskId } from '../../shared/ids.ts'

/** A worker's answer that says nothing that can be: what it says of its tasks goes into events, and stays. */
export class UnusableAnswer extends Signal {}

const TIMES: ReadonlySet<string> = new Set(['createTime', 'startTime', 'endTime', 'lastHeartbeat', 'lastUpdate'])
const answeredStatus = taskStatusSchema.refine((status) => isPlausible(status), 'figures or times that no task has')
const answeredStatuses = z.array(answeredStatus)

/**
 * The status of one task.
 * @throws UnusableAnswer when it is none, or that of another task
 */
export function readTaskStatus(body: Buffer, taskId: TaskId): TaskStatus {
  const status = read(answeredStatus, body)
  if (status.taskId !== taskId) throw new UnusableAnswer(`it tells of another task than ${taskId}`)
  return withRetriable(status)
}

/**
 * Statuses of any tasks.
 * @throws UnusableAnswer when one of them is none
 */
export function readTaskStatuses(body: Buffer): readonly TaskStatus[] {
  return read(answeredStatuses, body).map(withRetriable)
}

/** A worker of a version before says by these names alone that the task may be begun again. */
const RETRIABLE_BEFORE: ReadonlySet<ErrorName> = new Set(['REMOTE_TASK_ERROR', 'REMOTE_HOST_GONE'])

function withRetriable(status: TaskStatus): TaskStatus {
  const { failure } = status
  if (!failure || failure.retriable !== undefined) return status
  return { ...status, failure: { ...failure, retriable: RETRIABLE_BEFORE.has(failure.errorName) } }
}

function read<T>(schema: z.ZodType<T>, body: Buffer): T {
  let json: unknown
  try {
    json = JSON.parse(body.toString('utf8'))
  } catch {
    throw new UnusableAnswer('it is no JSON')
  }
  const parsed = schema.safeParse(json)
  if (!parsed.success) throw new UnusableAnswer(`it is no status of a task: ${parsed.error.issues[0]?.message ?? ''}`)
  return parsed.data
}

/** DuckDB's guess of a join's rows knows no bounds. */
const GUESSES: ReadonlySet<string> = new Set(['estimatedPositions'])

/** Counts, sizes and durations are whole numbers that can be added up; times are of the calendar. */
function isPlausible(value: unknown, key?: string): boolean {
  if (typeof value === 'number') return Number.isSafeInteger(value) || (key !== undefined && GUESSES.has(key))
  if (typeof value === 'string') return key === undefined || !TIMES.has(key) || isTime(value)
  if (Array.isArray(value)) return value.every((one) => isPlausible(one))
  if (typeof value !== 'object' || value === null) return true
  for (const name in value) if (!isPlausible((value as Record<string, unknown>)[name], name)) return false
  return true
}

function isTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(text) && !Number.isNaN(Date.parse(text))
}
