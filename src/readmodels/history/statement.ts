import type {
  ScanKey,
  ScanMeasure,
  ScanOrder,
  ScanQuestion,
  ScanTerm,
  TimeUnit,
} from '../../connectors/spi/scan-question.ts'
import type { ArchivedName } from '../archive/archived-tables.ts'
import type { SeenQueries } from '../queries/queries.ts'
import { DUCKDB, POSTGRES, type Bind, type Dialect } from './dialect.ts'
import { costText, type Prices } from './prices.ts'
import {
  historyViews,
  isHistoryView,
  type HistoryColumn,
  type HistoryOwner,
  type HistoryView,
  type HistoryViewName,
} from './tables.ts'

/** A statement for Postgres or DuckDB; its rows have the values of the requested columns, by position. */
export interface HistoryStatement {
  readonly text: string
  readonly values: readonly (string | readonly string[])[]
  /** The type of each value of a row. */
  readonly types: readonly AnswerType[]
}

export type AnswerType = HistoryColumn['type'] | 'date'

/** The user's rights to queries; undefined when the user sees everything. */
export type HistorySight = SeenQueries | undefined

/** The rights of the user and the prices: with the question, they determine the answer. */
export interface HistoryReader {
  readonly sight: HistorySight
  /** Absent: costs are NULL. */
  readonly prices?: Prices | undefined
}

/**
 * Translates a question into SQL over the read models. All values from outside are parameters.
 * @param columns of the table, or of the answer's groups
 * @param beside columns of the `from` to return after these, for a caller that builds more from them
 */
export function historyStatement(
  table: HistoryViewName,
  question: ScanQuestion,
  columns: readonly string[],
  reader: HistoryReader,
  beside: readonly string[] = [],
): HistoryStatement {
  const values: (string | readonly string[])[] = []
  const { text, types } = selectText(
    table,
    question,
    columns,
    { ...reader, bind: (value) => `$${values.push(value)}`, dialect: POSTGRES, reads: new Set() },
    beside,
  )
  return { text, values, types }
}

/** The same question as SQL over files of the archive, for DuckDB. Returns times as text and lists as JSON. */
export interface ArchivedStatement extends HistoryStatement {
  /** Tables that the statement reads; the caller must define each as a common table of that name before it. */
  readonly reads: ReadonlySet<ArchivedName>
}

export function archivedStatement(
  table: HistoryViewName,
  question: ScanQuestion,
  columns: readonly string[],
  reader: HistoryReader,
  beside: readonly string[] = [],
): ArchivedStatement {
  const values: (string | readonly string[])[] = []
  const reads = new Set<ArchivedName>()
  const bind = (value: string | readonly string[]): string => `$${values.push(value)}`
  const { text, types } = selectText(table, question, columns, { ...reader, bind, dialect: DUCKDB, reads }, beside)
  return { text, values, types, reads }
}

interface Selecting extends HistoryReader {
  readonly bind: Bind
  readonly dialect: Dialect
  /** Receives the names of the tables that are read. */
  readonly reads: Set<ArchivedName>
}

function selectText(
  table: string,
  { terms, groups, top }: ScanQuestion,
  columns: readonly string[],
  selecting: Selecting,
  beside: readonly string[] = [],
): Pick<HistoryStatement, 'text' | 'types'> {
  if (!isHistoryView(table)) throw new Error(`The history has no table ${JSON.stringify(table)}`)
  const { sight, bind, dialect, reads } = selecting
  const view: HistoryView = historyViews[table]
  for (const name of view.archived) reads.add(name)
  const columnOf = (name: string): HistoryColumn => {
    if (!Object.hasOwn(view.columns, name))
      throw new Error(`The history has no column ${JSON.stringify(name)} in ${table}`)
    return priced(view.columns[name]!)
  }
  const priced = pricedColumns(selecting)
  const conditions = [
    ...(view.where === undefined ? [] : [view.where]),
    ...(sight ? [ownedBy(view.owner, sight, selecting)] : []),
    ...terms.map((term) => termText(columnOf(term.column), term, selecting)),
  ]
  const where = conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''
  if (groups) {
    const keys = groups.keys.map((key) => keyText(key, columnOf, dialect))
    const answers = new Map(
      [...keys, ...groups.measures.map((one) => measureText(one, columnOf, dialect))].map((answer) => [
        answer.name,
        answer,
      ]),
    )
    const asked = columns.map((name) => answers.get(name)!)
    const by = keys.length > 0 ? `group by ${keys.map((key) => key.by).join(', ')}` : ''
    return {
      text: `select ${listed(asked.map(({ sql }) => sql))} from ${view.from} ${where} ${by}`,
      types: asked.map(({ type }) => type),
    }
  }
  const asked = columns.map(columnOf)
  const order =
    top && top.order.length > 0
      ? `order by ${top.order.map((key) => orderText(key, columnOf, dialect)).join(', ')}`
      : ''
  const limit = top ? `limit ${dialect.cast(bind(String(top.count)), 'bigint')}` : ''
  return {
    text: `select ${listed([...asked.map((one) => dialect.shown(dialect.column(one), one.type)), ...beside])} from ${view.from} ${where} ${order} ${limit}`,
    types: asked.map(({ type }) => type),
  }
}

