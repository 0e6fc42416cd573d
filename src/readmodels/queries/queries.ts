import type { z } from 'zod'
import type { QueryRows } from '../../events/projection.ts'
import { selected } from '../table.ts'
import { queriesTable } from './tables.ts'
import { queryOfStream, type QueryId } from '../../shared/ids.ts'

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

const COLUMNS = selected(queryListRow.omit({ sql_text: true, error_message: true }))

/** More than any text has. */
export const WHOLE_TEXTS = 2 ** 31 - 1

/** Texts are searched so far, as the index has them (`0012_text_search.sql`): of thousands each may be a megabyte. */
export const SEARCHED_CHARACTERS = 4096

export interface QueryFilter {
  readonly states?: readonly string[]
  readonly user?: string
  /** Created at or after, ISO UTC. */
  readonly since?: string
  /** Part of the beginning of the text, `SEARCHED_CHARACTERS` of it, in either case. */
  readonly text?: string
  /** After this one in the order of the list. */
  readonly cursor?: QueryCursor
  /** Open, or ended at or after this, ISO UTC. */
  readonly endedSince?: string
  /** Not these. */
  readonly without?: readonly QueryId[]
  /** What one person may see; all, where it is absent. Rows in memory are passed by their owners before. */
  readonly seen?: SeenQueries
}

/** Queries that run as one of these users, or were posted by somebody as another. */
export interface SeenQueries {
  readonly users: readonly string[]
  readonly poster: string
  /** Who looks, by the name that he has now. */
  readonly self: string
}

/** Place in a list: newest first, the higher id first among equals. */
export interface QueryCursor {
  readonly createdAt: string
  readonly queryId: QueryId
}

/**
 * Queries that pass a filter, newest first.
 * @param textCharacters so much of the statement and of the error's message: whole, a page of them may be gigabytes
 */
export async function readQueries(
  query: QueryRows,
  filter: QueryFilter,
  limit: number,
  textCharacters: number,
): Promise<QueryListRow[]> {
  const { where, bind, values } = conditions(filter)
  const most = bind(textCharacters)
  const texts = ['sql_text', 'error_message'].map((column) => `left(${column}, ${most}::int) as ${column}`)
  const rows = await query(
    `select ${COLUMNS}, ${texts.join(', ')} from queries ${where} order by created_at desc, query_id desc limit ${bind(limit)}`,
    values,
  )
  return rows.map((row) => queryListRow.parse(row))
}

/** Their ids alone, newest first. */
export async function readQueryIds(query: QueryRows, filter: QueryFilter, limit: number): Promise<QueryId[]> {
  const { where, bind, values } = conditions(filter)
  const rows = await query(
    `select query_id from queries ${where} order by created_at desc, query_id desc limit ${bind(limit)}`,
    values,
  )
  return rows.map((row) => queryOfStream(String(row['query_id'])))
}

/** Users of whom there are queries: each costs one look into an index, however many his queries are. */
export async function readQueryUsers(query: QueryRows): Promise<string[]> {
  const rows = await query(USERS, [])
  return rows.map((row) => String(row['user_name']))
}

/** The index has the beginnings of names: of each beginning there may be several. */
const USERS = `
  with recursive beginnings(name) as (
    (select left(user_name, 200) from queries order by left(user_name, 200) limit 1)
    union all
    select (select left(user_name, 200) from queries where left(user_name, 200) > name order by left(user_name, 200) limit 1)
    from beginnings where name is not null)
  select name as user_name from beginnings where length(name) < 200
  union
  select user_name from queries where length(left(user_name, 200)) = 200
    and left(user_name, 200) in (select name from beginnings where length(name) = 200)
  union
  select jsonb_array_elements_text(users) from quipu_log.query_periods`

interface Conditions {
  readonly where: string
  readonly values: unknown[]
  readonly bind: (value: unknown) => string
}

function conditions(filter: QueryFilter): Conditions {
  const values: unknown[] = []
  const bind = (value: unknown): string => `$${values.push(value)}`
  const wheres: string[] = []
  if (filter.states) wheres.push(`state = any(${bind(filter.states)})`)
  if (filter.user !== undefined) {
    const user = bind(filter.user)
    // The index has the beginnings of names.
    wheres.push(`left(user_name, 200) = left(${user}, 200) and user_name = ${user}`)
  }
  if (filter.seen) wheres.push(seenQueriesCondition(filter.seen, bind))
  if (filter.since !== undefined) wheres.push(`created_at >= ${bind(filter.since)}`)
  if (filter.text !== undefined) {
    const found = `left(sql_text, ${SEARCHED_CHARACTERS}) ilike ${bind(`%${likeText(filter.text)}%`)}`
    // The index has ended ones alone; of the others there are few.
    wheres.push(`((ended_at is not null and ${found}) or (ended_at is null and ${found}))`)
  }
  if (filter.endedSince !== undefined) wheres.push(`(ended_at is null or ended_at >= ${bind(filter.endedSince)})`)
  if (filter.cursor)
    wheres.push(
      `(created_at, query_id) < (${bind(filter.cursor.createdAt)}::timestamptz, ${bind(filter.cursor.queryId)})`,
    )
  if (filter.without?.length) wheres.push(`query_id <> all(${bind(filter.without)}::text[])`)
  return { where: wheres.length > 0 ? `where ${wheres.join(' and ')}` : '', values, bind }
}

/** Of the table `queries`: those that somebody may see. */
export function seenQueriesCondition(seen: SeenQueries, bind: (value: string | readonly string[]) => string): string {
  const users = bind(seen.users)
  const runsAs = `(left(user_name, 200) = any(select left(one, 200) from unnest(${users}::text[]) as one) and user_name = any(${users}::text[]))`
  return `(${runsAs} or ${postedBy(bind(seen.poster))})`
}

function postedBy(poster: string): string {
  const posted = `details->'session'->>'originalUser'`
  return `(left(${posted}, 200) = left(${poster}, 200) and ${posted} = ${poster})`
}

/** What the tables search of a text, which count a pair of halves as one. */
function searched(text: string): string {
  return Array.from(text.slice(0, 2 * SEARCHED_CHARACTERS))
    .slice(0, SEARCHED_CHARACTERS)
    .join('')
}

/** The same filter over a row that is not in the tables yet. */
export function passesFilter(row: QueryListRow, filter: QueryFilter): boolean {
  const { states, user, since, text, endedSince, cursor } = filter
  return (
    (!states || states.includes(row.state)) &&
    (user === undefined || row.user_name === user) &&
    (since === undefined || row.created_at >= new Date(since).toISOString()) &&
    (text === undefined || searched(row.sql_text).toLowerCase().includes(text.toLowerCase())) &&
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

/** A text as LIKE finds it, `\\` before what means more. */
export function likeText(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&')
}
