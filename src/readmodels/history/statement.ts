import type { ScanKey, ScanMeasure, ScanOrder, ScanQuestion, ScanTerm } from '../../connectors/spi/scan-question.ts'
import type { SeenQueries } from '../queries/queries.ts'
import { seenQueriesCondition } from '../queries/queries.ts'
import {
  historyViews,
  type HistoryColumn,
  type HistoryOwner,
  type HistoryView,
  type HistoryViewName,
} from './tables.ts'

/** A statement for Postgres; its rows have the values of the columns that were asked for, by position. */
export interface HistoryStatement {
  readonly text: string
  readonly values: readonly unknown[]
  /** How each value is told by Postgres. */
  readonly types: readonly AnswerType[]
}

export type AnswerType = HistoryColumn['type'] | 'date'

/** Who looks: absent, where he sees all. */
export type HistorySight = SeenQueries | undefined

/**
 * What a question comes to in the read models. All that comes from outside is a parameter.
 * @param columns of the table, or of the answer's groups
 * @param beside columns of the `from` that are told behind these, for who makes more of them
 */
export function historyStatement(
  table: HistoryViewName,
  question: ScanQuestion,
  columns: readonly string[],
  sight: HistorySight,
  beside: readonly string[] = [],
): HistoryStatement {
  const values: unknown[] = []
  const { text, types } = selectText(
    table,
    question,
    columns,
    { sight, bind: (value) => `$${values.push(value)}` },
    beside,
  )
  return { text, values, types }
}

interface Selecting {
  readonly sight: HistorySight
  readonly bind: Bind
}

function selectText(
  table: string,
  { terms, groups, top }: ScanQuestion,
  columns: readonly string[],
  selecting: Selecting,
  beside: readonly string[] = [],
): Pick<HistoryStatement, 'text' | 'types'> {
  if (!isView(table)) throw new Error(`The history has no table ${JSON.stringify(table)}`)
  const { sight, bind } = selecting
  const view: HistoryView = historyViews[table]
  const columnOf = (name: string): HistoryColumn => {
    if (!Object.hasOwn(view.columns, name))
      throw new Error(`The history has no column ${JSON.stringify(name)} in ${table}`)
    return view.columns[name]!
  }
  const conditions = [
    ...(view.where === undefined ? [] : [view.where]),
    ...(sight ? [ownedBy(view.owner, sight, bind)] : []),
    ...terms.map((term) => termText(columnOf(term.column), term, selecting)),
  ]
  const where = conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''
  if (groups) {
    const keys = groups.keys.map((key) => keyText(key, columnOf))
    const answers = new Map(
      [...keys, ...groups.measures.map((one) => measureText(one, columnOf))].map((answer) => [answer.name, answer]),
    )
    const asked = columns.map((name) => answers.get(name)!)
    const by = keys.length > 0 ? `group by ${keys.map(({ sql }) => sql).join(', ')}` : ''
    return {
      text: `select ${listed(asked.map(({ sql }) => sql))} from ${view.from} ${where} ${by}`,
      types: asked.map(({ type }) => type),
    }
  }
  const asked = columns.map(columnOf)
  const order =
    top && top.order.length > 0 ? `order by ${top.order.map((key) => orderText(key, columnOf)).join(', ')}` : ''
  const limit = top ? `limit ${bind(top.count)}::bigint` : ''
  return {
    text: `select ${listed([...asked.map(({ sql }) => sql), ...beside])} from ${view.from} ${where} ${order} ${limit}`,
    types: asked.map(({ type }) => type),
  }
}

function isView(table: string): table is HistoryViewName {
  return Object.hasOwn(historyViews, table)
}

type Bind = (value: unknown) => string
type ColumnOf = (name: string) => HistoryColumn

interface Answer {
  readonly name: string
  readonly sql: string
  readonly type: AnswerType
}

/** A row without columns is still a row. */
function listed(columns: readonly string[]): string {
  return columns.length > 0 ? columns.join(', ') : 'null'
}

