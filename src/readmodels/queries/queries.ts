import type { z } from 'zod'
import type { QueryRows } from '../../events/projection.ts'
import { selected } from '../table.ts'
import {
  afterCursor,
  compareCursors,
  cursorOf,
  NEWEST_FIRST,
  orderText,
  type QueryCursor,
  type QueryOrder,
} from './query-order.ts'
import { queriesTable } from './tables.ts'
import { queryOfStream, type QueryId } from '../../shared/ids.ts'
import type { QualifiedTable } from '../../shared/table-name.ts'

/** A row of `queries` as lists show it; counts are numbers, times ISO UTC. */
export const queryListRow = queriesTable.row.omit({
  header_family: true,
  planned_at: true,
  wall_ms: true,
  update_count: true,
  retries: true,
  recoveries: true,
  last_sequence: true,
  epoch: true,
  normalized_query: true,
  cache_key: true,
  queued_reason: true,
  details: true,
})
export type QueryListRow = z.output<typeof queryListRow>

const COLUMNS = selected(queryListRow.omit({ sql_text: true, error_message: true }))

/** Larger than the length of any text. */
export const WHOLE_TEXTS = 2 ** 31 - 1

/**
 * Only this many characters of a text are searched, as many as the index has (`0012_text_search.sql`): there may be
 * thousands of texts of a megabyte each.
 */
export const SEARCHED_CHARACTERS = 4096

/** Columns that a filter compares with one value. */
const EQUAL_COLUMNS = [
  'user_name',
  'source',
  'app',
  'app_object',
  'app_user',
  'resource_group',
  'query_type',
  'route',
  'cluster',
  'error_name',
  'fingerprint',
] as const
export type EqualColumn = (typeof EQUAL_COLUMNS)[number]

/** Columns whose index holds the first characters of their texts: their number. */
const INDEXED: Partial<Readonly<Record<EqualColumn, number>>> = {
  user_name: 200,
  app: 100,
  source: 100,
  resource_group: 200,
  error_name: 100,
  cluster: 100,
}

/**
 * Columns with an index of the texts up to this length, which also has the columns of totals, and an index of the
 * beginnings of longer texts (`0028_query_totals.sql`).
 */
const COVERED: ReadonlySet<EqualColumn> = new Set(['user_name', 'source', 'resource_group', 'error_name', 'cluster'])

/** Columns with a hash in the indexes `queries_by_…` (`0028_query_totals.sql`). */
const HASHED: ReadonlySet<EqualColumn> = new Set([
  'user_name',
  'source',
  'app',
  'resource_group',
  'error_name',
  'cluster',
  'fingerprint',
])

export interface QueryFilter {
  readonly states?: readonly string[]
  readonly equal?: Partial<Readonly<Record<EqualColumn, string>>>
  /** Only queries of users in this group. */
  readonly group?: string
  /** Only queries with this client tag. */
  readonly tag?: string
  /** Only queries that read or write this table. Rows in memory are filtered by the caller before. */
  readonly table?: QualifiedTable
  /** Created at or after, ISO UTC. */
  readonly since?: string
  /** Created before, ISO UTC. */
  readonly until?: string
  /** A part of the text's first `SEARCHED_CHARACTERS` characters; upper and lower case match. */
  readonly text?: string
  /** Only queries after this position in the order of the list. */
  readonly cursor?: QueryCursor
  /** @default newest first */
  readonly order?: QueryOrder
  /** Open, or ended at or after this, ISO UTC. */
  readonly endedSince?: string
  /** Only these queries. */
  readonly ids?: readonly QueryId[]
  /** Excludes these queries. */
  readonly without?: readonly QueryId[]
  /** Only queries that one user may see; absent: all. Rows in memory are filtered by the caller before. */
  readonly seen?: SeenQueries
}

/** Rights to queries: those that run as one of these users, and those that `poster` posted as another user. */
export interface SeenQueries {
  readonly users: readonly string[]
  readonly poster: string
  /** The user's current name. */
  readonly self: string
}

/**
 * Reads the queries that match a filter, in its order. Ended and open queries are read apart: the indexes for filters
 * and orders have only ended queries, because a row changes until its query has ended.
 * @param textCharacters most characters of the statement and of the error message: a page of whole texts may be
 *   gigabytes
 */
export async function readQueries(
  query: QueryRows,
  filter: QueryFilter,
  limit: number,
  textCharacters: number,
): Promise<QueryListRow[]> {
  const { ended, open, bind, values } = await conditions(query, filter)
  const most = bind(textCharacters)
  const texts = ['sql_text', 'error_message'].map((column) => `left(${column}, ${most}::int) as ${column}`)
  const rest = `${orderText(filter.order ?? NEWEST_FIRST)} limit ${bind(limit)}`
  const parts = [...ended, open].map(
    (where) => `(select ${COLUMNS}, ${texts.join(', ')} from queries q where ${where} ${rest})`,
  )
  const rows = await query(`select * from (${parts.join(' union all ')}) q ${rest}`, values)
  return rows.map((row) => queryListRow.parse(row))
}

