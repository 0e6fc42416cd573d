import { isNested } from '../functions/comparison.ts'
import { BOOLEAN, type SqlType } from '../types/sql-type.ts'
import { columnOf, constantOf, windowOf } from './build.ts'
import { newId, type AnalysisContext } from './context.ts'
import type {
  AggregateExpr,
  ColumnId,
  ComputedColumn,
  Expr,
  ExprSortKey,
  RelationNode,
  SortKey,
  SortNode,
  WindowExpr,
} from './tree.ts'
import { isVolatile } from './walk.ts'

/**
 * Trino cannot compare arrays and rows if the comparison meets a NULL inside them: a sort by such values fails. DuckDB
 * sorts NULLs inside them last, so values with equal beginnings are adjacent, and comparing neighbors finds every such
 * case.
 */

type Windows = readonly { readonly id: ColumnId; readonly call: WindowExpr }[]

/**
 * A sort that compares neighboring rows if a key is an array or a row. The comparisons are extra sort keys that are
 * always false.
 */
export function checkedSort(context: AnalysisContext, input: RelationNode, keys: readonly SortKey[]): SortNode {
  if (!keys.some(({ type }) => isNested(type))) return { kind: 'sort', input, keys }
  const order = keys.map(({ column, type, descending, nullsFirst }) => ({
    value: columnOf(column, type),
    descending,
    nullsFirst,
  }))
  const { node, checks } = compared(context, input, [], order)
  return { kind: 'sort', input: node, keys: [...keys, ...checks.map(asSortKey)] }
}

/**
 * Window calls over their input. Volatile arguments and array or row keys are computed below them; the latter are also
 * compared.
 */
export function withWindows(context: AnalysisContext, input: RelationNode, windows: Windows): RelationNode {
  if (windows.length === 0) return input
  const computed: ComputedColumn[] = []
  const columnFor = (expr: Expr): Expr => {
    if (expr.kind === 'column' || expr.kind === 'constant' || expr.kind === 'lambda') return expr
    const id = newId(context)
    computed.push({ id, expression: expr })
    return columnOf(id, expr.type)
  }
  // A rendering may repeat its arguments.
  const prepared = windows.map(({ id, call: window }) => ({
    id,
    call: {
      ...window,
      arguments: window.arguments.map((argument) => (isVolatile(argument) ? columnFor(argument) : argument)),
      orderBy: window.orderBy.map((key) => (isNested(key.value.type) ? { ...key, value: columnFor(key.value) } : key)),
    },
  }))
  let node: RelationNode = computed.length === 0 ? input : { kind: 'project', input, columns: computed }
  const columns = prepared.map(({ id, call: window }) => {
    if (!window.orderBy.some(({ value }) => isNested(value.type))) return { id, call: window }
    const result = compared(context, node, window.partitionBy, window.orderBy)
    node = result.node
    return { id, call: { ...window, orderBy: [...window.orderBy, ...result.checks] } }
  })
  return { kind: 'window', input: node, columns }
}

/**
 * Prepares the input of an aggregation by these keys, and extends the aggregate's ORDER BY by the comparisons that a
 * sort makes.
 */
export function checkedAggregate(
  context: AnalysisContext,
  input: RelationNode,
  keys: readonly Expr[],
  aggregate: AggregateExpr,
): { readonly node: RelationNode; readonly call: AggregateExpr } {
  const { orderBy, filter, distinct } = aggregate
  // An aggregate with DISTINCT is sorted by its own arguments only.
  if (distinct || !orderBy.some(({ value }) => isNested(value.type))) return { node: input, call: aggregate }
  const groups = filter === undefined ? keys : [...keys, filter]
  const { node, checks } = compared(context, input, groups, orderBy)
  return { node, call: { ...aggregate, orderBy: [...orderBy, ...checks] } }
}

/**
 * Adds comparisons of each row with the previous row. `checks` are the resulting sort keys, which have the same value
 * in all rows.
 */
function compared(
  context: AnalysisContext,
  input: RelationNode,
  partitionBy: readonly Expr[],
  order: readonly ExprSortKey[],
): { readonly node: RelationNode; readonly checks: readonly ExprSortKey[] } {
  const before: { readonly id: ColumnId; readonly call: WindowExpr }[] = []
  const checks: ComputedColumn[] = []
  order.forEach(({ value }, i) => {
    if (!isNested(value.type)) return
    const id = newId(context)
    const equal = order.slice(0, i).map((key) => key.value)
    const over = { partitionBy: [...partitionBy, ...equal], orderBy: [ascending(value)] }
    before.push({ id, call: windowOf('lag', [value], over) })
    checks.push({ id: newId(context), expression: alwaysFalse(columnOf(id, value.type), value) })
  })
  const node: RelationNode = {
    kind: 'project',
    input: { kind: 'window', input, columns: before },
    columns: checks,
  }
  const asKey = ({ id }: ComputedColumn): ExprSortKey => ascending(columnOf(id, BOOLEAN))
  return { node, checks: checks.map(asKey) }
}

function ascending(value: Expr): ExprSortKey {
  return { value, descending: false, nullsFirst: false }
}

/** Compares the two values, then returns false. */
function alwaysFalse(left: Expr, right: Expr): Expr {
  const type: SqlType = BOOLEAN
  const no = constantOf(type, false)
  const when: Expr = { kind: 'compare', type, operator: '<', left, right }
  return { kind: 'case', type, branches: [{ when, then: no }], otherwise: no }
}

function asSortKey({ value, descending, nullsFirst }: ExprSortKey): SortKey {
  if (value.kind !== 'column') throw new Error('A sort key is a column')
  return { column: value.id, type: value.type, descending, nullsFirst }
}