function ownedBy(owner: HistoryOwner, sight: SeenQueries, bind: Bind): string {
  switch (owner.kind) {
    case 'self':
      return seenQueriesCondition(sight, bind)
    case 'query':
      return `exists (select from queries q where q.query_id = ${owner.id} and ${seenQueriesCondition(sight, bind)})`
    case 'person': {
      const own = equals({ sql: owner.user, type: 'text', nullable: true, indexed: 200 }, bind(sight.self))
      return owner.originalUser === undefined ? own : `(${own} or ${owner.originalUser} = ${bind(sight.poster)})`
    }
  }
}

function termText(column: HistoryColumn, term: ScanTerm, selecting: Selecting): string {
  const { bind } = selecting
  if ('in' in term) {
    if (term.in.length === 1) return equals(column, `${bind(term.in[0])}::${column.type}`)
    const any = `${bind(term.in)}::${column.type}[]`
    const among = `${column.sql} = any(${any})`
    if (column.indexed === undefined) return among
    const beginnings = bind(term.in.map((value) => beginningOf(value, column.indexed!)))
    return `(left(${column.sql}, ${column.indexed}) = any(${beginnings}::text[]) and ${among})`
  }
  if ('compare' in term) return `${ordered(column)} ${term.compare} ${bind(term.value)}::${column.type}`
  if ('like' in term) return `${column.sql} like ${bind(term.like)} escape ${bind(term.escape ?? '')}`
  if ('among' in term) {
    const { table, question, column: named } = term.among
    return `${column.sql} in (${selectText(table, question, [named], selecting).text})`
  }
  return `${column.sql} is ${term.isNull ? 'null' : 'not null'}`
}

/** Indexes hold beginnings of what somebody else chose. */
function equals({ sql, indexed }: HistoryColumn, value: string): string {
  const same = `${sql} = ${value}`
  return indexed === undefined ? same : `(left(${sql}, ${indexed}) = left(${value}, ${indexed}) and ${same})`
}

/** Characters as Postgres counts them. */
function beginningOf(text: string, characters: number): string {
  return Array.from(text.slice(0, 2 * characters))
    .slice(0, characters)
    .join('')
}

/** Texts are ordered by their code points, whatever the database's language. */
function ordered({ sql, type }: HistoryColumn): string {
  return type === 'text' ? `${sql} collate "C"` : sql
}

function orderText({ column, descending, nullsFirst }: ScanOrder, columnOf: ColumnOf): string {
  const found = columnOf(column)
  const nulls = found.nullable ? ` nulls ${nullsFirst ? 'first' : 'last'}` : ''
  return `${ordered(found)} ${descending ? 'desc' : 'asc'}${nulls}`
}

function keyText({ name, column, cut }: ScanKey, columnOf: ColumnOf): Answer {
  const { sql, type } = columnOf(column)
  if (cut === undefined) return { name, sql, type }
  // One of a closed list, by its type: no parameter could be grouped by.
  return cut === 'date'
    ? { name, sql: `((${sql} at time zone 'UTC')::date)::text`, type: 'date' }
    : { name, sql: `date_trunc('${timeUnitText(cut)}', ${sql}, 'UTC')`, type: 'timestamptz' }
}

const UNITS = {
  minute: 'minute',
  hour: 'hour',
  day: 'day',
  week: 'week',
  month: 'month',
  quarter: 'quarter',
  year: 'year',
} as const

/** A plan is read from the log: what it names is looked up. */
function timeUnitText(unit: keyof typeof UNITS): string {
  if (!Object.hasOwn(UNITS, unit)) throw new Error(`No unit of time: ${JSON.stringify(unit)}`)
  return UNITS[unit]
}

function measureText({ name, of, column }: ScanMeasure, columnOf: ColumnOf): Answer {
  if (column === undefined) return { name, sql: 'count(*)', type: 'bigint' }
  const found = columnOf(column)
  switch (of) {
    case 'count':
      return { name, sql: `count(${found.sql})`, type: 'bigint' }
    case 'min':
      return { name, sql: `min(${ordered(found)})`, type: found.type }
    case 'max':
      return { name, sql: `max(${ordered(found)})`, type: found.type }
    case 'sum':
      // Of whole numbers Postgres makes a longer one, of which what does not fit is refused.
      return { name, sql: `sum(${found.sql})::${found.type}`, type: found.type }
  }
}
