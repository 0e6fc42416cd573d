import type { z } from 'zod'
import type { QueryRows } from '../../events/projection.ts'
import { selected } from '../table.ts'
import { operatorsTable, tasksTable } from './tables.ts'
import type { QueryId } from '../../shared/ids.ts'

/** A row of `tasks` as lists show it. */
export const taskListRow = tasksTable.row.omit({
  task_number: true,
  attempt: true,
  retry_of: true,
  retry_reason: true,
  node_url: true,
  elapsed_ms: true,
  queued_ms: true,
  wall_ms: true,
  memory_bytes: true,
  peak_memory_bytes: true,
  spilled_bytes: true,
  error_name: true,
  error_message: true,
  details: true,
})
export type TaskListRow = z.output<typeof taskListRow>

const operatorListRow = operatorsTable.row.omit({ ended_at: true })
export type OperatorListRow = z.output<typeof operatorListRow>

/** Tasks of some queries, in the order of their ids. */
export async function readTasks(query: QueryRows, queryIds: readonly QueryId[]): Promise<TaskListRow[]> {
  const rows = await query(
    `select ${selected(taskListRow)} from tasks where query_id = any($1) order by query_id, stage_id, task_number`,
    [queryIds],
  )
  return rows.map((row) => taskListRow.parse(row))
}

/** Operators of the ended tasks of some queries. */
export async function readOperators(query: QueryRows, queryIds: readonly QueryId[]): Promise<OperatorListRow[]> {
  const rows = await query(
    `select ${selected(operatorListRow)} from operators where query_id = any($1) order by task_id, pipeline_id, operator_id`,
    [queryIds],
  )
  return rows.map((row) => operatorListRow.parse(row))
}
