import type { TimeUnit } from '../../connectors/spi/scan-question.ts'
import { firstCharacters, seenQueriesCondition, type SeenQueries } from '../queries/queries.ts'
import type { HistoryColumn } from './tables.ts'

/** Adds a value as a parameter; returns the placeholder for the text. */
export type Bind = (value: string | readonly string[]) => string

/** The differences between the engines: Postgres over the read models, DuckDB over the archive's files. */
export interface Dialect {
  column(column: HistoryColumn): string
  cast(value: string, type: HistoryColumn['type']): string
  /** Whether a column equals one of some values; there is at least one. */
  among(column: HistoryColumn, values: readonly string[], bind: Bind): string
  equals(column: HistoryColumn, value: string): string
  /** The column in an order by code points. */
  ordered(column: HistoryColumn): string
  day(sql: string): string
  begun(unit: TimeUnit, sql: string): string
  /** A condition on the table `queries`, under the name `q`. */
  seen(sight: SeenQueries, bind: Bind): string
  /** A value as the driver should return it. `sum`: a sum that does not overflow silently. */
  shown(sql: string, type: HistoryColumn['type'] | 'integer'): string
  sum(sql: string, type: HistoryColumn['type']): string
}

export const POSTGRES: Dialect = {
  column: ({ sql }) => sql,
  cast: (value, type) => `${value}::${type}`,
  among({ sql, type, indexed }, values, bind) {
    const among = `${sql} = any(${bind(values)}::${type}[])`
    if (indexed === undefined) return among
    const beginnings = bind(values.map((value) => firstCharacters(value, indexed)))
    return `(left(${sql}, ${indexed}) = any(${beginnings}::text[]) and ${among})`
  },
  equals: equalsInPostgres,
  ordered: ({ sql, type }) => (type === 'text' ? `${sql} collate "C"` : sql),
  day: (sql) => `((${sql} at time zone 'UTC')::date)::text`,
  begun: (unit, sql) => `date_trunc('${unit}', ${sql}, 'UTC')`,
  seen: (sight, bind) => seenQueriesCondition(sight, bind),
  shown: (sql) => sql,
  // Postgres sums whole numbers in a wider type; the cast refuses a sum that does not fit.
  sum: (sql, type) => `sum(${sql})::${type}`,
}

const TYPES = {
  text: 'varchar',
  bigint: 'bigint',
  'double precision': 'double',
  boolean: 'boolean',
  timestamptz: 'timestamp',
  jsonb: 'varchar',
} as const

const inFiles = ({ sql, archived }: HistoryColumn): string => archived ?? sql

export const DUCKDB: Dialect = {
  column: inFiles,
  cast: (value, type) => `${value}::varchar::${TYPES[type]}`,
  among(column, values, bind) {
    const listed = values.map((value) => DUCKDB.cast(bind(value), column.type))
    return `${inFiles(column)} in (${listed.join(', ')})`
  },
  equals: (column, value) => `${inFiles(column)} = ${value}`,
  ordered: inFiles,
  day: (sql) => `cast(cast(${sql} as date) as varchar)`,
  begun: (unit, sql) => `date_trunc('${unit}', ${sql})`,
  seen(sight, bind) {
    const users = sight.users.map((user) => bind(user))
    return `(q.user_name in (${users.join(', ')}) or q.original_user = ${bind(sight.poster)})`
  },
  shown: (sql, type) => (type === 'timestamptz' ? `strftime(${sql}, '%Y-%m-%dT%H:%M:%S.%gZ')` : sql),
  // The sum may exceed the column's type: the code that adds the parts refuses it.
  sum: (sql, type) => (type === 'bigint' ? `cast(sum(${sql}) as varchar)` : `sum(${sql})`),
}

/** Compares for equality. The indexes on texts that users chose hold only their first characters. */
function equalsInPostgres({ sql, indexed }: HistoryColumn, value: string): string {
  const same = `${sql} = ${value}`
  return indexed === undefined ? same : `(left(${sql}, ${indexed}) = left(${value}, ${indexed}) and ${same})`
}