/** The figures of the queries that match a filter, by state. */
export interface StateTotals {
  readonly state: string
  readonly queries: number
  readonly cpuMs: number
  readonly elapsedMs: number
  readonly inputBytes: number
  readonly outputRows: number
  readonly outputBytes: number
  /** Absent without prices for the time of these queries. */
  readonly cost?: number
}

const TOTALS = ['cpu_ms', 'elapsed_ms', 'raw_input_bytes', 'output_rows', 'output_bytes']
/** Writes the SQL for the cost of a query over `queries q`. */
export type CostSql = (bind: (value: string) => string) => string

/**
 * The columns of a select over `queries q` for `totalsOf`.
 * @param cost absent without prices
 */
export function totalColumns(cost: CostSql | undefined, bind: (value: string) => string): string {
  const sums = TOTALS.map((column) => `coalesce(sum(${column}), 0)`)
  return ['state', 'count(*)', ...sums, ...(cost ? [`sum(${cost(bind)})`] : [])]
    .map((column) => `(${column})::text`)
    .join(', ')
}

export function totalsOf([state, ...figures]: readonly unknown[]): StateTotals {
  const cost = figures[TOTALS.length + 1]
  const [queries, cpuMs, elapsedMs, inputBytes, outputRows, outputBytes] = figures.map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  return {
    state: String(state),
    queries,
    cpuMs,
    elapsedMs,
    inputBytes,
    outputRows,
    outputBytes,
    ...(typeof cost === 'string' && { cost: Number(cost) }),
  }
}

/** Reads the totals of the queries that match a filter; states without queries are absent. */
export async function readStateTotals(
  query: QueryRows,
  filter: QueryFilter,
  cost: CostSql | undefined,
): Promise<StateTotals[]> {
  const { ended, open, values, bind } = await conditions(query, filter)
  const columns = totalColumns(cost, bind)
  const parts = [...ended, open].map(
    (where) => `select array[${columns}] as totals from queries q where ${where} group by state`,
  )
  const rows = await query(parts.join(' union all '), values)
  return rows.map(({ totals }) => totalsOf(totals as readonly unknown[]))
}

/** The number of the newest queries that a search for a short text reads: more would take longer than 300 ms. */
const SHORT_TEXT_QUERIES = 20_000
/** The index of texts has groups of three letters or digits. */
const INDEXED_PART = /[\p{L}\p{N}]{3}/u

/**
 * The time of creation, ISO UTC, from which a search for the text of a filter reads queries. Undefined if it can read
 * all: the index has a part of the text, or few queries match the rest of the filter.
 */
export async function readSearchStart(query: QueryRows, filter: QueryFilter): Promise<string | undefined> {
  const { text, cursor: _cursor, order: _order, ...rest } = filter
  if (text === undefined || INDEXED_PART.test(text)) return undefined
  const { ended, values, bind } = await conditions(query, rest)
  const newest = 'order by created_at desc, query_id desc'
  const most = bind(SHORT_TEXT_QUERIES)
  const parts = ended.map(
    (where) => `(select created_at, query_id from queries q where ${where} ${newest} limit ${most}::bigint + 1)`,
  )
  const [row] = await query(
    `select created_at from (${parts.join(' union all ')}) q ${newest} offset ${most}::bigint limit 1`,
    values,
  )
  return row && queryListRow.shape.created_at.parse(row['created_at'])
}

/** Only the ids of these queries, newest first. */
export async function readQueryIds(query: QueryRows, filter: QueryFilter, limit: number): Promise<QueryId[]> {
  const { ended, open, bind, values } = await conditions(query, filter)
  const rest = `order by created_at desc, query_id desc limit ${bind(limit)}`
  const parts = [...ended, open].map((where) => `(select query_id, created_at from queries q where ${where} ${rest})`)
  const rows = await query(`select query_id from (${parts.join(' union all ')}) q ${rest}`, values)
  return rows.map((row) => queryOfStream(String(row['query_id'])))
}

/** The query that runs a query again for an act; undefined if the tables have none. */
export async function readRerun(
  query: QueryRows,
  queryId: QueryId,
  act: { readonly actId: string; readonly before: string },
): Promise<QueryId | undefined> {
  const rows = await query(
    `select query_id from queries where created_at >= $1 and details->'rerun'->>'act' = $2
     and details->'rerun'->>'queryId' = $3 limit 1`,
    [act.before, act.actId, queryId],
  )
  return rows[0] && queryOfStream(String(rows[0]['query_id']))
}

