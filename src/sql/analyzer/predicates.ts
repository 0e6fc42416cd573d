import type {
  BetweenPredicate,
  CoalesceExpression,
  ComparisonExpression,
  Expression,
  IfExpression,
  InPredicate,
  LikePredicate,
  NullIfExpression,
  SearchedCaseExpression,
  SimpleCaseExpression,
} from '../syntax/ast.ts'
import { commonSuperType, commonSuperTypeOf } from '../types/coercion.ts'
import {
  BOOLEAN,
  isCharacter,
  isComparable,
  isFloating,
  isNumeric,
  isOrderable,
  typeContains,
  VARCHAR,
  type SqlType,
} from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { castTo, constant, constantOf, letIn } from './build.ts'
import { errorAt, newId, type ExpressionState } from './context.ts'
import { asBoolean, unified } from './expression-state.ts'
import { analyzeInSubquery } from './subqueries.ts'
import { literalsOf } from './literal-arrays.ts'
import type { Expr, LiteralsExpr } from './tree.ts'
import { exprKey, isVolatile, someExpr } from './walk.ts'

export function analyzeComparison(state: ExpressionState, node: ComparisonExpression): Expr {
  const left = state.analyze(node.left)
  const right = state.analyze(node.right)
  const { operator } = node
  const common = commonSuperType(left.type, right.type)
  const ordered = operator !== '=' && operator !== '<>' && operator !== 'IS DISTINCT FROM'
  if (common === undefined || !(ordered ? isOrderable(common) : isComparable(common))) {
    const [l, r] = [typeName(left.type), typeName(right.type)]
    // Trino has only the operators =, < and <=, and derives the others from them.
    const shown = { '<>': '=', '>': '<', '>=': '<=', '=': '=', '<': '<', '<=': '<=' }
    throw errorAt(
      state.context,
      node,
      'TYPE_MISMATCH',
      operator === 'IS DISTINCT FROM'
        ? `Cannot check if ${l} is identical to ${r}`
        : `Cannot apply operator: ${l} ${shown[operator]} ${r}`,
    )
  }
  return { kind: 'compare', type: BOOLEAN, operator, left: castTo(left, common), right: castTo(right, common) }
}

export function analyzeBetween(state: ExpressionState, node: BetweenPredicate): Expr {
  const value = state.analyze(node.value)
  const min = state.analyze(node.min)
  const max = state.analyze(node.max)
  const common = commonSuperTypeOf([value.type, min.type, max.type])
  if (common === undefined || !isOrderable(common)) {
    throw errorAt(
      state.context,
      node,
      'TYPE_MISMATCH',
      `Cannot check if ${typeName(value.type)} is BETWEEN ${typeName(min.type)} and ${typeName(max.type)}`,
    )
  }
  return {
    kind: 'between',
    type: BOOLEAN,
    value: castTo(value, common),
    min: castTo(min, common),
    max: castTo(max, common),
  }
}

export function analyzeIn(state: ExpressionState, node: InPredicate): Expr {
  const { value, valueList } = node
  if (valueList.kind === 'SubqueryExpression') return analyzeInSubquery(state, node, value, valueList)
  const items = [value, ...valueList.values].map((each) => ({ node: each, expr: state.analyze(each) }))
  const { exprs, type } = unified(state, 'IN value and list items', items)
  const [compared, ...values] = exprs as [Expr, ...Expr[]]
  const literals = someExpr(compared, columnsOnly) ? literalsOf(type, values) : undefined
  if (literals && !holdsSpecialNumber(literals)) return { kind: 'inLiterals', type: BOOLEAN, value: compared, literals }
  return inList(compared, values)
}

/** Whether a list contains NaN or an infinity; such values are compared one by one. */
function holdsSpecialNumber({ type: { element }, literals }: LiteralsExpr): boolean {
  return isFloating(element) && literals.some((value) => value !== null && !Number.isFinite(Number(value)))
}

/**
 * Builds an IN list like Trino's planner (RemoveRedundantInItems): a value that is not NULL is always in a list that
 * contains the same expression, even if it is NaN. This matters only for values that may be NaN. Items that may fail
 * are still evaluated.
 */
function inList(value: Expr, values: readonly Expr[]): Expr {
  const own = exprKey(value)
  const found =
    typeContains(value.type, isFloating) &&
    !isVolatile(value) &&
    value.kind !== 'constant' &&
    values.some((item) => exprKey(item) === own) &&
    values.every((item) => columnsOnly(item) || (constant(item) !== undefined && isNumeric(valueOf(item).type)))
  if (!found) return { kind: 'inList', type: BOOLEAN, value, values }
  const known: Expr = {
    kind: 'not',
    type: BOOLEAN,
    value: { kind: 'isNull', type: BOOLEAN, value: equal(value, value) },
  }
  return {
    kind: 'case',
    type: BOOLEAN,
    branches: [{ when: known, then: constantOf(BOOLEAN, true) }],
    otherwise: constantOf(BOOLEAN, null),
  }
}

function valueOf(expr: Expr): Expr {
  return expr.kind === 'cast' ? valueOf(expr.value) : expr
}

function columnsOnly(expr: Expr): boolean {
  return expr.kind === 'column' || expr.kind === 'lambdaArgument'
}

