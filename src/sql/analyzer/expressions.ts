import { tick } from '../../shared/cpu-budget.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { resolveArithmetic, resolveNegation } from '../functions/operators.ts'
import { ambiguousOperator, verifyUnambiguous } from '../functions/operators-beside-null.ts'
import type { ArrayConstructor, Cast, Expression, Parameter, Row } from '../syntax/ast.ts'
import { canCast } from '../types/coercion.ts'
import { anonymousRow, array, isNumeric, partsOfType, UNKNOWN, VARCHAR, type SqlType } from '../types/sql-type.ts'
import { resolveTypeName } from '../types/type-names.ts'
import { typeName } from '../types/type-text.ts'
import { castTo, constantOf } from './build.ts'
import { analyzeCall, analyzeConcat, analyzeListagg } from './calls.ts'
import {
  errorAt,
  locatedAt,
  type AnalysisContext,
  type ExpressionState,
  type FoundParts,
  type LambdaScope,
} from './context.ts'
import { dataTypeText, typeOf } from './data-types.ts'
import { asBoolean, nothingFound, unified } from './expression-state.ts'
import { literalsOf } from './literal-arrays.ts'
import { analyzeJsonFunction } from './json-functions.ts'
import { analyzeLiteral, functionOf } from './literals.ts'
import { analyzeDereference, analyzeGrouping, analyzeIdentifier, analyzeSubscript } from './names.ts'
import {
  analyzeBetween,
  analyzeCase,
  analyzeCoalesce,
  analyzeComparison,
  analyzeIf,
  analyzeIn,
  analyzeLike,
  analyzeNullIf,
  analyzeSimpleCase,
} from './predicates.ts'
import type { Scope } from './scope.ts'
import { analyzeExists, analyzeQuantified, analyzeScalarSubquery } from './subqueries.ts'
import {
  analyzeAtTimeZone,
  analyzeExtract,
  analyzeFormat,
  analyzeSessionValue,
  analyzeTrim,
} from './syntax-functions.ts'
import type { Expr } from './tree.ts'

/** An expression with the parts that some clauses do not allow. */
export interface AnalyzedExpression extends FoundParts {
  readonly expr: Expr
}

/** @param expected the type of a bare parameter if nothing else determines it */
export function analyzeExpression(
  context: AnalysisContext,
  node: Expression,
  scope: Scope,
  expected?: 'bigint',
): AnalyzedExpression {
  const found = nothingFound()
  const state = createState(context, scope, undefined, found)
  const expr = state.analyze(node)
  if (expected !== undefined && node.kind === 'Parameter') noteParameterType(context, node, resolveTypeName(expected))
  return { expr, ...found }
}

/** The analyzed expression for a column of `*`. */
export function plainExpression(expr: Expr): AnalyzedExpression {
  return { expr, ...nothingFound() }
}

/** A state for expressions in relations. */
export function inScope(context: AnalysisContext, scope: Scope): ExpressionState {
  return createState(context, scope, undefined, nothingFound())
}

function createState(
  context: AnalysisContext,
  scope: Scope,
  lambda: LambdaScope | undefined,
  found: FoundParts,
): ExpressionState {
  const state: ExpressionState = {
    context,
    scope,
    lambda,
    found,
    analyze: (node) => analyzeNode(state, node),
    within: (change) => createState(context, change.scope ?? scope, change.lambda, change.found),
  }
  return state
}

/**
 * The limit of parts of a type: common tables that each put their input into a row twice would double the type each
 * time.
 */
const MAX_TYPE_PARTS = 10_000

function analyzeNode(state: ExpressionState, node: Expression): Expr {
  tick()
  const analyzed = analyzeKind(state, node)
  if (partsOfType(analyzed.type) <= MAX_TYPE_PARTS) return analyzed
  const message = `Query has a type of more than ${MAX_TYPE_PARTS} parts`
  throw errorAt(state.context, node, 'QUERY_EXCEEDED_COMPILER_LIMIT', message)
}

