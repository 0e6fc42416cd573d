import { EngineError } from '../../shared/engine-error.ts'
import { columnOf } from './build.ts'
import { newId, type AnalysisContext } from './context.ts'
import { joinedByEquality } from './subqueries.ts'
import type { ComputedColumn, ColumnId, Expr, JoinNode, RelationNode } from './tree.ts'
import { isQuery, mapChildren, someExpr, visitColumns } from './walk.ts'

interface Side {
  readonly node: RelationNode
  readonly columns: ReadonlySet<ColumnId>
}

/**
 * A LEFT, RIGHT or FULL join whose condition contains queries, which DuckDB does not allow there. A query that reads at
 * most one side is computed beside that side's columns. For other queries, the join becomes LATERAL: each row is joined
 * with its matches. FULL joins are then refused.
 */
export function outerJoinWithQueries(
  context: AnalysisContext,
  type: 'left' | 'right' | 'full',
  condition: Expr,
  left: Side,
  right: Side,
): JoinNode {
  const beside: { readonly left: ComputedColumn[]; readonly right: ComputedColumn[] } = { left: [], right: [] }
  const terms = condition.kind === 'and' ? condition.terms : [condition]
  const hoist = (expr: Expr): Expr => {
    if (!isQuery(expr)) return mapChildren(expr, hoist)
    let [readsLeft, readsRight] = [false, false]
    visitColumns(expr, (id) => {
      readsLeft ||= left.columns.has(id)
      readsRight ||= right.columns.has(id)
    })
    if (readsLeft && readsRight) return expr
    const id = newId(context)
    const side = readsRight ? 'right' : 'left'
    const lets = type !== 'full' && type !== side && terms.includes(expr)
    beside[side].push({ id, expression: lets ? joinedByEquality(expr) : expr })
    return columnOf(id, expr.type)
  }
  const rest = hoist(condition)
  const join: JoinNode = {
    kind: 'join',
    type,
    lateral: false,
    left: withColumns(left.node, beside.left),
    right: withColumns(right.node, beside.right),
    condition: rest,
  }
  if (!someExpr(rest, isQuery)) return join
  if (type === 'full') {
    throw new EngineError(
      'NOT_SUPPORTED',
      'FULL JOIN with a subquery over both sides in its condition is not supported',
    )
  }
  return type === 'left'
    ? { ...join, lateral: true }
    : { ...join, type: 'left', lateral: true, left: join.right, right: join.left }
}

function withColumns(node: RelationNode, columns: readonly ComputedColumn[]): RelationNode {
  return columns.length === 0 ? node : { kind: 'project', input: node, columns }
}
