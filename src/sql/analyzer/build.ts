import { resolveFunction, type ResolvedFunction } from '../functions/resolve-function.ts'
import { resolveComparison, type ComparisonKind } from '../functions/operators.ts'
import { BOOLEAN, sameType, type SqlType } from '../types/sql-type.ts'
import type {
  AggregateExpr,
  ColumnExpr,
  ColumnId,
  ConstantExpr,
  Expr,
  ExprSortKey,
  LambdaArgumentExpr,
  WindowExpr,
} from './tree.ts'

// Makers of typed expressions that several parts of the analyser need.

export function columnOf(id: ColumnId, type: SqlType): ColumnExpr {
  return { kind: 'column', type, id }
}

export function constantOf(type: SqlType, value: ConstantExpr['value']): ConstantExpr {
  return { kind: 'constant', type, value }
}

/** A coercion: the expression itself where it has the type. NULL and lambdas take the type on. */
export function castTo(expr: Expr, type: SqlType): Expr {
  if (sameType(expr.type, type)) return expr
  if (expr.kind === 'constant') {
    // A parameter without value keeps its number: DESCRIBE INPUT asks for the type it takes.
    if (expr.value === null) return { ...expr, type }
    const widened = widen(expr, type)
    if (widened !== undefined) return widened
  }
  return { kind: 'cast', type, value: expr, safe: false }
}

/** The conversion of INSERT: it takes more types than a coercion, and text that does not fit fails. */
export function storeAs(expr: Expr, type: SqlType): Expr {
  if (sameType(expr.type, type)) return expr
  return { kind: 'cast', type, value: expr, safe: false, stored: true }
}

/** Constants whose value is written the same in the wider type. */
function widen(expr: ConstantExpr, type: SqlType): ConstantExpr | undefined {
  switch (expr.type.kind) {
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      switch (type.kind) {
        case 'smallint':
        case 'integer':
        case 'bigint':
          return { ...expr, type }
        case 'double':
          // Beyond 2^53 the digits would be cut by the reader of the literal as Java's cast does: to the nearest.
          return { ...expr, type }
        default:
          return undefined
      }
    case 'varchar':
      switch (type.kind) {
        case 'varchar':
          return type.length === undefined || type.length >= (expr.type.length ?? Infinity)
            ? { ...expr, type }
            : undefined
        case 'JoniRegExp':
        case 'JsonPath':
        case 'CodePoints':
        case 'LikePattern':
          return { ...expr, type }
        default:
          return undefined
      }
    default:
      return undefined
  }
}

/** `body` over a value that is calculated once; the value itself where it costs nothing. */
export function letIn(id: ColumnId, value: Expr, body: (value: Expr) => Expr): Expr {
  if (value.kind === 'column' || value.kind === 'constant' || value.kind === 'lambdaArgument') return body(value)
  const name: LambdaArgumentExpr = { kind: 'lambdaArgument', type: value.type, id }
  const inner = body(name)
  return { kind: 'let', type: inner.type, name, value, body: inner }
}

/** `left op right` after coercion to their common type. @throws EngineError without place */
export function comparison(operator: ComparisonKind, left: Expr, right: Expr): Expr {
  const resolved = resolveComparison(operator, left.type, right.type)
  return {
    kind: 'compare',
    type: BOOLEAN,
    operator,
    left: castTo(left, resolved.left),
    right: castTo(right, resolved.right),
  }
}

/** The value of a constant, undefined for anything that must be computed; casts of numbers are looked through. */
export function constant(expr: Expr): ConstantExpr['value'] | undefined {
  if (expr.kind === 'constant') return expr.value
  if (expr.kind === 'cast') return constant(expr.value)
  if (expr.kind === 'negate') {
    const value = constant(expr.value)
    return typeof value === 'string' ? (value.startsWith('-') ? value.slice(1) : `-${value}`) : value
  }
  return undefined
}

/** A call of the function that a name means for these arguments, which take its types. @throws EngineError without place */
export function callOf(
  name: string,
  args: readonly Expr[],
): { readonly resolved: ResolvedFunction; readonly args: readonly Expr[] } {
  const resolved = resolveFunction(
    name,
    args.map((argument) => ({ kind: 'value', type: argument.type })),
  )
  return { resolved, args: args.map((argument, i) => castTo(argument, resolved.argumentTypes[i]!)) }
}

/** An aggregate over all rows, or those that `filter` holds for. @throws EngineError without place */
export function aggregateOf(name: string, args: readonly Expr[], filter: Expr | undefined): AggregateExpr {
  const { resolved, args: coerced } = callOf(name, args)
  return {
    kind: 'aggregate',
    type: resolved.resultType,
    function: resolved,
    arguments: coerced,
    distinct: false,
    orderBy: [],
    filter,
  }
}

/** What a window function calculates, over the frame that it has where none is written. @throws EngineError without place */
export function windowOf(
  name: string,
  args: readonly Expr[],
  over: { readonly partitionBy: readonly Expr[]; readonly orderBy: readonly ExprSortKey[] },
): WindowExpr {
  const { resolved, args: coerced } = callOf(name, args)
  return {
    kind: 'window',
    type: resolved.resultType,
    function: resolved,
    arguments: coerced,
    ignoreNulls: false,
    distinct: false,
    filter: undefined,
    argumentOrder: [],
    partitionBy: over.partitionBy,
    orderBy: over.orderBy,
    frame: undefined,
  }
}
