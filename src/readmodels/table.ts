import { z } from 'zod'
import type { TableWrite } from '../events/projection.ts'
import { storableJson } from '../events/storable-text.ts'
import type { QueryId } from '../shared/ids.ts'

/**
 * Defines the tables of read models once, in code. The columns give the statements that write rows, the types of rows,
 * and the schema that reads them. A test compares them with the tables that the migrations make.
 */

/** Column types of read models, by their Postgres names. */
type ColumnType = 'text' | 'bigint' | 'integer' | 'double precision' | 'boolean' | 'timestamptz' | 'jsonb'

/** A column as a migration declares it; a type that ends in `null` may be null. */
export type Column = ColumnType | `${ColumnType} null`

export type Columns = Readonly<Record<string, Column>>

interface Values {
  readonly text: string
  readonly bigint: number
  readonly integer: number
  readonly 'double precision': number
  readonly boolean: boolean
  /** ISO UTC. */
  readonly timestamptz: string
  /** JSON text. */
  readonly jsonb: string
}

type ValueOf<C extends Column> = C extends `${infer T extends ColumnType} null`
  ? Values[T] | null
  : C extends ColumnType
    ? Values[C]
    : never

/** Columns of these names hold ids, in every table. */
interface Ids {
  readonly query_id: QueryId
}

type CellOf<C extends Columns, K extends keyof C> = K extends keyof Ids
  ? Ids[K] | Extract<ValueOf<C[K]>, null>
  : ValueOf<C[K]>

/** A row as it is written and read. */
export type RowOf<C extends Columns> = { readonly [K in keyof C]: CellOf<C, K> }

type RowSchema<C extends Columns> = z.ZodObject<{ -readonly [K in keyof C]: z.ZodType<CellOf<C, K>> }>

export interface ReadModelTable<C extends Columns> {
  readonly name: string
  readonly key: readonly (keyof C & string)[]
  readonly columns: C
  /** Schema of a row as pg returns it; code that reads only some columns picks or omits. */
  readonly row: RowSchema<C>
  /** One statement that inserts the rows or replaces those with the same key; the last of equal keys counts. */
  upsert(rows: readonly RowOf<C>[]): TableWrite | undefined
  /** As `upsert`, but existing rows stay. */
  insert(rows: readonly RowOf<C>[]): TableWrite | undefined
}

export function defineTable<const C extends Columns>(
  name: string,
  key: readonly (keyof C & string)[],
  columns: C,
): ReadModelTable<C> {
  const names = Object.keys(columns)
  const typeOf = (column: string): ColumnType => splitColumn(columns[column]!).type
  const quoted = names.map(quote)
  const typed = names.map((column) => `"${column}" ${typeOf(column)}`)
  const keys = key.map(quote).join(', ')
  const insert = `insert into ${name} (${quoted.join(', ')})
    select ${quoted.join(', ')} from json_to_recordset($1::json) as r (${typed.join(', ')}) on conflict`
  const rest = names.filter((column) => !key.includes(column))
  const updates = rest.map((column) => `"${column}" = excluded."${column}"`)
  const upsertText = `${insert} (${keys}) do update set ${updates.join(', ')}`
  const insertText = `${insert} do nothing`
  /** Each column with the text before its value. */
  const cells = names.map(
    (column, index) => [column, `${index === 0 ? '{' : ','}"${column}":`, typeOf(column) === 'jsonb'] as const,
  )

  /** The row as a JSON object of texts that Postgres accepts; JSON columns are inserted as they are. */
  const toJson = (row: RowOf<C>): string => {
    let text = ''
    for (const [column, start, isJson] of cells) {
      const value = row[column]
      text += start + (isJson ? (value ?? 'null') : cellJson(value))
    }
    return `${text}}`
  }
  // One text instead of an array per column: pg would take ten times as long to escape arrays, and the server twice as
  // long to read them.
  const write = (statement: string, text: string, rows: readonly RowOf<C>[]): TableWrite | undefined => {
    if (rows.length === 0) return undefined
    const unique = rows.length === 1 ? rows : [...new Map(rows.map((row) => [keyOf(row, key), row])).values()]
    return { name: statement, text, values: [`[${unique.map(toJson).join(',')}]`] }
  }
  return {
    name,
    key,
    columns,
    row: z.object(Object.fromEntries(names.map((column) => [column, valueSchema(columns[column]!)]))) as RowSchema<C>,
    upsert: (rows) => write(`upsert-${name}`, upsertText, rows),
    insert: (rows) => write(`insert-${name}`, insertText, rows),
  }
}

/** A value as JSON. Copying the row without its JSON columns, as an object, cost several times as much. */
function cellJson(value: string | number | boolean | null | undefined): string {
  if (value === undefined || value === null) return 'null'
  return typeof value === 'string' ? storableJson(value) : typeof value === 'number' ? jsonNumber(value) : `${value}`
}

function jsonNumber(value: number): string {
  return Number.isFinite(value) ? `${value}` : 'null'
}

function keyOf(row: Readonly<Record<string, unknown>>, key: readonly string[]): string {
  return key.map((column) => String(row[column])).join('\0')
}

function quote(column: string): string {
  return `"${column}"`
}

/** The columns that a row's schema reads, for a `select`. */
export function selected(row: z.ZodObject): string {
  return Object.keys(row.shape).map(quote).join(', ')
}

/** A column's type, and whether it may be null. */
export function splitColumn(column: Column): { readonly type: ColumnType; readonly nullable: boolean } {
  const nullable = column.endsWith(' null')
  return { type: (nullable ? column.slice(0, -' null'.length) : column) as ColumnType, nullable }
}

const readers = {
  text: z.string(),
  // pg returns text, because a bigint may be larger than a number.
  bigint: z.coerce.number(),
  integer: z.number(),
  'double precision': z.number(),
  boolean: z.boolean(),
  timestamptz: z.union([z.date().transform((time) => time.toISOString()), z.string()]),
  jsonb: z.unknown().transform(storableJson),
} as const satisfies { readonly [T in ColumnType]: z.ZodType<Values[T]> }

function valueSchema(column: Column): z.ZodType {
  const { type, nullable } = splitColumn(column)
  return nullable ? readers[type].nullable() : readers[type]
}

/** Rounds a count for a `bigint` column. */
export function whole(value: number): number
export function whole(value: number | undefined): number | null
export function whole(value: number | undefined): number | null {
  return value === undefined ? null : Math.round(value)
}

/** Converts nanoseconds for a column in milliseconds. */
export function millis(nanos: number): number
export function millis(nanos: number | undefined): number | null
export function millis(nanos: number | undefined): number | null {
  return nanos === undefined ? null : nanos / 1e6
}
