import type { ColumnId } from '../analyzer/tree.ts'
import { EMPTY, isEmpty, joined, sameSql, sql, type Sql } from '../../duckdb/text/sql.ts'
import { columnName, type Output, type RenderState } from './render-state.ts'

/** A column in ORDER BY: by its name in the select list where it stands `alone`; in an expression such names are none. */
export type SortText = (column: ColumnId, alone: boolean) => Sql

/** What stands in FROM. */
export interface FromItem {
  /** Empty: one row without columns. */
  readonly sql: Sql
  /** A query in parentheses, which alone may follow LATERAL; or a join, which stands in parentheses on the right of another. */
  readonly kind: 'query' | 'join' | 'table'
}

/** A SELECT being put together. Clauses are added in their order; what comes too late goes around it. */
export interface Block {
  /** Common tables in front of it, `name AS (…)`. */
  readonly with: readonly Sql[]
  readonly from: FromItem
  readonly where: readonly Sql[]
  /** GROUP BY … */
  readonly tail: Sql
  /** What can be read: each column as an expression over FROM. */
  readonly columns: ReadonlyMap<ColumnId, Sql>
  /** Some of `columns` are calculated: only the next SELECT may use them. */
  readonly computed: boolean
  readonly distinct: boolean
  /** Sort items over names or expressions, made when the SELECT is written. */
  readonly orderBy: ((text: SortText) => readonly Sql[]) | undefined
  readonly limit: Sql
}

export function fromBlock(from: FromItem, columns: Iterable<ColumnId>): Block {
  return {
    with: [],
    from,
    where: [],
    tail: EMPTY,
    columns: new Map([...columns].map((id) => [id, columnName(id)])),
    computed: false,
    distinct: false,
    orderBy: undefined,
    limit: EMPTY,
  }
}

/** A block that reads a query. */
export function queryBlock(query: Sql, columns: Iterable<ColumnId>): Block {
  return fromBlock(queryItem(query), columns)
}

function queryItem(query: Sql): FromItem {
  return { sql: sql`(${query})`, kind: 'query' }
}

/** Only FROM so far: it may stand in another FROM as it is. */
function isBare(block: Block): boolean {
  return block.with.length === 0 && block.where.length === 0 && isOpen(block)
}

/** FROM and WHERE alone: conditions, and calculations over its columns, may be added. */
export function isOpen(block: Block): boolean {
  return (
    isEmpty(block.tail) && !block.computed && !block.distinct && block.orderBy === undefined && isEmpty(block.limit)
  )
}

/** The block as an item of FROM. */
export function asFromItem(state: RenderState, block: Block): FromItem {
  if (isBare(block) && !isEmpty(block.from.sql)) return block.from
  return queryItem(selectText(block, neededOutputs(state, block)))
}

/** A new block that reads this one. */
export function wrapped(state: RenderState, block: Block): Block {
  const outputs = neededOutputs(state, block)
  return queryBlock(
    selectText(block, outputs),
    outputs.map((output) => output.column),
  )
}

export function opened(state: RenderState, block: Block): Block {
  return isOpen(block) ? block : wrapped(state, block)
}

export function neededOutputs(state: RenderState, block: Block): readonly Output[] {
  return [...block.columns.keys()]
    .filter((column) => state.needed.has(column))
    .map((column) => ({ column, name: columnName(column) }))
}

/** Items of a select list; a list must have one. */
export function selectList(items: readonly Sql[]): Sql {
  return items.length === 0 ? sql`1 AS one` : joined(items, ', ')
}

/** Conditions that must all hold, as a clause of its own. */
export function whereClause(conditions: readonly Sql[]): Sql {
  return conditions.length === 0 ? EMPTY : sql`WHERE ${joined(conditions, ' AND ')}`
}

export function withClause(tables: readonly Sql[]): Sql {
  return tables.length === 0 ? EMPTY : sql`WITH ${joined(tables, ', ')}`
}

/** Clauses one after the other; empty ones are left out. */
export function clauses(parts: readonly Sql[]): Sql {
  return joined(
    parts.filter((part) => !isEmpty(part)),
    ' ',
  )
}

/** The whole SELECT with these outputs; without any, rows of one constant. */
export function selectText(block: Block, outputs: readonly Output[]): Sql {
  const names = new Map<ColumnId, Sql>()
  const items = outputs.map(({ column, name, wrap }) => {
    const text = block.columns.get(column) ?? columnName(column)
    const value = wrap === undefined ? text : wrap(text)
    if (wrap === undefined && !names.has(column)) names.set(column, name)
    return sameSql(value, name) ? name : sql`${value} AS ${name}`
  })
  const sorted: SortText = (column, alone) =>
    (alone ? names.get(column) : undefined) ?? block.columns.get(column) ?? columnName(column)
  return clauses([
    withClause(block.with),
    block.distinct ? sql`SELECT DISTINCT ${selectList(items)}` : sql`SELECT ${selectList(items)}`,
    isEmpty(block.from.sql) ? EMPTY : sql`FROM ${block.from.sql}`,
    whereClause(block.where),
    block.tail,
    block.orderBy === undefined ? EMPTY : sql`ORDER BY ${joined(block.orderBy(sorted), ', ')}`,
    block.limit,
  ])
}
