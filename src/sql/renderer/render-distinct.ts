import { comparisonKey, needsComparisonKey } from '../functions/comparison.ts'
import type { DistinctNode, SetNode } from '../analyzer/tree.ts'
import { EMPTY, integer, isEmpty, joined, sql, type Sql } from '../../duckdb/text/sql.ts'
import { clauses, opened, queryBlock, whereClause, withClause, wrapped, type Block } from './block.ts'
import { columnName, type RenderState } from './render-state.ts'

export function renderDistinct(state: RenderState, { columns }: DistinctNode, inner: Block): Block {
  const special = columns.filter((column) => needsComparisonKey(column.type))
  if (special.length > 0) {
    const block = opened(state, inner)
    const keys = columns.map(({ id, type }) => comparisonKey(type, columnName(id), state.names))
    const text = joined(
      columns.map(({ id }) => columnName(id)),
      ', ',
    )
    return queryBlock(
      clauses([
        withClause(block.with),
        sql`SELECT DISTINCT ON (${joined(keys, ', ')}) ${text}`,
        isEmpty(block.from.sql) ? EMPTY : sql`FROM ${block.from.sql}`,
        whereClause(block.where),
      ]),
      columns.map((column) => column.id),
    )
  }
  const block =
    isEmpty(inner.tail) && !inner.distinct && inner.orderBy === undefined && isEmpty(inner.limit)
      ? inner
      : wrapped(state, inner)
  const kept = new Map(columns.map(({ id }) => [id, block.columns.get(id) ?? columnName(id)]))
  return { ...block, columns: kept, distinct: true, computed: true }
}

export const SET_OPERATORS = {
  union: ' UNION ',
  intersect: ' INTERSECT ',
  except: ' EXCEPT ',
  'union all': ' UNION ALL ',
  'intersect all': ' INTERSECT ALL ',
  'except all': ' EXCEPT ALL ',
} as const

/**
 * A set operation over types with several representations of equal values (zones, maps): compares by keys and shows one
 * value of each.
 */
export function keyedSet(state: RenderState, node: SetNode, texts: readonly Sql[]): Block {
  const keyNames = node.columns.map(() => state.names.fresh())
  const keys = node.columns.map(
    ({ id, type }, i) => sql`${comparisonKey(type, columnName(id), state.names)} AS ${keyNames[i]!}`,
  )
  // With ALL, equal rows are numbered so that they stay distinct.
  const number = state.names.fresh()
  const keyNamesOf = node.all ? [...keyNames, number] : keyNames
  const keyed = texts.map((text) => {
    const rows = sql`SELECT *, ${joined(keys, ', ')} FROM (${text})`
    if (!node.all) return rows
    return sql`SELECT *, row_number() OVER (PARTITION BY ${joined(keyNames, ', ')}) AS ${number} FROM (${rows})`
  })
  const ids = node.columns.map((column) => column.id)
  const shown = ids.map((id) => sql`any_value(${columnName(id)}) AS ${columnName(id)}`)
  const side = state.names.fresh()
  const all = keyed.map((text, i) => sql`SELECT *, ${integer(i)} AS ${side} FROM (${text})`)
  const having = {
    union: EMPTY,
    intersect: sql`HAVING count(DISTINCT ${side}) = ${integer(texts.length)}`,
    except: sql`HAVING max(${side}) = 0`,
  }[node.operator]
  return queryBlock(
    clauses([
      sql`SELECT ${joined(shown, ', ')} FROM (${joined(all, ' UNION ALL ')}) GROUP BY ${joined(keyNamesOf, ', ')}`,
      having,
    ]),
    ids,
  )
}
