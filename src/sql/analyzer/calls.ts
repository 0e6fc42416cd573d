import { EngineError } from '../../shared/engine-error.ts'
import { resolveFunction, type ArgumentType, type ResolvedFunction } from '../functions/resolve-function.ts'
import { overloadsOf } from '../functions/function-table.ts'
import { parseSignature } from '../functions/signature.ts'
import type { ConcatExpression, Expression, FunctionCall, LambdaExpression, Listagg } from '../syntax/ast.ts'
import { isComparable, isOrderable, VARCHAR, type FunctionType, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { castTo, constantOf } from './build.ts'
import { errorAt, locatedAt, newId, type ExpressionState, type LambdaScope } from './context.ts'
import { asBoolean, nothingFound, verifyScalar, verifyWrittenScalar } from './expression-state.ts'
import { findInlineFunction } from './inline-functions.ts'
import type { AggregateExpr, Expr, ExprSortKey, LambdaArgumentExpr, LambdaExpr, Routine } from './tree.ts'
import { exprKey } from './walk.ts'
import { analyzeWindowCall } from './windows.ts'

export function analyzeConcat(state: ExpressionState, node: ConcatExpression): Expr {
  const { name, args } = prepared(state, 'concat', [node.left, node.right])
  return scalarCall(state, node, name, args)
}

/** An argument with its type for overload resolution; lambdas are analyzed once their parameter types are known. */
interface Argument {
  readonly node: Expression
  readonly type: ArgumentType
  /** Returns the argument coerced to the function's parameter type. */
  finish(wanted: SqlType): Expr
}

function prepared(
  state: ExpressionState,
  name: string,
  nodes: readonly Expression[],
): { readonly name: string; readonly args: readonly Argument[] } {
  return {
    name,
    args: nodes.map((node) => (node.kind === 'LambdaExpression' ? lambda(state, node) : value(state, node))),
  }
}

function value(state: ExpressionState, node: Expression): Argument {
  const expr = state.analyze(node)
  return { node, type: { kind: 'value', type: expr.type }, finish: (wanted) => castTo(expr, wanted) }
}

function lambda(state: ExpressionState, node: LambdaExpression): Argument {
  if (state.context.patternCall !== undefined) {
    const message = 'Lambda expression in pattern recognition context is not yet supported'
    throw errorAt(state.context, node, 'NOT_SUPPORTED', message)
  }
  const bodies = new Map<string, LambdaExpr>()
  const analyzed = (types: readonly SqlType[]): LambdaExpr => {
    const key = types.map(typeName).join(';')
    let body = bodies.get(key)
    if (body === undefined) {
      body = lambdaBody(state, node, types)
      bodies.set(key, body)
    }
    return body
  }
  return {
    node,
    type: {
      kind: 'lambda',
      parameterCount: node.parameters.length,
      bodyType: (types) => analyzed(types).body.type,
    },
    finish: (wanted) => {
      const { arguments: types, result } = wanted as FunctionType
      const body = analyzed(types)
      return { ...body, type: wanted, body: castTo(body.body, result) }
    },
  }
}

function lambdaBody(state: ExpressionState, node: LambdaExpression, types: readonly SqlType[]): LambdaExpr {
  const parameters = node.parameters.map((_, i): LambdaArgumentExpr => ({
    kind: 'lambdaArgument',
    type: types[i]!,
    id: newId(state.context),
  }))
  const scope: LambdaScope = {
    arguments: new Map(node.parameters.map((parameter, i) => [parameter.value.toLowerCase(), parameters[i]!])),
    outer: state.lambda,
  }
  const found = nothingFound()
  verifyWrittenScalar(state.context, node.body, 'Lambda expression')
  const body = state.within({ lambda: scope, found }).analyze(node.body)
  verifyScalar(state.context, node.body, found, 'Lambda expression')
  return { kind: 'lambda', type: body.type, parameters, body }
}

function resolveCall(
  state: ExpressionState,
  node: Expression,
  name: string,
  args: readonly Argument[],
): { readonly resolved: ResolvedFunction; readonly exprs: readonly Expr[]; readonly routine?: Routine } {
  const { context } = state
  const types = args.map((argument) => argument.type)
  const inline = isQualified(node)
    ? undefined
    : locatedAt(context, node, () => findInlineFunction(context, name, types, overloadsOf(name).length > 0))
  if (inline?.routine !== undefined) {
    const { resolved, routine } = inline
    return { resolved, routine, exprs: args.map((argument, i) => argument.finish(resolved.argumentTypes[i]!)) }
  }
  verifyLambdas(state, name, args)
  const ambiguous =
    (name === 'concat' && args.length === 0) ||
    (name === 'concat_ws' && types.length === 2 && isUnknown(types[1]!) && !isUnknown(types[0]!))
  if (ambiguous) {
    throw errorAt(
      context,
      node,
      'AMBIGUOUS_FUNCTION_CALL',
      'Could not choose a best candidate operator. Explicit type casts must be added.',
    )
  }
  const resolved = locatedAt(context, node, () => resolveFunction(name, types))
  return { resolved, exprs: args.map((argument, i) => argument.finish(resolved.argumentTypes[i]!)) }
}

function isUnknown(type: ArgumentType): boolean {
  return type.kind === 'value' && type.type.kind === 'unknown'
}

function isQualified(node: Expression): boolean {
  return node.kind !== 'FunctionCall' || node.name.parts.length > 1
}

/** Reports a lambda itself as the error if no overload accepts its number of parameters. */
function verifyLambdas(state: ExpressionState, name: string, args: readonly Argument[]): void {
  if (args.every((argument) => argument.type.kind === 'value')) return
  const signatures = overloadsOf(name)
    .map((definition) => parseSignature(definition.signature))
    .filter((signature) => signature.parameters.length === args.length)
  args.forEach((argument, i) => {
    if (argument.type.kind === 'value') return
    const given = argument.type.parameterCount
    const counts = signatures.flatMap(({ parameters }) => {
      const pattern = parameters[i]!
      return pattern.kind === 'function' ? [pattern.parameters.length] : []
    })
    if (counts.length === 0 || counts.includes(given)) return
    throw errorAt(
      state.context,
      argument.node,
      'INVALID_PARAMETER_USAGE',
      `Expected a lambda that takes ${counts[0]} argument(s) but got ${given}`,
    )
  })
}

function scalarCall(state: ExpressionState, node: Expression, name: string, args: readonly Argument[]): Expr {
  const { resolved, exprs } = resolveCall(state, node, name, args)
  return { kind: 'call', type: resolved.resultType, function: resolved, arguments: exprs }
}

/** The name of a call; only built-in functions can have a qualified name. */
function functionName(node: FunctionCall): string {
  const parts = node.name.parts.map((part) => part.value.toLowerCase())
  if (parts.length === 3 && parts[0] === 'system' && parts[1] === 'builtin') return parts[2]!
  return parts.join('.')
}

export function analyzeCall(state: ExpressionState, node: FunctionCall): Expr {
  const { context } = state
  const ofPattern = context.patternCall?.(state, node)
  if (ofPattern !== undefined) return ofPattern
  if (node.processingMode !== undefined && context.patternCall === undefined) {
    const message = `${node.processingMode.mode} semantics is not supported out of pattern recognition context`
    throw errorAt(context, node, 'INVALID_PROCESSING_MODE', message)
  }
  const name = functionName(node)
  // The parts found in arguments concern only this call: an aggregate may not contain another aggregate, a window may.
  const inner = nothingFound()
  const within = state.within({ lambda: state.lambda, found: inner })
  const { args } = prepared(within, name, node.arguments)
  const filter =
    node.filter === undefined
      ? undefined
      : asBoolean(within, node.filter, within.analyze(node.filter), 'Filter expression')
  const { resolved, exprs, routine } = resolveCall(state, node, name, args)
  if (routine === undefined && (name === 'concat' || name === 'map_concat') && exprs.length === 1) {
    throw new EngineError('INVALID_FUNCTION_ARGUMENT', `There must be two or more arguments to ${name}`)
  }
  if (node.window !== undefined) {
    const argumentOrder = resolved.kind === 'aggregate' ? aggregateOrder(within, node) : []
    const { window } = node
    return analyzeWindowCall(state, { node, window, inner, resolved, args: exprs, argumentOrder, filter })
  }
  state.found.subqueries.push(...inner.subqueries)
  switch (resolved.kind) {
    case 'window':
      throw errorAt(
        context,
        node,
        'MISSING_OVER',
        `Window function system.builtin.${resolved.name} requires an OVER clause`,
      )
    case 'scalar':
      if (node.orderBy !== undefined) {
        throw errorAt(context, node, 'FUNCTION_NOT_AGGREGATE', 'ORDER BY is only valid for aggregation functions')
      }
      if (node.distinct) {
        throw errorAt(
          context,
          node,
          'FUNCTION_NOT_AGGREGATE',
          'DISTINCT is not supported for non-aggregation functions',
        )
      }
      if (node.filter !== undefined) {
        throw errorAt(context, node, 'FUNCTION_NOT_AGGREGATE', 'Filter is only valid for aggregation functions')
      }
      state.found.aggregates.push(...inner.aggregates)
      state.found.windows.push(...inner.windows)
      state.found.groupings.push(...inner.groupings)
      return {
        kind: 'call',
        type: resolved.resultType,
        function: resolved,
        arguments: exprs,
        ...(routine === undefined ? {} : { routine }),
      }
    case 'aggregate': {
      const orderBy = aggregateOrder(within, node)
      const call: AggregateExpr = {
        kind: 'aggregate',
        type: resolved.resultType,
        function: resolved,
        arguments: exprs,
        distinct: node.distinct,
        orderBy,
        filter,
      }
      verifyAggregate(state, node, name, inner, call)
      state.found.aggregates.push(node)
      state.found.groupings.push(...inner.groupings)
      return call
    }
  }
}

function aggregateOrder(
  state: ExpressionState,
  node: Pick<FunctionCall | Listagg, 'orderBy' | 'span'>,
): readonly ExprSortKey[] {
  return (node.orderBy?.sortItems ?? []).map((item) => {
    const expr = state.analyze(item.sortKey)
    if (!isOrderable(expr.type)) {
      throw errorAt(
        state.context,
        node,
        'TYPE_MISMATCH',
        `ORDER BY can only be applied to orderable types (actual: ${typeName(expr.type)})`,
      )
    }
    return { value: expr, descending: item.ordering === 'DESCENDING', nullsFirst: item.nullOrdering === 'FIRST' }
  })
}

function verifyAggregate(
  state: ExpressionState,
  node: FunctionCall | Listagg,
  name: string,
  inner: ExpressionState['found'],
  call: AggregateExpr,
): void {
  const { context } = state
  if (call.distinct) {
    const wrong = call.arguments.find((argument) => !isComparable(argument.type))
    if (wrong !== undefined) {
      throw errorAt(
        context,
        node,
        'TYPE_MISMATCH',
        `DISTINCT can only be applied to comparable types (actual: ${typeName(wrong.type)})`,
      )
    }
    const listed = new Set(call.arguments.map((argument) => exprKey(withoutCoercion(argument))))
    const unlisted = call.orderBy.findIndex(({ value: key }) => !listed.has(exprKey(withoutCoercion(key))))
    if (unlisted >= 0) {
      throw errorAt(
        context,
        node.orderBy?.sortItems[unlisted]?.sortKey ?? node,
        'EXPRESSION_NOT_IN_DISTINCT',
        'For aggregate function with DISTINCT, ORDER BY expressions must appear in arguments',
      )
    }
  }
  const list = (nodes: readonly { readonly kind: string }[]): string =>
    nodes.map((each) => context.print(each as Expression)).join(', ')
  if (inner.aggregates.length > 0) {
    throw errorAt(
      context,
      node,
      'NESTED_AGGREGATION',
      `Cannot nest aggregations inside aggregation '${name}': [${list(inner.aggregates)}]`,
    )
  }
  if (inner.windows.length > 0) {
    throw errorAt(
      context,
      node,
      'NESTED_WINDOW',
      `Cannot nest window functions or row pattern measures inside aggregation '${name}': [${list(inner.windows)}]`,
    )
  }
}

function withoutCoercion(expr: Expr): Expr {
  return expr.kind === 'cast' ? expr.value : expr
}

/** Analyzes `listagg(value, separator ON OVERFLOW …) WITHIN GROUP (ORDER BY …)`. */
export function analyzeListagg(state: ExpressionState, node: Listagg): Expr {
  if (state.context.patternCall !== undefined) {
    const message = 'Cannot use ORDER BY with listagg aggregate function in pattern recognition context'
    throw errorAt(state.context, node, 'NOT_SUPPORTED', message)
  }
  const inner = nothingFound()
  const within = state.within({ lambda: state.lambda, found: inner })
  let input = within.analyze(node.value)
  if (input.type.kind === 'unknown') input = castTo(input, VARCHAR)
  if (input.type.kind !== 'varchar') {
    throw errorAt(
      state.context,
      node,
      'TYPE_MISMATCH',
      `Expected expression of varchar, but '${state.context.print(node.value)}' has ${typeName(input.type)} type`,
    )
  }
  const filter =
    node.filter === undefined
      ? undefined
      : asBoolean(within, node.filter, within.analyze(node.filter), 'Filter expression')
  const overflow = node.overflow ?? { behavior: 'ERROR' as const }
  const truncates = overflow.behavior === 'TRUNCATE'
  const args = [
    castTo(input, VARCHAR),
    constantOf(VARCHAR, node.separator?.value ?? ''),
    constantOf({ kind: 'boolean' }, !truncates),
    constantOf(VARCHAR, truncates ? (overflow.filler?.value ?? '...') : '...'),
    constantOf({ kind: 'boolean' }, truncates ? overflow.withCount : false),
  ]
  const resolved = locatedAt(state.context, node, () =>
    resolveFunction(
      'listagg',
      args.map((argument) => ({ kind: 'value', type: argument.type })),
      true,
    ),
  )
  const exprs = args.map((argument, i) => castTo(argument, resolved.argumentTypes[i]!))
  const orderBy = aggregateOrder(within, node)
  if (node.window !== undefined) {
    const { window } = node
    return analyzeWindowCall(state, { node, window, inner, resolved, args: exprs, argumentOrder: orderBy, filter })
  }
  const call: AggregateExpr = {
    kind: 'aggregate',
    type: resolved.resultType,
    function: resolved,
    arguments: exprs,
    distinct: node.distinct,
    orderBy,
    filter,
  }
  verifyAggregate(state, node, 'listagg', inner, { ...call, arguments: call.arguments.slice(0, 1) })
  state.found.subqueries.push(...inner.subqueries)
  state.found.aggregates.push(node)
  return call
}
