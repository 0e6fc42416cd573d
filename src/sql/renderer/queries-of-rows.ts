import type { ColumnId, Expr, RelationNode, UnnestNode } from '../analyzer/tree.ts'
import { childrenOfExpr, collectDefined, visitColumns } from '../analyzer/walk.ts'
import type { RenderState } from './render-state.ts'

/**
 * Records nodes that DuckDB handles incorrectly in a correlated query.
 * - An aggregation without keys: DuckDB omits its one row if all aggregates are NULL, and lets an outer join around the
 * query restore it. This is wrong if anything but expressions over the aggregates lies in between. An extra `count(*)`,
 * which is never NULL, keeps the row.
 * - UNNEST: DuckDB joins it with the outer row, and fails if the query reads more of the row than the arrays, unless
 * the UNNEST has a FROM.
 * - A FULL join of a common table of the outer query: DuckDB considers it correlated and refuses it, so such a join
 * gets its own common table.
 * - Lambdas: DuckDB finds no columns of the outer row in them (`outerColumns`).
 */
export function noteQueryOfRow(state: RenderState, node: RelationNode): void {
  visit(state, node, false)
  const inner = new Set<ColumnId>()
  collectDefined(node, inner)
  visitColumns(node, (id) => {
    if (!inner.has(id)) state.outerColumns.add(id)
  })
}

/** Renders the columns that an UNNEST reads from the row beside it: lambdas do not find columns of that row either. */
export function besideRow<Rendered>(
  state: RenderState,
  { arguments: args }: UnnestNode,
  render: () => Rendered,
): Rendered {
  const columns = new Set<ColumnId>()
  for (const { value } of args) {
    visitColumns(value, (id) => {
      if (!state.outerColumns.has(id)) columns.add(id)
    })
  }
  for (const id of columns) state.outerColumns.add(id)
  const rendered = render()
  for (const id of columns) state.outerColumns.delete(id)
  return rendered
}

function visit(state: RenderState, node: RelationNode, apart: boolean): void {
  switch (node.kind) {
    case 'aggregate':
      if (node.keys.length === 0 && node.sets === undefined && apart) state.rowPerGroup.add(node)
      visit(state, node.input, true)
      return
    case 'project': {
      const fromBelow = node.columns.every(({ expression }) => readsColumn(expression))
      visit(state, node.input, apart || !fromBelow)
      return
    }
    case 'filter':
    case 'barrier':
    case 'window':
    case 'distinct':
    case 'sort':
    case 'limit':
    case 'sample':
      visit(state, node.input, true)
      return
    case 'join':
      if (node.type === 'full') state.fullJoins.add(node)
      visit(state, node.left, true)
      if (!(node.lateral && node.right.kind === 'unnest')) visit(state, node.right, true)
      return
    case 'set':
      node.inputs.forEach((input) => visit(state, input.node, true))
      return
    case 'with':
      node.tables.forEach((table) => visit(state, table.node, true))
      visit(state, node.body, true)
      return
    case 'unnest':
      state.inQueryOfRow.add(node)
      return
    case 'scan':
    case 'values':
    case 'arrays':
    case 'cte':
    case 'sequence':
      return
  }
}

function readsColumn(expr: Expr): boolean {
  return expr.kind === 'column' || childrenOfExpr(expr).some(readsColumn)
}
