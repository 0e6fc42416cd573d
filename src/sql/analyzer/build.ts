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

// Constructors of typed expressions for several parts of the analyzer.

export function columnOf(id: ColumnId, type: SqlType): ColumnExpr {
  return { kind: 'column', type, id }
}

export function constantOf(type: SqlType, value: ConstantExpr['value']): ConstantExpr {
  return { kind: 'constant', type, value }
}

/** Coerces an expression; returns it unchanged if it already has the type. NULL and lambdas take the new type. */
export function castTo(expr: Expr, type: SqlType): Expr {
  if (sameType(expr.type, type)) return expr
  if (expr.kind === 'constant') {
    // A parameter without a value keeps its number: DESCRIBE INPUT needs its type.
    if (expr.value === null) return { ...expr, type }
    const widened = widen(expr, type)
    if (widened !== undefined) return widened
  }
  return { kind: 'cast', type, value: expr, safe: false }
}

/** The conversion of INSERT: it accepts more types than a coercion, and text that does not fit fails. */
export function storeAs(expr: Expr, type: SqlType): Expr {
  if (sameType(expr.type, type)) return expr
  // NULL, or a parameter without a value.
  if (expr.kind === 'constant' && expr.value === null) return { ...expr, type }
  return { kind: 'cast', type, value: expr, safe: false, stored: true }
}

/** Converts constants whose value is written the same way in the wider type. */
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
          // Beyond 2^53, reading the literal rounds to the nearest double, as Java's cast does.
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

/** Binds a value to a name in `body`, so that it is computed once; a cheap value is used directly. */
export function letIn(id: ColumnId, value: Expr, body: (value: Expr) => Expr): Expr {
  if (value.kind === 'column' || value.kind === 'constant' || value.kind === 'lambdaArgument') return body(value)
  const name: LambdaArgumentExpr = { kind: 'lambdaArgument', type: value.type, id }
  const inner = body(name)
  return { kind: 'let', type: inner.type, name, value, body: inner }
}

/** `left op right` after coercion to their common type. @throws EngineError without a position */
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

/** The value of a constant, also inside casts of numbers; undefined for an expression that must be computed. */
export function constant(expr: Expr): ConstantExpr['value'] | undefined {
  if (expr.kind === 'constant') return expr.value
  if (expr.kind === 'cast') return constant(expr.value)
  if (expr.kind === 'negate') {
    const value = constant(expr.value)
    return typeof value === 'string' ? (value.startsWith('-') ? value.slice(1) : `-${value}`) : value
  }
  return undefined
}

/** Resolves a function by name and coerces the arguments to its types. @throws EngineError without a position */
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

/** An aggregate over all rows, or over those that satisfy `filter`. @throws EngineError without a position */
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

/** A call of a window function over the default frame. @throws EngineError without a position */
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
