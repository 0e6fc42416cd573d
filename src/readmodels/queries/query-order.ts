import type { QueryId } from '../../shared/ids.ts'

/** The columns by which a list of queries can be sorted, by the names of the REST interface. */
const SORT_COLUMNS = {
  created: 'created_at',
  elapsed: 'elapsed_ms',
  queued: 'queued_ms',
  cpu: 'cpu_ms',
  memory: 'peak_memory_bytes',
  read: 'raw_input_bytes',
  rows: 'output_rows',
} as const
export type SortName = keyof typeof SORT_COLUMNS
export const sortNames = Object.keys(SORT_COLUMNS) as readonly SortName[]

/** The order of a list of queries; among equal values by the id. */
export interface QueryOrder {
  readonly by: SortName
  readonly descending: boolean
}

export const NEWEST_FIRST: QueryOrder = { by: 'created', descending: true }

/** A position in a list: the value of the query there, by which the list is sorted. */
export interface QueryCursor {
  /** ISO UTC for `created`, a number for all others. */
  readonly value: string | number
  readonly queryId: QueryId
}

/** The columns of a row that decide about its position. */
export type OrderedRow = { readonly query_id: QueryId; readonly created_at: string } & Readonly<
  Record<Exclude<(typeof SORT_COLUMNS)[SortName], 'created_at'>, number | null>
>

/** The position of a row. */
export function cursorOf(row: OrderedRow, { by }: QueryOrder): QueryCursor {
  return { value: by === 'created' ? row.created_at : (row[SORT_COLUMNS[by]] ?? 0), queryId: row.query_id }
}

/** Compares two positions in the order of a list: negative if the first comes first. */
export function compareCursors(a: QueryCursor, b: QueryCursor, { descending }: QueryOrder): number {
  const up = compared(a.value, b.value) || compared(a.queryId, b.queryId)
  return descending ? -up : up
}

/** Sorts rows for a list. */
export function sortedRows<R extends OrderedRow>(rows: readonly R[], order: QueryOrder): R[] {
  return rows.toSorted((a, b) => compareCursors(cursorOf(a, order), cursorOf(b, order), order))
}

function compared<V extends string | number>(a: V, b: V): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** SQL of the value by which `queries q` is sorted. The indexes `queries_by_…` have the same expressions. */
function sortedValue(by: SortName): string {
  return by === 'created' ? 'q.created_at' : `coalesce(q.${SORT_COLUMNS[by]}, 0)`
}

/** `order by …` over `queries q`. */
export function orderText({ by, descending }: QueryOrder): string {
  const direction = descending ? 'desc' : 'asc'
  return `order by ${sortedValue(by)} ${direction}, q.query_id ${direction}`
}

/**
 * A condition on `queries q` for the queries after a position.
 * @param cast makes a parameter of a value with this type
 */
export function afterCursor(
  { value, queryId }: QueryCursor,
  { by, descending }: QueryOrder,
  cast: (value: string, type: 'timestamptz' | 'double precision' | 'text') => string,
): string {
  const type = by === 'created' ? 'timestamptz' : 'double precision'
  const position = `(${cast(String(value), type)}, ${cast(queryId, 'text')})`
  return `(${sortedValue(by)}, q.query_id) ${descending ? '<' : '>'} ${position}`
}