/** Users that have queries. Each user costs one look-up in an index, no matter how many queries they have. */
export async function readQueryUsers(query: QueryRows): Promise<string[]> {
  const rows = await query(USERS, [])
  return rows.map((row) => String(row['user_name']))
}

/** The index holds the first characters of names: several names may share them. */
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

/** Conditions on `queries q`. The indexes for filters have only ended queries. */
interface Conditions {
  /** Each finds a part of the ended queries by its own index; no query is in two parts. */
  readonly ended: readonly string[]
  /** Finds the open queries. */
  readonly open: string
  readonly values: unknown[]
  readonly bind: (value: unknown) => string
}

async function conditions(query: QueryRows, filter: QueryFilter): Promise<Conditions> {
  const values: unknown[] = []
  const bind = (value: unknown): string => `$${values.push(value)}`
  const wheres = commonConditions(filter, bind)
  const open = ['ended_at is null', ...wheres]
  const ended = ['ended_at is not null', ...wheres]
  if (filter.group !== undefined) {
    const member = groupCondition(bind(filter.group))
    open.push(member)
    const sets = await readGroupSets(query, filter.group)
    // Postgres expects that a list contains a value in a thousandth of the rows, but halves its estimate for `coalesce`.
    ended.push(`jsonb_hash_extended(groups, 0) = any(${bind(sets)}::bigint[]) and coalesce(${member}, false)`)
  }
  const parts = filter.seen ? seenParts(filter.seen, isByFigure(filter), bind) : undefined
  if (parts) open.push(`(${parts.runAs} or ${parts.posted})`)
  const short = filter.seen?.users.some((user) => isLonger(user, 200)) ? [] : [lengthCondition('user_name', 200, false)]
  const seen = parts
    ? [
        [parts.runAs, ...short],
        [parts.posted, parts.runAsOther],
      ]
    : [[]]
  return { ended: seen.map((more) => [...ended, ...more].join(' and ')), open: open.join(' and '), values, bind }
}

/** Whether a list is in the order of a figure: then only the indexes `queries_by_…` have the order. */
function isByFigure({ order }: QueryFilter): boolean {
  return order !== undefined && order.by !== 'created'
}

/** The conditions that are the same for ended and open queries. */
function commonConditions(filter: QueryFilter, bind: Conditions['bind']): string[] {
  const wheres: string[] = []
  if (filter.states) wheres.push(`state = any(${bind(filter.states)})`)
  for (const [column, value] of equalTerms(filter)) {
    const wanted = bind(value)
    const first = INDEXED[column]
    if (isByFigure(filter) && HASHED.has(column)) wheres.push(`hashtext(${column}) = hashtext(${wanted})`)
    if (first && COVERED.has(column)) wheres.push(lengthCondition(column, first, isLonger(value, first)))
    if (first && (!COVERED.has(column) || isLonger(value, first)))
      wheres.push(`left(${column}, ${first}) = left(${wanted}, ${first})`)
    wheres.push(`${column} = ${wanted}`)
  }
  if (filter.tag !== undefined) wheres.push(`client_tags @> jsonb_build_array(${bind(filter.tag)}::text)`)
  if (filter.table) {
    const { catalog, schema, table } = filter.table
    wheres.push(
      `exists (select 1 from table_access t where t.query_id = q.query_id
        and left(catalog_name, 100) = left(${bind(catalog)}, 100) and left(schema_name, 100) = left(${bind(schema)}, 100)
        and left(table_name, 200) = left(${bind(table)}, 200)
        and t.catalog_name = ${bind(catalog)} and t.schema_name = ${bind(schema)} and t.table_name = ${bind(table)})`,
    )
  }
  if (filter.since !== undefined) wheres.push(`created_at >= ${bind(filter.since)}`)
  if (filter.until !== undefined) wheres.push(`created_at < ${bind(filter.until)}`)
  if (filter.text !== undefined)
    wheres.push(`left(sql_text, ${SEARCHED_CHARACTERS}) ilike ${bind(`%${likeText(filter.text)}%`)}`)
  if (filter.endedSince !== undefined) wheres.push(`(ended_at is null or ended_at >= ${bind(filter.endedSince)})`)
  if (filter.cursor)
    wheres.push(afterCursor(filter.cursor, filter.order ?? NEWEST_FIRST, (value, type) => `${bind(value)}::${type}`))
  if (filter.ids) wheres.push(`query_id = any(${bind(filter.ids)}::text[])`)
  if (filter.without?.length) wheres.push(`query_id <> all(${bind(filter.without)}::text[])`)
  return wheres
}

/** A condition that lets Postgres use the index of short texts, or that of long ones. */
function lengthCondition(column: EqualColumn, characters: number, areLonger: boolean): string {
  return `coalesce(length(${column}), 0) ${areLonger ? '>' : '<='} ${characters}`
}

function isLonger(text: string, characters: number): boolean {
  return firstCharacters(text, characters) !== text
}

