import type { ArraysNode, Expr, ScanNode, ValuesNode } from '../analyzer/tree.ts'
import { EMPTY, integer, joined, name as quoted, sql, type Sql } from '../../duckdb/text/sql.ts'
import { fromBlock, queryBlock, selectList, type Block } from './block.ts'
import { renderExpr } from './render-expression.ts'
import { columnName, type RenderState } from './render-state.ts'

export function renderScan(state: RenderState, scan: ScanNode): Block {
  const columns = scan.columns.filter((column) => state.needed.has(column.id))
  const index = state.scans.push({ scan, columns: columns.map((column) => column.name) }) - 1
  const shown = [...columns, ...(scan.rowIds ?? [])]
  const items = shown.map(({ id, name }) => sql`${quoted(name)} AS ${columnName(id)}`)
  return queryBlock(
    sql`SELECT ${selectList(items)} FROM ${quoted(`$s${index}`)}`,
    shown.map((column) => column.id),
  )
}

export function renderValues(state: RenderState, { columns, rows }: ValuesNode): Block {
  const ids = columns.map((column) => column.id)
  if (columns.length === 0) {
    return fromBlock({ sql: rows.length === 1 ? EMPTY : sql`range(${integer(rows.length)})`, kind: 'table' }, ids)
  }
  const rendered = (row: readonly Expr[]): readonly Sql[] => row.map((expr) => renderExpr(state, expr))
  const [first] = rows
  if (rows.length === 1) {
    const items = rendered(first!).map((text, i) => sql`${text} AS ${columnName(ids[i]!)}`)
    return queryBlock(sql`SELECT ${joined(items, ', ')}`, ids)
  }
  const list = rows.map((row) => sql`(${joined(rendered(row), ', ')})`)
  const names = joined(ids.map(columnName), ', ')
  const from = sql`(VALUES ${joined(list, ', ')}) AS ${state.names.fresh()}(${names})`
  return fromBlock({ sql: from, kind: 'table' }, ids)
}

/** UNNESTs in one SELECT expand side by side. */
export function renderArrays(state: RenderState, { columns, arrays }: ArraysNode): Block {
  const items = columns.map(({ id }, i) => sql`unnest(${renderExpr(state, arrays[i]!)}) AS ${columnName(id)}`)
  return queryBlock(
    sql`SELECT ${joined(items, ', ')}`,
    columns.map(({ id }) => id),
  )
}
