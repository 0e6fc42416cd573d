import type { ColumnId } from '../analyzer/tree.ts'
import { EMPTY, isEmpty, joined, sameSql, sql, type Sql } from '../../duckdb/text/sql.ts'
import { columnName, type Output, type RenderState } from './render-state.ts'

/**
 * Renders a column in ORDER BY: by its name in the select list if it stands `alone`; inside an expression such names
 * are unknown.
 */
export type SortText = (column: ColumnId, alone: boolean) => Sql

/** An item of FROM. */
export interface FromItem {
  /** Empty for one row without columns. */
  readonly sql: Sql
  /**
   * `query`: a query in parentheses; only this may follow LATERAL. `join`: needs parentheses on the right of another
   * join.
   */
  readonly kind: 'query' | 'join' | 'table'
}

/** A SELECT under construction. Clauses are added in SQL's order; a clause that comes too late wraps the block. */
export interface Block {
  /** Common tables before the SELECT, `name AS (…)`. */
  readonly with: readonly Sql[]
  readonly from: FromItem
  readonly where: readonly Sql[]
  /** GROUP BY … */
  readonly tail: Sql
  /** The readable columns, each as an expression over FROM. */
  readonly columns: ReadonlyMap<ColumnId, Sql>
  /** Whether some of `columns` are computed: only an outer SELECT may use them. */
  readonly computed: boolean
  readonly distinct: boolean
  /** Sort items over names or expressions, rendered together with the SELECT. */
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

/** Whether the block consists only of FROM: it may stand in another FROM unchanged. */
function isBare(block: Block): boolean {
  return block.with.length === 0 && block.where.length === 0 && isOpen(block)
}

/** Whether the block has only FROM and WHERE: conditions and expressions over its columns may be added. */
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

/** A new block that reads this one as a subquery. */
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

/** The items of a select list, which must not be empty. */
export function selectList(items: readonly Sql[]): Sql {
  return items.length === 0 ? sql`1 AS one` : joined(items, ', ')
}

/** The WHERE clause of conditions that must all hold. */
export function whereClause(conditions: readonly Sql[]): Sql {
  return conditions.length === 0 ? EMPTY : sql`WHERE ${joined(conditions, ' AND ')}`
}

export function withClause(tables: readonly Sql[]): Sql {
  return tables.length === 0 ? EMPTY : sql`WITH ${joined(tables, ', ')}`
}

/** Joins clauses, without empty ones. */
export function clauses(parts: readonly Sql[]): Sql {
  return joined(
    parts.filter((part) => !isEmpty(part)),
    ' ',
  )
}

/** The whole SELECT with these outputs; without outputs, rows of one constant. */
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
