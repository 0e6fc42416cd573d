import type { Recorded } from '../../events/event-log.ts'
import type { QueryRows } from '../../events/projection.ts'
import type { ArchivedName } from '../archive/archived-tables.ts'
import { readArchivedQueries, type QueriesPeriod } from '../archive/query-periods.ts'
import { readFiles, type ArchivedFiles } from '../history/read-archive.ts'
import { DUCKDB, POSTGRES, type Bind, type Dialect } from '../history/dialect.ts'
import { costText, type Prices } from '../history/prices.ts'
import { ARCHIVED_COLUMNS, readStreamPage, storedEvent, type StreamUntil } from '../query-events/queries.ts'
import {
  equalTerms,
  likeText,
  listTerms,
  queryListRow,
  readQueries,
  readSearchStart,
  readStateTotals,
  SEARCHED_CHARACTERS,
  totalColumns,
  totalsOf,
  type CostSql,
  type QueryFilter,
  type QueryListRow,
  type StateTotals,
} from './queries.ts'
import { afterCursor, NEWEST_FIRST, orderText, sortedRows } from './query-order.ts'
import { queriesTable } from './tables.ts'
import { splitColumn } from '../table.ts'

/** Recorded queries, read from the read models or from files of the archive. */
export interface StoredQueries {
  /** As `readStreamPage`. */
  page(stream: string, after: number, limit: number, until?: StreamUntil): Promise<Recorded[]>
  /** A stream up to its end. Wait for a barrier first. */
  stream(stream: string): AsyncIterable<Recorded>
  /** As `readQueries`. */
  list(filter: QueryFilter, limit: number, textCharacters: number): Promise<QueryListRow[]>
  /** The totals of the queries that match a filter, by state. */
  totals(filter: QueryFilter, prices: Prices | undefined): Promise<StateTotals[]>
  /** As `readSearchStart`. */
  searchStart(filter: QueryFilter): Promise<string | undefined>
}

const PAGE = 500

/** Reads the files after the read models: rows that move meanwhile are found in both, and returned once. */
export function createStoredQueries(read: QueryRows, files: ArchivedFiles): StoredQueries {
  async function page(stream: string, after: number, limit: number, until?: StreamUntil): Promise<Recorded[]> {
    const hot = await readStreamPage(read, stream, after, limit, until)
    // All events of a query are in one place, except late ones.
    if (hot[0]?.sequence === after + 1) return hot
    const { periods, forgotten } = await readArchivedQueries(read)
    const found = periods.filter((period) => period.first_id <= stream && stream <= period.last_id)
    if (found.length === 0) return hot
    const values: string[] = []
    const bind = binding(values)
    const time = until?.time === undefined ? 'true' : `"time" <= ${DUCKDB.cast(bind(until.time), 'timestamptz')}`
    const text = `select ${ARCHIVED_COLUMNS.join(', ')} from query_events where stream = ${bind(stream)}
      and sequence > ${DUCKDB.cast(bind(String(after)), 'bigint')}
      and sequence <= ${DUCKDB.cast(bind(String(until?.sequence ?? Number.MAX_SAFE_INTEGER)), 'bigint')} and ${time}
      order by sequence limit ${DUCKDB.cast(bind(String(limit)), 'bigint')}`
    const events = new Map<number, Recorded>()
    for await (const rows of readFiles(files, { text, values, reads: new Set(['query_events']) }, found, forgotten))
      for (const event of rows.map(storedEvent)) events.set(event.sequence, event)
    for (const event of hot) events.set(event.sequence, event)
    return [...events.values()].sort((a, b) => a.sequence - b.sequence).slice(0, limit)
  }

  /** The totals in the read models, and the periods of the same moment: read again while rows move into a period. */
  async function unmoved(filter: QueryFilter, prices: Prices | undefined) {
    for (let archived = await readArchivedQueries(read); ;) {
      const hot = await readStateTotals(read, filter, costSql(prices, POSTGRES))
      const now = await readArchivedQueries(read)
      if (now.periods.length === archived.periods.length) return { ...now, hot }
      archived = now
    }
  }

  return {
    page,
    async *stream(stream) {
      for (let last = 0; ;) {
        const events = await page(stream, last, PAGE)
        yield* events
        if (events.length < PAGE) return
        last = events.at(-1)!.sequence
      }
    },
    async list(filter, limit, textCharacters) {
      const hot = await readQueries(read, filter, limit, textCharacters)
      const { periods, forgotten } = await readArchivedQueries(read)
      const { order = NEWEST_FIRST } = filter
      const isNewestFirst = order.by === 'created' && order.descending
      const last = hot.length < limit || !isNewestFirst ? undefined : hot.at(-1)!.created_at
      const found = periods.filter(
        (period) => mayHave(period, filter) && (last === undefined || period.created_to >= last),
      )
      if (found.length === 0) return hot
      const rows = new Map<string, QueryListRow>()
      const statement = listStatement(filter, limit, textCharacters)
      for await (const chunk of readFiles(files, statement, found, forgotten))
        for (const values of chunk) {
          const row = queryListRow.parse(
            Object.fromEntries(NAMES.map((name, i) => [name, archivedCell(name, values[i])])),
          )
          rows.set(row.query_id, row)
        }
      for (const row of hot) rows.set(row.query_id, row)
      return sortedRows([...rows.values()], order).slice(0, limit)
    },
    async totals(filter, prices) {
      const { periods, forgotten, hot } = await unmoved(filter, prices)
      const found = periods.filter((period) => mayHave(period, filter))
      if (found.length === 0) return hot
      const totals = [...hot]
      for await (const chunk of readFiles(files, totalsStatement(filter, prices), found, forgotten))
        totals.push(...chunk.map(totalsOf))
      return totals
    },
    searchStart: (filter) => readSearchStart(read, filter),
  }
}