export function analyzeLike(state: ExpressionState, node: LikePredicate): Expr {
  const value = state.analyze(node.value)
  const character = (each: Expression, expr: Expr, what: string, chars: boolean): Expr => {
    if (expr.type.kind === 'varchar' || (chars && isCharacter(expr.type))) return expr
    if (expr.type.kind === 'unknown') return castTo(expr, VARCHAR)
    throw errorAt(
      state.context,
      each,
      'TYPE_MISMATCH',
      `${what} must evaluate to a varchar (actual: ${typeName(expr.type)})`,
    )
  }
  const text = character(node.value, value, 'Left side of LIKE expression', true)
  const pattern = character(node.pattern, state.analyze(node.pattern), 'Pattern for LIKE expression', false)
  const escape =
    node.escape === undefined
      ? undefined
      : character(node.escape, state.analyze(node.escape), 'Escape for LIKE expression', false)
  return { kind: 'like', type: BOOLEAN, value: text, pattern, escape }
}

export function analyzeIf(state: ExpressionState, node: IfExpression): Expr {
  const condition = asBoolean(state, node.condition, state.analyze(node.condition), 'IF condition')
  const first = state.analyze(node.trueValue)
  if (node.falseValue === undefined) {
    return { kind: 'case', type: first.type, branches: [{ when: condition, then: first }], otherwise: undefined }
  }
  const second = state.analyze(node.falseValue)
  const type = commonSuperType(first.type, second.type)
  if (type === undefined) {
    throw errorAt(
      state.context,
      node,
      'TYPE_MISMATCH',
      `Result types for IF must be the same: ${typeName(first.type)} vs ${typeName(second.type)}`,
    )
  }
  return {
    kind: 'case',
    type,
    branches: [{ when: condition, then: castTo(first, type) }],
    otherwise: castTo(second, type),
  }
}

export function analyzeNullIf(state: ExpressionState, node: NullIfExpression): Expr {
  const first = state.analyze(node.first)
  const second = state.analyze(node.second)
  const common = commonSuperType(first.type, second.type)
  if (common === undefined || !isComparable(common)) {
    throw errorAt(
      state.context,
      node,
      'TYPE_MISMATCH',
      `Types are not comparable with NULLIF: ${typeName(first.type)} vs ${typeName(second.type)}`,
    )
  }
  return letIn(newId(state.context), first, (value) => ({
    kind: 'case',
    type: first.type,
    branches: [{ when: equal(castTo(value, common), castTo(second, common)), then: constantOf(first.type, null) }],
    otherwise: value,
  }))
}

export function analyzeCoalesce(state: ExpressionState, node: CoalesceExpression): Expr {
  const { type, exprs } = unified(
    state,
    'All COALESCE operands',
    node.operands.map((each) => ({ node: each, expr: state.analyze(each) })),
  )
  return { kind: 'coalesce', type, operands: exprs }
}

export function analyzeCase(state: ExpressionState, node: SearchedCaseExpression): Expr {
  const conditions = node.whenClauses.map(({ operand }) =>
    asBoolean(state, operand, state.analyze(operand), 'CASE WHEN clause'),
  )
  return caseOf(state, node, conditions)
}

export function analyzeSimpleCase(state: ExpressionState, node: SimpleCaseExpression): Expr {
  const operand = state.analyze(node.operand)
  const whens = node.whenClauses.map((clause) => ({ node: clause.operand, expr: state.analyze(clause.operand) }))
  let common: SqlType = operand.type
  for (const when of whens) {
    const next = commonSuperType(common, when.expr.type)
    if (next === undefined || !isComparable(next)) {
      throw errorAt(
        state.context,
        when.node,
        'TYPE_MISMATCH',
        `CASE operand type does not match WHEN clause operand type: ${typeName(operand.type)} vs ${typeName(when.expr.type)}`,
      )
    }
    common = next
  }
  const compared = castTo(operand, common)
  const own = isVolatile(compared) || !someExpr(compared, columnsOnly) ? undefined : exprKey(compared)
  return letIn(newId(state.context), compared, (value) =>
    caseOf(
      state,
      node,
      whens.map(({ expr }) => {
        const when = castTo(expr, common)
        // Same as Trino's planner (RemoveRedundantSwitchClauses): a branch with the operand itself always applies, even
        // for NULL and NaN.
        return exprKey(when) === own ? constantOf(BOOLEAN, true) : equal(value, when)
      }),
    ),
  )
}

function equal(left: Expr, right: Expr): Expr {
  return { kind: 'compare', type: BOOLEAN, operator: '=', left, right }
}

function caseOf(
  state: ExpressionState,
  node: SearchedCaseExpression | SimpleCaseExpression,
  conditions: readonly Expr[],
): Expr {
  const results = node.whenClauses.map(({ result }) => ({ node: result, expr: state.analyze(result) }))
  if (node.defaultValue !== undefined) {
    results.push({ node: node.defaultValue, expr: state.analyze(node.defaultValue) })
  }
  const { type, exprs } = unified(state, 'All CASE results', results)
  return {
    kind: 'case',
    type,
    branches: conditions.map((when, i) => ({ when, then: exprs[i]! })),
    otherwise: node.defaultValue === undefined ? undefined : exprs.at(-1)!,
  }
}
