import type { ColumnId, Expr, RelationNode, UnnestNode } from '../analyzer/tree.ts'
import { childrenOfExpr, collectDefined, visitColumns } from '../analyzer/walk.ts'
import type { RenderState } from './render-state.ts'

/**
 * Notes what DuckDB gets wrong in a query that belongs to a row: aggregations without keys and UNNEST.
 *
 * Of an aggregation it leaves out the one row where it is all NULL, so that the outer join around the query makes it up;
 * which it does not know to be wrong where something but expressions over the aggregates lies between. A `count(*)` beside
 * them, which is never NULL, keeps the row. An UNNEST it joins with the row itself, and fails where the query reads more of
 * the row than the arrays, unless the UNNEST has a FROM. A common table of the query around it it takes for correlated, and
 * refuses a FULL join of one: such a join has its own. In lambdas it finds no columns of the row at all (`outerColumns`).
 */
export function noteQueryOfRow(state: RenderState, node: RelationNode): void {
  visit(state, node, false)
  const inner = new Set<ColumnId>()
  collectDefined(node, inner)
  visitColumns(node, (id) => {
    if (!inner.has(id)) state.outerColumns.add(id)
  })
}

/** Renders what an UNNEST beside a row reads of it: lambdas find no columns of the row there either. */
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
