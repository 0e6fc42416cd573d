import type { TableWrite } from '../events/projection.ts'
import { storableJson } from '../events/storable-text.ts'

/** Types that columns of read models have, as Postgres names them. */
export type ColumnType = 'text' | 'bigint' | 'integer' | 'double precision' | 'boolean' | 'timestamptz' | 'jsonb'

/** What a column takes: integers and times as numbers and text, `jsonb` as JSON text. */
export type Cell = string | number | boolean | null

export type RowOf<C extends Readonly<Record<string, ColumnType>>> = { readonly [K in keyof C]: Cell }

export interface Table<C extends Readonly<Record<string, ColumnType>>> {
  readonly name: string
  /** One statement that inserts the rows or, by key, writes over them; the last of equal keys counts. */
  upsert(rows: readonly RowOf<C>[]): TableWrite | undefined
  /** As `upsert`, but rows that are there stay. */
  insert(rows: readonly RowOf<C>[]): TableWrite | undefined
}

export function defineTable<const C extends Readonly<Record<string, ColumnType>>>(
  name: string,
  key: readonly (keyof C & string)[],
  columns: C,
): Table<C> {
  const names = Object.keys(columns)
  const quoted = names.map((column) => `"${column}"`)
  const typed = names.map((column) => `"${column}" ${columns[column]}`)
  const keys = key.map((column) => `"${column}"`).join(', ')
  const insert = `insert into ${name} (${quoted.join(', ')})
    select ${quoted.join(', ')} from json_to_recordset($1::json) as r (${typed.join(', ')}) on conflict`
  const rest = names.filter((column) => !key.includes(column))
  const updates = rest.map((column) => `"${column}" = excluded."${column}"`)
  const upsertText = `${insert} (${keys}) do update set ${updates.join(', ')}`
  const insertText = `${insert} do nothing`
  const jsonColumns = names.filter((column) => columns[column] === 'jsonb')

  /** The row as a JSON object of what Postgres takes as text, with JSON text of its own put in as it is. */
  const toJson = (row: RowOf<C>): string => {
    if (jsonColumns.length === 0) return storableJson(row)
    const plain: Record<string, Cell> = { ...row }
    for (const column of jsonColumns) delete plain[column]
    const nested = jsonColumns.map((column) => `,"${column}":${row[column] ?? 'null'}`)
    return storableJson(plain).slice(0, -1) + nested.join('') + '}'
  }
  // One text, not an array a column: pg's escaping of arrays costs ten times as much as this, and their reading twice.
  const write = (statement: string, text: string, rows: readonly RowOf<C>[]): TableWrite | undefined => {
    if (rows.length === 0) return undefined
    const unique = rows.length === 1 ? rows : [...new Map(rows.map((row) => [keyOf(row, key), row])).values()]
    return { name: statement, text, values: [`[${unique.map(toJson).join(',')}]`] }
  }
  return {
    name,
    upsert: (rows) => write(`upsert-${name}`, upsertText, rows),
    insert: (rows) => write(`insert-${name}`, insertText, rows),
  }
}

function keyOf<R extends Readonly<Record<string, Cell>>>(row: R, key: readonly string[]): string {
  return key.map((column) => String(row[column])).join('\0')
}

/** A count for a `bigint` column. */
export function whole(value: number | undefined): number | null {
  return value === undefined ? null : Math.round(value)
}

/** Nanoseconds for a column in milliseconds. */
export function millis(nanos: number | undefined): number | null {
  return nanos === undefined ? null : nanos / 1e6
}
