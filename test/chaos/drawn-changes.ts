import type { Random } from './random.ts'

/**
 * A change of rows or of the name of a table, or of a materialized view. The server and the model in DuckDB run the same
 * text; only materialized views are tables in the model.
 */
export type DrawnChange =
  | {
      readonly operation: 'INSERT' | 'MERGE' | 'CREATE'
      readonly table: string
      readonly keys: readonly number[]
      readonly value: number
    }
  | {
      readonly operation: 'UPDATE' | 'DELETE'
      readonly table: string
      readonly divisor: number
      readonly remainder: number
      readonly value: number
    }
  | { readonly operation: 'RENAME'; readonly table: string; readonly to: string }
  | { readonly operation: 'DROP' | 'CREATE VIEW' | 'REFRESH'; readonly table: string }

/** All writers change rows of this table at the same time, each its own. */
export const CHANGED = 'changed'
const COLUMNS = 'w varchar, k integer, v integer'

/** @param schema ends with a dot */
export const createChanged = (schema: string): string => `CREATE TABLE IF NOT EXISTS ${schema}${CHANGED} (${COLUMNS})`

/** The errors that a change may end with, depending on how earlier ones ended. */
export const refusals: ReadonlySet<string> = new Set(['TABLE_NOT_FOUND', 'TABLE_ALREADY_EXISTS'])

/** The name in the rows and tables of a writer. */
export function ownerOf(client: string): string {
  return client.replaceAll('-', '_')
}

/** Draws the changes of one writer, from a seed alone: the writer does not need to know how the earlier ones ended. */
export class ChangeDrawer {
  readonly #random: Random
  readonly #owner: string
  #drawn = 0
  /** The further statements of a swap that has begun. */
  #later: DrawnChange[] = []

  constructor(random: Random, owner: string) {
    this.#random = random
    this.#owner = owner
  }

  next(): DrawnChange {
    const change = this.#later.shift() ?? this.#draw()
    this.#drawn++
    return change
  }

  #draw(): DrawnChange {
    const random = this.#random
    const own = swappedTable(this.#owner)
    if (this.#drawn === 0) return { operation: 'CREATE', table: own, ...this.#rows() }
    if (this.#drawn === 1) return { operation: 'CREATE VIEW', table: viewOf(this.#owner) }
    if (random.chance(0.2)) return { operation: 'REFRESH', table: viewOf(this.#owner) }
    if (random.chance(0.2)) {
      // As dbt replaces a table.
      this.#later = [
        { operation: 'RENAME', table: own, to: `${own}_old` },
        { operation: 'RENAME', table: `${own}_tmp`, to: own },
        { operation: 'DROP', table: `${own}_old` },
      ]
      return { operation: 'CREATE', table: `${own}_tmp`, ...this.#rows() }
    }
    const table = random.chance(0.7) ? CHANGED : own
    if (random.chance(0.5)) return { operation: random.pick(['INSERT', 'MERGE', 'MERGE']), table, ...this.#rows() }
    const divisor = random.whole(2, 5)
    const operation = random.pick(['UPDATE', 'UPDATE', 'DELETE'] as const)
    return { operation, table, divisor, remainder: random.whole(0, divisor - 1), value: random.whole(1, 9) }
  }

  #rows(): { readonly keys: readonly number[]; readonly value: number } {
    const first = this.#random.whole(0, 60)
    const count = this.#random.pick([1, 3, 40])
    return { keys: Array.from({ length: count }, (_, index) => first + index), value: this.#random.whole(0, 9) }
  }
}

export function swappedTable(owner: string): string {
  return `swap_${owner}`
}

/** The materialized view of a writer over its rows of `CHANGED`. */
export function viewOf(owner: string): string {
  return `mv_${owner}`
}

/** @param schema ends with a dot */
export function textOfChange(change: DrawnChange, owner: string, schema: string): string {
  const table = `${schema}${change.table}`
  switch (change.operation) {
    case 'INSERT':
      return `INSERT INTO ${table} VALUES ${rowsOf(change, owner)}`
    case 'CREATE':
      return `CREATE TABLE ${table} AS SELECT * FROM (VALUES ${rowsOf(change, owner)}) AS s(w, k, v)`
    case 'UPDATE':
      return `UPDATE ${table} SET v = v + ${change.value} WHERE w = '${owner}' AND k % ${change.divisor} = ${change.remainder}`
    case 'DELETE':
      return `DELETE FROM ${table} WHERE w = '${owner}' AND k % ${change.divisor} = ${change.remainder}`
    case 'MERGE':
      return `MERGE INTO ${table} AS t USING (VALUES ${rowsOf(change, owner)}) AS s(w, k, v) ON (t.w = s.w AND t.k = s.k)
        WHEN MATCHED AND t.v > 30 THEN DELETE
        WHEN MATCHED THEN UPDATE SET v = t.v + s.v
        WHEN NOT MATCHED THEN INSERT (w, k, v) VALUES (s.w, s.k, s.v)`
    case 'RENAME':
      return `ALTER TABLE ${table} RENAME TO ${change.to}`
    case 'DROP':
      return `DROP TABLE ${table}`
    case 'CREATE VIEW':
      return `CREATE MATERIALIZED VIEW ${table} AS ${queryOfView(owner, schema)}`
    case 'REFRESH':
      return `REFRESH MATERIALIZED VIEW ${table}`
  }
}

/** The query of the materialized view of a writer. @param schema ends with a dot */
export function queryOfView(owner: string, schema: string): string {
  return `SELECT w, k, v FROM ${schema}${CHANGED} WHERE w = '${owner}'`
}

function rowsOf({ keys, value }: { readonly keys: readonly number[]; readonly value: number }, owner: string): string {
  return keys.map((key) => `('${owner}', ${key}, ${value})`).join(', ')
}