function groupCondition(group: string): string {
  return `groups @> jsonb_build_array(${group}::text)`
}

/** The hashes of the lists of groups that have a group. There are about as many different lists as users, or fewer. */
async function readGroupSets(query: QueryRows, group: string): Promise<string[]> {
  const rows = await query(GROUP_SETS, [group])
  return rows.map((row) => String(row['hash']))
}

/**
 * Each list costs one look-up in an index, no matter how many queries have it. The look-up has an order: without one,
 * Postgres reads the whole table to find one of the queries with a list.
 */
const GROUP_SETS = `
  with recursive sets(hash, groups) as (
    (select jsonb_hash_extended(groups, 0), groups from queries where ended_at is not null and groups is not null
     order by jsonb_hash_extended(groups, 0) limit 1)
    union all
    select later.hash, later.groups from sets, lateral (
      select jsonb_hash_extended(q.groups, 0) as hash, q.groups from queries q
      where ended_at is not null and q.groups is not null and jsonb_hash_extended(q.groups, 0) > sets.hash
      order by jsonb_hash_extended(q.groups, 0) limit 1) later)
  select hash::text as hash from sets where ${groupCondition('$1')}`

/** A condition on the table `queries` for the queries that a user may see. */
export function seenQueriesCondition(seen: SeenQueries, bind: (value: string | readonly string[]) => string): string {
  const { runAs, posted } = seenParts(seen, false, bind)
  return `(${runAs} or ${posted})`
}

/**
 * Conditions for the queries that run as one of the users, for those that run as another user, and for those that the
 * poster posted as another user.
 * @param isHashed whether the conditions also have the hashes of the names, for the indexes `queries_by_…`
 */
function seenParts(
  { users, poster }: SeenQueries,
  isHashed: boolean,
  bind: (value: string | readonly string[]) => string,
) {
  const names = bind(users)
  const beginnings = bind(users.map((user) => firstCharacters(user, 200)))
  const hashes = isHashed ? users.map((user) => `hashtext(${bind(user)})`) : []
  const wheres = [
    ...(isHashed ? [`hashtext(user_name) = any(array[${hashes.join(', ')}]::int[])`] : []),
    `left(user_name, 200) = any(${beginnings}::text[])`,
    `user_name = any(${names}::text[])`,
  ]
  const posted = `details->'session'->>'originalUser'`
  const by = bind(poster)
  return {
    runAs: `(${wheres.join(' and ')})`,
    runAsOther: `user_name <> all(${names}::text[])`,
    posted: `(${isHashed ? `hashtext(${posted}) = hashtext(${by}) and ` : ''}left(${posted}, 200) = left(${by}, 200)
      and ${posted} = ${by})`,
  }
}

/** The first characters of a text, as the tables count them: a surrogate pair is one. */
export function firstCharacters(text: string, characters: number): string {
  return Array.from(text.slice(0, 2 * characters))
    .slice(0, characters)
    .join('')
}

/** The part of a text that the tables search. */
function searched(text: string): string {
  return firstCharacters(text, SEARCHED_CHARACTERS)
}

/** The columns that must equal a value. The names of columns come from a closed list. */
export function equalTerms({ equal = {} }: QueryFilter): (readonly [EqualColumn, string])[] {
  return EQUAL_COLUMNS.flatMap((column) => {
    const value = equal[column]
    return value === undefined ? [] : [[column, value] as const]
  })
}

/** The columns with lists that must contain a value. */
export function listTerms({ group, tag }: QueryFilter): (readonly ['groups' | 'client_tags', string])[] {
  return [
    ...(group === undefined ? [] : [['groups', group] as const]),
    ...(tag === undefined ? [] : [['client_tags', tag] as const]),
  ]
}

/** Applies the same filter to a row that is not yet in the tables. */
export function passesFilter(row: QueryListRow, filter: QueryFilter): boolean {
  const { states, since, until, text, endedSince, cursor, ids, order = NEWEST_FIRST } = filter
  return (
    (!ids || ids.includes(row.query_id)) &&
    (!states || states.includes(row.state)) &&
    equalTerms(filter).every(([column, value]) => row[column] === value) &&
    listTerms(filter).every(([column, value]) => (JSON.parse(row[column] ?? '[]') as string[]).includes(value)) &&
    (since === undefined || row.created_at >= new Date(since).toISOString()) &&
    (until === undefined || row.created_at < new Date(until).toISOString()) &&
    (text === undefined || searched(row.sql_text).toLowerCase().includes(text.toLowerCase())) &&
    (endedSince === undefined || row.ended_at === null || row.ended_at >= endedSince) &&
    (!cursor || compareCursors(cursorOf(row, order), cursor, order) > 0)
  )
}

/** Escapes a text for LIKE: `\\` before special characters. */
export function likeText(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&')
}
