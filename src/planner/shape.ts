import type { RenderedQuery } from './planned-statement.ts'
import type { Expr, RelationNode } from '../sql/analyzer/tree.ts'
import { childrenOfExpr } from '../sql/analyzer/walk.ts'

const MAX_SIMPLE_JOINS = 5
/** DuckDB plans longer chains of joins for seconds. */
const MAX_HARMLESS_JOINS = 20
const MAX_HARMLESS_TEXT = 50_000

interface Counts {
  joins: number
  scans: number
  /** Whether the query has UNNEST, sequence, lambda or recursion. */
  multiplies: boolean
  grows: boolean
  /** Whether there are only scans, filters and projections: each output row comes from one input row. */
  rowWise: boolean
}

/** Properties of a query that the planner relies on. */
export function queryShape(node: RelationNode, sql: string): Pick<RenderedQuery, 'streams' | 'risky' | 'simple'> {
  const counts: Counts = { joins: 0, scans: 0, multiplies: false, grows: false, rowWise: true }
  visit(node, counts)
  return {
    streams: counts.rowWise && counts.scans === 1,
    risky: counts.grows || counts.multiplies || counts.joins > MAX_HARMLESS_JOINS || sql.length > MAX_HARMLESS_TEXT,
    simple: !counts.multiplies && !counts.grows && counts.joins <= MAX_SIMPLE_JOINS,
  }
}

function visitExpr(expr: Expr, counts: Counts): void {
  switch (expr.kind) {
    case 'lambda':
      counts.multiplies = true
      break
    case 'call':
      if (expr.routine !== undefined) visitExpr(expr.routine.body, counts)
      else if (expr.function.kind === 'scalar' && expr.function.risk.grows) counts.grows = true
      break
    case 'scalarSubquery':
    case 'exists':
    case 'inSubquery':
    case 'quantified':
      counts.rowWise = false
      visit(expr.query.node, counts)
      break
  }
  for (const child of childrenOfExpr(expr)) visitExpr(child, counts)
}

function visit(node: RelationNode, counts: Counts): void {
  const all = (exprs: readonly Expr[]): void => exprs.forEach((expr) => visitExpr(expr, counts))
  switch (node.kind) {
    case 'scan':
      counts.scans++
      return
    case 'arrays':
      all(node.arrays)
      counts.rowWise = false
      return
    case 'values':
      node.rows.forEach(all)
      counts.rowWise = false
      return
    case 'filter':
      visitExpr(node.predicate, counts)
      visit(node.input, counts)
      return
    case 'project':
      all(node.columns.map((column) => column.expression))
      visit(node.input, counts)
      return
    case 'join':
      counts.joins++
      if (node.condition !== undefined) visitExpr(node.condition, counts)
      visit(node.left, counts)
      visit(node.right, counts)
      // UNNEST of a row's own arrays works row by row; any other join needs all rows of one side.
      if (!(node.lateral && node.right.kind === 'unnest')) counts.rowWise = false
      return
    case 'unnest':
      counts.multiplies = true
      all(node.arguments.map((argument) => argument.value))
      return
    case 'aggregate':
      counts.rowWise = false
      all(node.aggregates.map((aggregate) => aggregate.call))
      visit(node.input, counts)
      return
    case 'window':
      counts.rowWise = false
      all(node.columns.map((column) => column.call))
      visit(node.input, counts)
      return
    case 'distinct':
    case 'sort':
    case 'limit':
      counts.rowWise = false
      visit(node.input, counts)
      return
    case 'sample':
    case 'barrier':
      visit(node.input, counts)
      return
    case 'set':
      counts.rowWise = false
      node.inputs.forEach((input) => visit(input.node, counts))
      return
    case 'with':
      node.tables.forEach((table) => {
        visit(table.node, counts)
        if (table.step !== undefined) {
          counts.multiplies = true
          visit(table.step.node, counts)
        }
      })
      visit(node.body, counts)
      return
    case 'cte':
      counts.rowWise = false
      return
    case 'sequence':
      counts.multiplies = true
      counts.rowWise = false
      return
  }
}
