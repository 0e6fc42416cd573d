import type { z } from 'zod'
import type { QueryRows } from '../../events/projection.ts'
import { selected } from '../table.ts'
import { queriesTable } from './tables.ts'

/** A row of `queries` as lists show it; counts as numbers, times as ISO UTC. */
export const queryListRow = queriesTable.row.omit({
  header_family: true,
  route: true,
  planned_at: true,
  wall_ms: true,
  update_count: true,
  retries: true,
  recoveries: true,
  last_sequence: true,
  epoch: true,
  details: true,
})
export type QueryListRow = z.output<typeof queryListRow>

const COLUMNS = selected(queryListRow)

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