type ColumnOf = (name: string) => HistoryColumn

/** Gives columns of prices their SQL. Each is made once, so that a select and its GROUP BY have the same text. */
function pricedColumns({ prices, dialect, bind }: Selecting): (column: HistoryColumn) => HistoryColumn {
  const made = new Map<NonNullable<HistoryColumn['priced']>, string>()
  return (column) => {
    const { priced, type } = column
    if (!priced || !prices) return column
    const sql =
      made.get(priced) ??
      (priced === 'cost' ? costText(prices, dialect, bind) : dialect.cast(bind(prices.currency), type))
    made.set(priced, sql)
    return { ...column, sql, archived: sql }
  }
}

interface Answer {
  readonly name: string
  readonly sql: string
  readonly type: AnswerType
}

/** The columns of a select. A row without columns is still a row. */
function listed(columns: readonly string[]): string {
  return columns.length > 0 ? columns.join(', ') : 'null'
}

function ownedBy(owner: HistoryOwner, sight: SeenQueries, { bind, dialect, reads }: Selecting): string {
  switch (owner.kind) {
    case 'self':
      return dialect.seen(sight, bind)
    case 'query':
      reads.add('queries')
      return `exists (select 1 from queries q where q.query_id = ${owner.id} and ${dialect.seen(sight, bind)})`
    case 'person': {
      const own = dialect.equals({ sql: owner.user, type: 'text', nullable: true, indexed: 200 }, bind(sight.self))
      return owner.originalUser === undefined ? own : `(${own} or ${owner.originalUser} = ${bind(sight.poster)})`
    }
  }
}

function termText(column: HistoryColumn, term: ScanTerm, selecting: Selecting): string {
  const { bind, dialect } = selecting
  const sql = dialect.column(column)
  if ('in' in term) {
    if (term.in.length === 1) return dialect.equals(column, dialect.cast(bind(term.in[0]!), column.type))
    return term.in.length === 0 ? 'false' : dialect.among(column, term.in, bind)
  }
  if ('compare' in term)
    return `${dialect.ordered(column)} ${term.compare} ${dialect.cast(bind(term.value), column.type)}`
  if ('like' in term) return `${sql} like ${bind(term.like)} escape ${bind(term.escape ?? '')}`
  if ('among' in term) {
    const { table, question, column: named } = term.among
    return `${sql} in (${selectText(table, question, [named], selecting).text})`
  }
  return `${sql} is ${term.isNull ? 'null' : 'not null'}`
}

function orderText({ column, descending, nullsFirst }: ScanOrder, columnOf: ColumnOf, dialect: Dialect): string {
  const found = columnOf(column)
  const nulls = found.nullable ? ` nulls ${nullsFirst ? 'first' : 'last'}` : ''
  return `${dialect.ordered(found)} ${descending ? 'desc' : 'asc'}${nulls}`
}

function keyText(
  { name, column, cut }: ScanKey,
  columnOf: ColumnOf,
  dialect: Dialect,
): Answer & { readonly by: string } {
  const found = columnOf(column)
  const sql = dialect.column(found)
  const answer = (by: string, type: AnswerType) => ({
    name,
    sql: type === 'date' ? by : dialect.shown(by, type),
    type,
    by,
  })
  if (cut === undefined) return answer(sql, found.type)
  // The unit is part of the text, because SQL cannot group by a parameter; it comes from a closed list.
  return cut === 'date'
    ? answer(dialect.day(sql), 'date')
    : answer(dialect.begun(timeUnitText(cut), sql), 'timestamptz')
}

const UNITS = {
  minute: 'minute',
  hour: 'hour',
  day: 'day',
  week: 'week',
  month: 'month',
  quarter: 'quarter',
  year: 'year',
} as const satisfies Record<TimeUnit, TimeUnit>

/** Checks a unit at runtime: the plan comes from the log. */
function timeUnitText(unit: TimeUnit): TimeUnit {
  if (!Object.hasOwn(UNITS, unit)) throw new Error(`No unit of time: ${JSON.stringify(unit)}`)
  return UNITS[unit]
}

function measureText({ name, of, column }: ScanMeasure, columnOf: ColumnOf, dialect: Dialect): Answer {
  if (column === undefined) return { name, sql: 'count(*)', type: 'bigint' }
  const found = columnOf(column)
  const sql = dialect.column(found)
  switch (of) {
    case 'count':
      return { name, sql: `count(${sql})`, type: 'bigint' }
    case 'min':
      return { name, sql: dialect.shown(`min(${dialect.ordered(found)})`, found.type), type: found.type }
    case 'max':
      return { name, sql: dialect.shown(`max(${dialect.ordered(found)})`, found.type), type: found.type }
    case 'sum':
      return { name, sql: dialect.sum(sql, found.type), type: found.type }
  }
}