/** One flat switch with a case for each kind of expression, hence its length. */
function analyzeKind(state: ExpressionState, node: Expression): Expr {
  const { context } = state
  switch (node.kind) {
    case 'NullLiteral':
    case 'BooleanLiteral':
    case 'LongLiteral':
    case 'DecimalLiteral':
    case 'DoubleLiteral':
    case 'StringLiteral':
    case 'BinaryLiteral':
    case 'GenericLiteral':
    case 'IntervalLiteral':
      return analyzeLiteral(context, node)
    case 'Identifier':
      return analyzeIdentifier(state, node)
    case 'DereferenceExpression':
      return analyzeDereference(state, node)
    case 'Parameter':
      return analyzeParameter(context, node)
    case 'LogicalExpression':
      return {
        kind: node.operator === 'AND' ? 'and' : 'or',
        type: { kind: 'boolean' },
        terms: node.terms.map((term) => asBoolean(state, term, state.analyze(term), 'Logical expression term')),
      }
    case 'NotExpression': {
      const value = asBoolean(state, node.value, state.analyze(node.value), 'Value of logical NOT expression')
      return { kind: 'not', type: value.type, value }
    }
    case 'ComparisonExpression':
      return analyzeComparison(state, node)
    case 'QuantifiedComparisonExpression':
      return analyzeQuantified(state, node)
    case 'BetweenPredicate':
      return analyzeBetween(state, node)
    case 'InPredicate':
      return analyzeIn(state, node)
    case 'LikePredicate':
      return analyzeLike(state, node)
    case 'IsNullPredicate':
      return { kind: 'isNull', type: { kind: 'boolean' }, value: state.analyze(node.value) }
    case 'IsNotNullPredicate':
      return {
        kind: 'not',
        type: { kind: 'boolean' },
        value: { kind: 'isNull', type: { kind: 'boolean' }, value: state.analyze(node.value) },
      }
    case 'ExistsPredicate':
      return analyzeExists(state, node)
    case 'SubqueryExpression':
      return analyzeScalarSubquery(state, node)
    case 'ArithmeticUnaryExpression':
      return node.sign === '-' ? negation(state, node) : plus(state, node)
    case 'ArithmeticBinaryExpression': {
      const left = state.analyze(node.left)
      const right = state.analyze(node.right)
      verifyUnambiguous(node.operator, left.type, right.type)
      const operator = locatedAt(context, node, () => resolveArithmetic(node.operator, left.type, right.type))
      return {
        kind: 'operator',
        type: operator.result,
        name: node.operator,
        operator,
        left: castTo(left, operator.left),
        right: castTo(right, operator.right),
      }
    }
    case 'ConcatExpression':
      return analyzeConcat(state, node)
    case 'AtTimeZone':
      return analyzeAtTimeZone(state, node)
    case 'FunctionCall':
      return analyzeCall(state, node)
    case 'Listagg':
      return analyzeListagg(state, node)
    case 'LabelDereference':
    case 'WindowOperation':
      throw errorAt(context, node, 'NOT_SUPPORTED', 'Row patterns are not supported')
    case 'LambdaExpression':
      throw errorAt(context, node, 'TYPE_MISMATCH', 'Lambda expression should always be used inside a function')
    case 'IfExpression':
      return analyzeIf(state, node)
    case 'NullIfExpression':
      return analyzeNullIf(state, node)
    case 'CoalesceExpression':
      return analyzeCoalesce(state, node)
    case 'TryExpression': {
      if (context.patternCall !== undefined) {
        const message = 'TRY expression in pattern recognition context is not yet supported'
        throw errorAt(context, node, 'NOT_SUPPORTED', message)
      }
      const value = state.analyze(node.value)
      return { kind: 'try', type: value.type, value }
    }
    case 'Format':
      return analyzeFormat(state, node)
    case 'SimpleCaseExpression':
      return analyzeSimpleCase(state, node)
    case 'SearchedCaseExpression':
      return analyzeCase(state, node)
    case 'Cast':
      return analyzeCast(state, node)
    case 'ArrayConstructor':
      return analyzeArray(state, node)
    case 'Row':
      return analyzeRow(state, node)
    case 'SubscriptExpression':
      return analyzeSubscript(state, node)
    case 'Trim':
      return analyzeTrim(state, node)
    case 'Extract':
      return analyzeExtract(state, node)
    case 'Normalize':
      return locatedAt(context, node, () =>
        functionOf('normalize', [state.analyze(node.value), constantOf(VARCHAR, node.form)]),
      )
    case 'CurrentDate':
    case 'CurrentTime':
    case 'CurrentTimestamp':
    case 'LocalTime':
    case 'LocalTimestamp':
    case 'CurrentCatalog':
    case 'CurrentSchema':
    case 'CurrentPath':
    case 'CurrentUser':
      return analyzeSessionValue(state, node)
    case 'GroupingOperation':
      return analyzeGrouping(state, node)
    case 'JsonExists':
    case 'JsonValue':
    case 'JsonQuery':
    case 'JsonObject':
    case 'JsonArray':
      return analyzeJsonFunction(state, node)
    default:
      return unreachable(node)
  }
}

