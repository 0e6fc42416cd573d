import type { TableWrite } from '../events/projection.ts'

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
  const arrays = names.map((column, index) => `$${index + 1}::${columns[column]}[]`)
  const keys = key.map((column) => `"${column}"`).join(', ')
  const insert = `insert into ${name} (${quoted.join(', ')}) select * from unnest(${arrays.join(', ')}) on conflict`
  const rest = names.filter((column) => !key.includes(column))
  const updates = rest.map((column) => `"${column}" = excluded."${column}"`)
  const upsertText = `${insert} (${keys}) do update set ${updates.join(', ')}`
  const insertText = `${insert} do nothing`

  const write = (statement: string, text: string, rows: readonly RowOf<C>[]): TableWrite | undefined => {
    if (rows.length === 0) return undefined
    const unique = rows.length === 1 ? rows : [...new Map(rows.map((row) => [keyOf(row, key), row])).values()]
    return { name: statement, text, values: names.map((column) => unique.map((row) => row[column] ?? null)) }
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
