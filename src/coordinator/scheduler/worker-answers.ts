import { z } from 'zod'
import { taskStatusSchema, type TaskStatus } from '../../execution/api/task.ts'
import { Signal } from '../../shared/quipu-error.ts'
import type { ErrorName } from '../../shared/engine-error.ts'
import type { TaskId } from '../../shared/ids.ts'

/** A worker's answer has impossible content. It is rejected, because an answer's data goes into events for ever. */
export class UnusableAnswer extends Signal {}

const TIMES: ReadonlySet<string> = new Set(['createTime', 'startTime', 'endTime', 'lastHeartbeat', 'lastUpdate'])
const answeredStatus = taskStatusSchema.refine((status) => isPlausible(status), 'figures or times that no task has')
const answeredStatuses = z.array(answeredStatus)

/**
 * Reads the status of one task.
 * @throws UnusableAnswer when it is not a status, or the status of another task
 */
export function readTaskStatus(body: Buffer, taskId: TaskId): TaskStatus {
  const status = read(answeredStatus, body)
  if (status.taskId !== taskId) throw new UnusableAnswer(`it tells of another task than ${taskId}`)
  return withRetriable(status)
}

/**
 * Reads statuses of any tasks.
 * @throws UnusableAnswer when one of them is not a status
 */
export function readTaskStatuses(body: Buffer): readonly TaskStatus[] {
  return read(answeredStatuses, body).map(withRetriable)
}

/** A worker of an earlier version marks a task as retriable by these error names alone. */
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

/** DuckDB's estimate of a join's rows has no upper bound. */
const GUESSES: ReadonlySet<string> = new Set(['estimatedPositions'])

/** Whether counts, sizes and durations are safe integers that can be added up, and times are valid dates. */
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
