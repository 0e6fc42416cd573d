import { z } from 'zod'
import type { QueryRows } from '../../events/projection.ts'

const count = z.coerce.number().nullable()
const time = z
  .union([z.date(), z.string()])
  .transform((value) => (value instanceof Date ? value.toISOString() : value))
  .nullable()

/** A row of `tasks` as lists show it. */
export const taskListRow = z.object({
  task_id: z.string(),
  query_id: z.string(),
  stage_id: z.number(),
  node_id: z.string(),
  state: z.string(),
  created_at: time.unwrap(),
  started_at: time,
  ended_at: time,
  last_heartbeat_at: time.unwrap(),
  splits: count,
  queued_splits: count,
  running_splits: count,
  completed_splits: count,
  scheduled_ms: count,
  cpu_ms: count,
  blocked_ms: count,
  raw_input_rows: count,
  raw_input_bytes: count,
  processed_input_rows: count,
  processed_input_bytes: count,
  output_rows: count,
  output_bytes: count,
})
export type TaskListRow = z.output<typeof taskListRow>

const operatorListRow = z.object({
  query_id: z.string(),
  stage_id: z.number(),
  task_id: z.string(),
  pipeline_id: z.number(),
  operator_id: z.number(),
  operator_type: z.string(),
  engine_operator: z.string(),
  input_rows: z.coerce.number(),
  output_rows: z.coerce.number(),
  estimated_rows: z.number().nullable(),
  input_bytes: z.coerce.number(),
  output_bytes: z.coerce.number(),
  time_ms: z.number(),
  blocked_ms: z.number(),
})
export type OperatorListRow = z.output<typeof operatorListRow>

/** Tasks of some queries, in the order of their ids. */
export async function readTasks(query: QueryRows, queryIds: readonly string[]): Promise<TaskListRow[]> {
  const columns = Object.keys(taskListRow.shape).join(', ')
  const rows = await query(
    `select ${columns} from tasks where query_id = any($1) order by query_id, stage_id, task_number`,
    [queryIds],
  )
  return rows.map((row) => taskListRow.parse(row))
}

/** Operators of the ended tasks of some queries. */
export async function readOperators(query: QueryRows, queryIds: readonly string[]): Promise<OperatorListRow[]> {
  const columns = Object.keys(operatorListRow.shape).join(', ')
  const rows = await query(
    `select ${columns} from operators where query_id = any($1) order by task_id, pipeline_id, operator_id`,
    [queryIds],
  )
  return rows.map((row) => operatorListRow.parse(row))
}
