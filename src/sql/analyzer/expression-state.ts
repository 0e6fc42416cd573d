import type { Expression, FunctionCall, GroupingOperation, Listagg } from '../syntax/ast.ts'
import { functionKind } from '../functions/resolve-function.ts'
import { childrenOf, type AnyNode } from '../syntax/tree.ts'
import { commonSuperType } from '../types/coercion.ts'
import { BOOLEAN, UNKNOWN, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { castTo } from './build.ts'
import { errorAt, type AnalysisContext, type ExpressionState, type FoundParts } from './context.ts'
import type { Expr } from './tree.ts'

/** Refuses aggregates, windows and GROUPING in a clause that does not allow them. */
export function verifyScalar(context: AnalysisContext, node: Expression, analyzed: FoundParts, clause: string): void {
  const nodes = [...analyzed.aggregates, ...analyzed.windows, ...analyzed.groupings.map((each) => each.node)]
  refuse(context, node, nodes, clause)
}

/** The same check on the syntax tree: Trino reports these errors before it resolves names and types. */
export function verifyWrittenScalar(context: AnalysisContext, node: Expression, clause: string): void {
  const { aggregates, windows, groupings } = writtenCalls(context, node)
  refuse(context, node, [...aggregates, ...windows, ...groupings], clause)
}

/**
 * The calls in an expression that are not scalar, according to the syntax; a window function counts even without OVER.
 */
export function writtenCalls(
  context: AnalysisContext,
  node: Expression,
): Readonly<Record<'aggregates' | 'windows' | 'groupings', readonly AnyNode[]>> {
  const [aggregates, windows, groupings]: [AnyNode[], AnyNode[], AnyNode[]] = [[], [], []]
  const visit = (part: AnyNode): void => {
    if (part.kind === 'SubqueryExpression') return
    const call = part as FunctionCall | Listagg | GroupingOperation
    if (call.kind === 'GroupingOperation') groupings.push(call)
    else if (call.kind === 'FunctionCall' || call.kind === 'Listagg') {
      const kind = call.kind === 'Listagg' ? 'aggregate' : kindOf(context, call)
      if (call.window !== undefined || kind === 'window') windows.push(call)
      else if (kind === 'aggregate') aggregates.push(call)
    }
    for (const child of childrenOf(part)) visit(child)
  }
  visit(node)
  return { aggregates, windows, groupings }
}

function kindOf({ functions }: AnalysisContext, { name }: FunctionCall): ReturnType<typeof functionKind> {
  const called = name.parts.at(-1)!.value.toLowerCase()
  return functions?.has(called) === true ? undefined : functionKind(called)
}

function refuse(context: AnalysisContext, node: Expression, nodes: readonly AnyNode[], clause: string): void {
  if (nodes.length === 0) return
  const texts = nodes.map((each) => context.print(each as Expression))
  throw errorAt(
    context,
    node,
    'EXPRESSION_NOT_SCALAR',
    `${clause} cannot contain aggregations, window functions or grouping operations: [${texts.join(', ')}]`,
  )
}

export function nothingFound(): FoundParts {
  return { aggregates: [], windows: [], groupings: [], subqueries: [] }
}

/** Coerces `expr` to boolean. @param what the beginning of the error message */
export function asBoolean(state: ExpressionState, node: Expression, expr: Expr, what: string): Expr {
  return asType(state, node, expr, BOOLEAN, what)
}

function asType(state: ExpressionState, node: Expression, expr: Expr, type: SqlType, what: string): Expr {
  const common = commonSuperType(expr.type, type)
  if (common === undefined || common.kind !== type.kind) {
    throw errorAt(
      state.context,
      node,
      'TYPE_MISMATCH',
      `${what} must evaluate to a ${typeName(type)} (actual: ${typeName(expr.type)})`,
    )
  }
  return castTo(expr, type)
}

/**
 * Coerces the values of CASE, COALESCE, ARRAY or IN to their common type. @param what the beginning of the error
 * message
 */
export function unified(
  state: ExpressionState,
  what: string,
  items: readonly { readonly node: Expression; readonly expr: Expr }[],
): { readonly type: SqlType; readonly exprs: readonly Expr[] } {
  const distinct = new Map<string, { readonly node: Expression; readonly type: SqlType }>()
  for (const { node, expr } of items) {
    const name = typeName(expr.type)
    if (!distinct.has(name)) distinct.set(name, { node, type: expr.type })
  }
  let common: SqlType = UNKNOWN
  for (const { node, type } of distinct.values()) {
    const next = commonSuperType(common, type)
    if (next === undefined) {
      throw errorAt(
        state.context,
        node,
        'TYPE_MISMATCH',
        `${what} must be the same type or coercible to a common type. Cannot find common type between ${typeName(common)} and ${typeName(type)}, all types (without duplicates): [${[...distinct.keys()].join(', ')}]`,
      )
    }
    common = next
  }
  const type = common
  return { type, exprs: items.map(({ expr }) => castTo(expr, type)) }
}
