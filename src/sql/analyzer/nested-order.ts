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
 * Trino does not compare arrays and rows where it comes to a NULL inside: a sort by them fails. DuckDB sorts NULL last
 * inside them, too, so what begins alike lies side by side, and comparing neighbours finds every such place.
 */

type Windows = readonly { readonly id: ColumnId; readonly call: WindowExpr }[]

/** A sort whose neighbours are compared where a key is an array or a row: by further keys, which are false in every row. */
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

/** Window calls over their input; what they need calculated once, or compared, is calculated below them. */
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

/** The input of an aggregation by these keys, and an aggregate of it whose ORDER BY compares as a sort does. */
export function checkedAggregate(
  context: AnalysisContext,
  input: RelationNode,
  keys: readonly Expr[],
  aggregate: AggregateExpr,
): { readonly node: RelationNode; readonly call: AggregateExpr } {
  const { orderBy, filter, distinct } = aggregate
  // What is distinct is sorted by its own values alone.
  if (distinct || !orderBy.some(({ value }) => isNested(value.type))) return { node: input, call: aggregate }
  const groups = filter === undefined ? keys : [...keys, filter]
  const { node, checks } = compared(context, input, groups, orderBy)
  return { node, call: { ...aggregate, orderBy: [...orderBy, ...checks] } }
}

/** `checks` are sort keys of one value that are calculated of each row and the one before it. */
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

/** False, once the two are compared. */
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