const NAMES = Object.keys(queryListRow.shape) as (keyof QueryListRow & keyof typeof queriesTable.columns)[]
const JSON_NAMES = new Set(NAMES.filter((name) => splitColumn(queriesTable.columns[name]).type === 'jsonb'))

/** A value from DuckDB, which returns JSON as text. */
function archivedCell(name: (typeof NAMES)[number], value: unknown): unknown {
  return typeof value === 'string' && JSON_NAMES.has(name) ? JSON.parse(value) : value
}

const TERMINAL: ReadonlySet<string> = new Set(['FINISHED', 'FAILED'])

function mayHave(period: QueriesPeriod, filter: QueryFilter): boolean {
  const { states, since, until, endedSince, cursor, order = NEWEST_FIRST } = filter
  const createdFirst = order.by === 'created' && order.descending ? cursor?.value : undefined
  return (
    (!states || states.some((state) => TERMINAL.has(state))) &&
    (since === undefined || period.created_to >= new Date(since).toISOString()) &&
    (until === undefined || period.created_from < new Date(until).toISOString()) &&
    (endedSince === undefined || period.ended_to >= endedSince) &&
    (createdFirst === undefined || period.created_from <= String(createdFirst))
  )
}

/** The query of `readQueries`, for DuckDB. */
function listStatement(filter: QueryFilter, limit: number, textCharacters: number) {
  const values: string[] = []
  const bind = binding(values)
  const whole = (value: number): string => DUCKDB.cast(bind(String(value)), 'bigint')
  const characters = whole(textCharacters)
  const columns = NAMES.map((name) =>
    name === 'sql_text' || name === 'error_message'
      ? `left(q.${name}, ${characters})`
      : DUCKDB.shown(`q.${name}`, splitColumn(queriesTable.columns[name]).type),
  )
  const where = whereText(filter, bind)
  return {
    text: `select ${columns.join(', ')} from queries q ${where}
      ${orderText(filter.order ?? NEWEST_FIRST)} limit ${whole(limit)}`,
    values,
    reads: readsOf(filter),
  }
}

function totalsStatement(filter: QueryFilter, prices: Prices | undefined) {
  const values: string[] = []
  const bind = binding(values)
  const where = whereText(filter, bind)
  const columns = totalColumns(costSql(prices, DUCKDB), bind)
  return { text: `select ${columns} from queries q ${where} group by state`, values, reads: readsOf(filter) }
}

function costSql(prices: Prices | undefined, dialect: Dialect): CostSql | undefined {
  return prices && ((bind) => costText(prices, dialect, (value) => bind(String(value))))
}

function readsOf({ table }: QueryFilter): ReadonlySet<ArchivedName> {
  return new Set<ArchivedName>(table ? ['queries', 'table_access'] : ['queries'])
}

/** The conditions of a filter on `queries q`. */
function whereText(filter: QueryFilter, bind: Bind): string {
  const { states, since, until, text, table, cursor, order = NEWEST_FIRST, endedSince, without, seen, ids } = filter
  const time = (value: string): string => DUCKDB.cast(bind(value), 'timestamptz')
  const listed = (all: readonly string[]): string => all.map((one) => bind(one)).join(', ')
  const wheres = [
    ...(states ? [`q.state in (${listed(states)})`] : []),
    ...equalTerms(filter).map(([column, value]) => `q.${column} = ${bind(value)}`),
    ...listTerms(filter).map(([column, value]) => `json_contains(q.${column}, to_json(${bind(value)}))`),
    ...(table
      ? [
          `exists (select 1 from table_access t where t.query_id = q.query_id and t.catalog_name = ${bind(table.catalog)}
            and t.schema_name = ${bind(table.schema)} and t.table_name = ${bind(table.table)})`,
        ]
      : []),
    ...(seen ? [DUCKDB.seen(seen, bind)] : []),
    ...(since === undefined ? [] : [`q.created_at >= ${time(new Date(since).toISOString())}`]),
    ...(until === undefined ? [] : [`q.created_at < ${time(new Date(until).toISOString())}`]),
    ...(endedSince === undefined ? [] : [`q.ended_at >= ${time(endedSince)}`]),
    ...(text === undefined
      ? []
      : [`left(q.sql_text, ${SEARCHED_CHARACTERS}) ilike ${bind(`%${likeText(text)}%`)} escape '\\'`]),
    ...(cursor ? [afterCursor(cursor, order, (value, type) => DUCKDB.cast(bind(value), type))] : []),
    ...(ids ? [ids.length > 0 ? `q.query_id in (${listed(ids)})` : 'false'] : []),
    ...(without?.length ? [`q.query_id not in (${listed(without)})`] : []),
  ]
  return wheres.length > 0 ? `where ${wheres.join(' and ')}` : ''
}

function binding(values: string[]): Bind {
  return (value) => `$${values.push(String(value))}`
}
