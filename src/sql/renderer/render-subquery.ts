import { comparisonKey, needsComparisonKey } from '../functions/comparison.ts'
import type { Subquery } from '../analyzer/tree.ts'
import { noteQueryOfRow } from './queries-of-rows.ts'
import { plainName, type Sql } from '../../duckdb/text/sql.ts'
import type { RenderState } from './render-state.ts'

const FIRST_COLUMN = plainName('c0')

/** Renders a subquery with one column. @param asKey whether the column is the comparison key of the values */
export function renderSubquery(state: RenderState, { node, columns }: Subquery, asKey = false): Sql {
  noteQueryOfRow(state, node)
  const [{ id, type }] = columns as readonly [Subquery['columns'][number]]
  const wrap = asKey && needsComparisonKey(type) ? (x: Sql): Sql => comparisonKey(type, x, state.names) : undefined
  return state.renderQuery(state, node, [{ column: id, name: FIRST_COLUMN, ...(wrap && { wrap }) }])
}