function analyzeParameter(context: AnalysisContext, node: Parameter): Expr {
  const { parameters } = context
  if (parameters.kind === 'describe') return { ...constantOf(UNKNOWN, null), parameter: node.index }
  const value = parameters.values[node.index]
  if (value === undefined) {
    throw errorAt(
      context,
      node,
      'INVALID_PARAMETER_USAGE',
      `Incorrect number of parameters: expected ${node.index + 1} but found ${parameters.values.length}`,
    )
  }
  return value
}

function noteParameterType(context: AnalysisContext, node: Parameter, type: SqlType): void {
  if (context.parameters.kind === 'describe') context.parameters.types.set(node.index, type)
}

function negation(state: ExpressionState, node: Expression & { readonly kind: 'ArithmeticUnaryExpression' }): Expr {
  const value = state.analyze(node.value)
  if (value.type.kind === 'unknown') throw ambiguousOperator()
  const { result } = locatedAt(state.context, node, () => resolveNegation(value.type))
  return { kind: 'negate', type: result, value: castTo(value, result) }
}

function plus(state: ExpressionState, node: Expression & { readonly kind: 'ArithmeticUnaryExpression' }): Expr {
  const value = state.analyze(node.value)
  if (isNumeric(value.type) || value.type.kind === 'unknown') return value
  throw errorAt(
    state.context,
    node,
    'TYPE_MISMATCH',
    `Unary '+' operator cannot by applied to ${typeName(value.type)} type`,
  )
}

function analyzeCast(state: ExpressionState, node: Cast): Expr {
  const { context } = state
  let type: SqlType
  try {
    type = typeOf(node.type)
  } catch (error) {
    if (!(error instanceof EngineError) || error.errorName !== 'TYPE_NOT_FOUND') throw error
    throw errorAt(context, node, 'TYPE_MISMATCH', `Unknown type: ${dataTypeText(node.type)}`)
  }
  const value = state.analyze(node.expression)
  if (!canCast(value.type, type)) {
    throw errorAt(context, node, 'TYPE_MISMATCH', `Cannot cast ${typeName(value.type)} to ${typeName(type)}`)
  }
  if (node.safe && value.kind !== 'constant') return { kind: 'cast', type, value, safe: true }
  if (value.kind === 'constant' && value.value === null) return castTo(value, type)
  return { kind: 'cast', type, value, safe: node.safe }
}

function analyzeArray(state: ExpressionState, node: ArrayConstructor): Expr {
  const { type, exprs } = unified(
    state,
    'All ARRAY elements',
    node.values.map((value) => ({ node: value, expr: state.analyze(value) })),
  )
  return literalsOf(type, exprs) ?? { kind: 'array', type: array(type), items: exprs }
}

function analyzeRow(state: ExpressionState, node: Row): Expr {
  const items = node.items.map(state.analyze)
  return { kind: 'row', type: anonymousRow(items.map((item) => item.type)), items }
}
