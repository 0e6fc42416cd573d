import { z } from 'zod'
import type { QueryRows } from '../../events/projection.ts'

const count = z.coerce.number().nullable()
const time = z
  .union([z.date(), z.string()])
  .transform((value) => (value instanceof Date ? value.toISOString() : value))
  .nullable()

/** A row of `queries` as lists show it; counts as numbers, times as ISO UTC. */
export const queryListRow = z.object({
  query_id: z.string(),
  state: z.string(),
  user_name: z.string(),
  source: z.string().nullable(),
  catalog_name: z.string().nullable(),
  schema_name: z.string().nullable(),
  resource_group: z.string(),
  query_type: z.string().nullable(),
  update_type: z.string().nullable(),
  sql_text: z.string(),
  created_at: time.unwrap(),
  execution_started_at: time,
  last_event_at: time.unwrap(),
  ended_at: time,
  elapsed_ms: count,
  queued_ms: count,
  analysis_ms: count,
  planning_ms: count,
  cpu_ms: count,
  scheduled_ms: count,
  blocked_ms: count,
  peak_memory_bytes: count,
  spilled_bytes: count,
  raw_input_rows: count,
  raw_input_bytes: count,
  processed_input_rows: count,
  processed_input_bytes: count,
  output_rows: count,
  output_bytes: count,
  total_tasks: count,
  total_drivers: count,
  completed_drivers: count,
  total_splits: count,
  completed_splits: count,
  error_code: z.number().nullable(),
  error_name: z.string().nullable(),
  error_type: z.string().nullable(),
  error_message: z.string().nullable(),
  trace_id: z.string().nullable(),
  partial: z.boolean(),
  result_lost: z.boolean(),
  incomplete: z.boolean(),
})
export type QueryListRow = z.output<typeof queryListRow>

const COLUMNS = Object.keys(queryListRow.shape).join(', ')

export interface QueryFilter {
  readonly states?: readonly string[]
  readonly user?: string
  /** Created at or after, ISO UTC. */
  readonly since?: string
  /** Part of the text, in either case. */
  readonly text?: string
  /** After this one in the order of the list. */
  readonly cursor?: QueryCursor
  /** Open, or ended at or after this, ISO UTC. */
  readonly endedSince?: string
}

/** Place in a list: newest first, the higher id first among equals. */
export interface QueryCursor {
  readonly createdAt: string
  readonly queryId: string
}

/** Queries that pass a filter, newest first. */
export async function readQueries(query: QueryRows, filter: QueryFilter, limit: number): Promise<QueryListRow[]> {
  const values: unknown[] = []
  const bind = (value: unknown): string => `$${values.push(value)}`
  const wheres: string[] = []
  if (filter.states) wheres.push(`state = any(${bind(filter.states)})`)
  if (filter.user !== undefined) {
    const user = bind(filter.user)
    // The index has the beginnings of names.
    wheres.push(`left(user_name, 200) = left(${user}, 200) and user_name = ${user}`)
  }
  if (filter.since !== undefined) wheres.push(`created_at >= ${bind(filter.since)}`)
  if (filter.text !== undefined) wheres.push(`sql_text ilike ${bind(`%${likeText(filter.text)}%`)}`)
  if (filter.endedSince !== undefined) wheres.push(`(ended_at is null or ended_at >= ${bind(filter.endedSince)})`)
  if (filter.cursor)
    wheres.push(
      `(created_at, query_id) < (${bind(filter.cursor.createdAt)}::timestamptz, ${bind(filter.cursor.queryId)})`,
    )
  const where = wheres.length > 0 ? `where ${wheres.join(' and ')}` : ''
  const rows = await query(
    `select ${COLUMNS} from queries ${where} order by created_at desc, query_id desc limit ${bind(limit)}`,
    values,
  )
  return rows.map((row) => queryListRow.parse(row))
}

/** The same filter over a row that is not in the tables yet. */
export function passesFilter(row: QueryListRow, filter: QueryFilter): boolean {
  const { states, user, since, text, endedSince, cursor } = filter
  return (
    (!states || states.includes(row.state)) &&
    (user === undefined || row.user_name === user) &&
    (since === undefined || row.created_at >= new Date(since).toISOString()) &&
    (text === undefined || row.sql_text.toLowerCase().includes(text.toLowerCase())) &&
    (endedSince === undefined || row.ended_at === null || row.ended_at >= endedSince) &&
    (!cursor || compareNewest(row, { created_at: cursor.createdAt, query_id: cursor.queryId }) > 0)
  )
}

/** Order of lists: newest first. */
export function compareNewest(
  a: Pick<QueryListRow, 'created_at' | 'query_id'>,
  b: Pick<QueryListRow, 'created_at' | 'query_id'>,
): number {
  return compareText(b.created_at, a.created_at) || compareText(b.query_id, a.query_id)
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function likeText(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&')
}
