import type { ColumnId, Expr, RelationNode, Subquery } from './tree.ts'
import { behindRules, childrenOfExpr } from './walk.ts'

/** The columns that are read to compute the outputs. */
export function neededColumns(root: RelationNode, outputs: readonly ColumnId[]): ReadonlySet<ColumnId> {
  return columnsRead(root, outputs, false)
}

/** The same without columns that only row filters and column masks read: the user may know about these columns. */
export function askedColumns(root: RelationNode, outputs: readonly ColumnId[]): ReadonlySet<ColumnId> {
  return columnsRead(root, outputs, true)
}

function columnsRead(root: RelationNode, outputs: readonly ColumnId[], withoutRules: boolean): ReadonlySet<ColumnId> {
  const definitions = new Map<ColumnId, ColumnId[]>()
  const roots: ColumnId[] = [...outputs]
  const define = (id: ColumnId, uses: readonly ColumnId[]): void => {
    const known = definitions.get(id)
    if (known === undefined) definitions.set(id, [...uses])
    else known.push(...uses.filter((use) => use !== id))
  }
  visitRelation(root, { define, use: (ids) => roots.push(...ids), withoutRules })

  const needed = new Set<ColumnId>()
  const pending = roots
  for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
    if (needed.has(id)) continue
    needed.add(id)
    pending.push(...(definitions.get(id) ?? []))
  }
  return needed
}

interface Uses {
  define(id: ColumnId, uses: readonly ColumnId[]): void
  /** Marks columns as read regardless of the outputs. */
  use(ids: readonly ColumnId[]): void
  /** Whether the rules around tables are skipped. */
  readonly withoutRules: boolean
}

/** The columns in an expression. Queries inside it are walked too, and their outputs count as read. */
function columnsOf(expr: Expr, uses: Uses): readonly ColumnId[] {
  switch (expr.kind) {
    case 'column':
      return [expr.id]
    case 'scalarSubquery':
      return subqueryColumns(expr.query, uses)
    case 'exists':
      visitRelation(expr.query.node, uses)
      return []
    case 'inSubquery':
    case 'quantified':
      return [...columnsOf(expr.value, uses), ...subqueryColumns(expr.query, uses)]
    default:
      return childrenOfExpr(expr).flatMap((child) => columnsOf(child, uses))
  }
}

function subqueryColumns(query: Subquery, uses: Uses): readonly ColumnId[] {
  visitRelation(query.node, uses)
  return query.columns.map((column) => column.id)
}

function visitRelation(node: RelationNode, uses: Uses): void {
  switch (node.kind) {
    case 'scan':
    case 'sequence':
      return
    case 'values':
      // VALUES are rendered whole, so every column of every row is needed.
      node.columns.forEach(({ id }, i) =>
        uses.define(
          id,
          node.rows.flatMap((row) => columnsOf(row[i]!, uses)),
        ),
      )
      uses.use(node.columns.map((column) => column.id))
      return
    case 'arrays':
      uses.use(node.columns.map((column) => column.id))
      return
    case 'filter':
      uses.use(columnsOf(node.predicate, uses))
      break
    case 'project':
      for (const { id, expression } of node.columns) uses.define(id, columnsOf(expression, uses))
      break
    case 'join':
      if (node.condition !== undefined) uses.use(columnsOf(node.condition, uses))
      visitRelation(node.left, uses)
      visitRelation(node.right, uses)
      return
    case 'unnest':
      for (const { value, columns } of node.arguments) {
        const read = columnsOf(value, uses)
        uses.use(read)
        uses.use(columns)
        for (const column of columns) uses.define(column, read)
      }
      if (node.ordinality !== undefined) uses.use([node.ordinality])
      return
    case 'aggregate':
      for (const { id, input } of node.keys) {
        if (id !== input) uses.define(id, [input])
        uses.use([input])
      }
      for (const { id, call } of node.aggregates) uses.define(id, columnsOf(call, uses))
      break
    case 'window':
      for (const { id, call } of node.columns) uses.define(id, columnsOf(call, uses))
      break
    case 'distinct':
      uses.use(node.columns.map((column) => column.id))
      break
    case 'sort':
      uses.use(node.keys.map((key) => key.column))
      break
    case 'limit':
      uses.use((node.ties ?? []).map((key) => key.column))
      break
    case 'set':
      for (const { node: input, columns } of node.inputs) {
        node.columns.forEach(({ id }, i) => uses.define(id, [columns[i]!]))
        visitRelation(input, uses)
      }
      if (!(node.all && node.operator === 'union')) uses.use(node.columns.map((column) => column.id))
      return
    case 'with':
      for (const { node: table, step, columns } of node.tables) {
        visitRelation(table, uses)
        if (step === undefined) continue
        visitRelation(step.node, uses)
        columns.forEach(({ id }, i) => uses.define(id, [step.columns[i]!]))
        uses.use(columns.map((column) => column.id))
      }
      visitRelation(node.body, uses)
      return
    case 'cte':
      for (const { id, source } of node.columns) uses.define(id, [source])
      return
    case 'barrier':
      if (!uses.withoutRules) break
      for (const { id, column } of node.masked) uses.define(id, [column])
      return visitRelation(behindRules(node), uses)
    case 'sample':
      break
  }
  visitRelation(node.input, uses)
}
