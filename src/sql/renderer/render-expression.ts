import { tick } from '../../shared/cpu-budget.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { renderCast, renderInsertCast, renderTryCast } from '../functions/casts.ts'
import { comparisonKey, needsComparisonKey } from '../functions/comparison.ts'
import { renderBetween, renderComparison, renderIn, resolveNegation } from '../functions/operators.ts'
import type { RenderArgument } from '../functions/rendering.ts'
import { bindName } from '../functions/fill-template.ts'
import { duckdbType, rowFieldOf, rowOf, typedNull } from '../types/duckdb-representation.ts'
import { BOOLEAN, isFloating, sameType } from '../types/sql-type.ts'
import type {
  CallExpr,
  ColumnId,
  CompareExpr,
  Expr,
  InListExpr,
  LambdaExpr,
  LetExpr,
  OperatorExpr,
  Routine,
} from '../analyzer/tree.ts'
import { renderedConstant, renderConstant } from './constants.ts'
import { renderLike } from './like.ts'
import { renderLiterals } from './literal-array.ts'
import { asInList } from '../analyzer/literal-arrays.ts'
import { joinedByEquality } from '../analyzer/subqueries.ts'
import { isVolatile, mapChildren, visitColumns } from '../analyzer/walk.ts'
import { bindAll, bindColumns, composed, hasSubquery, isSubquery, outerColumnsOf, weightOf } from './composition.ts'
import { noteQueryOfRow } from './queries-of-rows.ts'
import { guarded, guardedKeys, whereHold, type Sides } from './guards.ts'
import { canRaise, mayRaiseOfRow } from '../analyzer/raising.ts'
import { code, EMPTY, joined, sql, type Sql } from '../../duckdb/text/sql.ts'
import { balanced, columnName, type RenderState } from './render-state.ts'
import { tried } from '../functions/tried.ts'
import {
  continuesChain,
  isReadingOfText,
  splitBetween,
  isOfNoRow,
  operandsOfConcat,
  isConcat,
  isLongChain,
  isAlwaysFinite,
} from './expression-shapes.ts'
import { renderSubquery } from './render-subquery.ts'

/** Longer conditions are not repeated to keep the order of evaluation. */
const REPEATABLE_CONDITION = 2000

/** Repeating a value that is lighter and shorter than this costs less than binding it to a name. */
const LIGHT = 14
const SHORT = 80

/** The limit of nested expressions: DuckDB plans deeper ones for seconds. */
const MAX_DEPTH = 250

/** Renders a value of the expression's type, in the representation of `duckdbType`. */
export function renderExpr(state: RenderState, expr: Expr): Sql {
  tick()
  if (++state.depth.now > MAX_DEPTH) {
    throw new EngineError('STACK_OVERFLOW', `Expression is nested too deeply: more than ${MAX_DEPTH} levels`)
  }
  const text = renderNode(state, expr)
  state.depth.now--
  return text
}

function renderNode(state: RenderState, expr: Expr): Sql {
  const render = (child: Expr): Sql => renderExpr(state, child)
  const compose = (parts: readonly Expr[], build: (texts: readonly Sql[]) => Sql): Sql =>
    composed(state, expr, parts, parts.map(render), build)
  switch (expr.kind) {
    case 'constant':
      return renderConstant(expr)
    case 'column':
      return state.columnNames.get(expr.id) ?? columnName(expr.id)
    case 'lambdaArgument':
      return state.lambdaArguments.get(expr.id) ?? columnName(expr.id)
    case 'call':
      return renderCall(state, expr)
    case 'engineCall':
      return sql`${code(expr.name)}(${joined(expr.arguments.map(render), ', ')})`
    case 'operator':
      if (isLongChain(expr)) return renderChain(state, expr)
      return compose([expr.left, expr.right], ([left, right]) => expr.operator.render(left!, right!, state))
    case 'negate':
      return compose([expr.value], ([value]) => resolveNegation(expr.type).render(value!))
    case 'compare':
      return compose([expr.left, expr.right], ([left, right]) =>
        renderComparison(expr.operator, expr.left.type, left!, right!, state.names),
      )
    case 'cast':
      return compose([expr.value], ([value]) =>
        (expr.safe ? renderTryCast : expr.stored ? renderInsertCast : renderCast)(
          value!,
          expr.value.type,
          expr.type,
          state,
        ),
      )
    case 'and':
    case 'or':
      // A constant that decides the result: no other term is evaluated, even if it would fail.
      if (expr.terms.some((term) => term.kind === 'constant' && term.value === (expr.kind === 'or'))) {
        return expr.kind === 'or' ? sql`true` : sql`false`
      }
      return renderLogical(state, expr.kind, expr.terms, expr.terms.map(render))
    case 'not':
      return expr.value.kind === 'isNull'
        ? sql`(${render(expr.value.value)} IS NOT NULL)`
        : sql`(NOT ${render(expr.value)})`
    case 'isNull':
      return sql`(${render(expr.value)} IS NULL)`
    case 'case': {
      const branches = expr.branches.map(({ when, then }) => sql`WHEN ${render(when)} THEN ${render(then)}`)
      const otherwise = expr.otherwise ? render(expr.otherwise) : typedNull(expr.type)
      return sql`CASE ${joined(branches, ' ')} ELSE ${otherwise} END`
    }
    case 'coalesce':
      return sql`coalesce(${joined(expr.operands.map(render), ', ')})`
    case 'let':
      return renderLet(state, expr)
    case 'try':
      return renderTry(state, expr.value)
    case 'inList':
      return renderInList(state, expr)
    case 'inLiterals':
      return renderInList(state, asInList(expr))
    case 'literals':
      return renderLiterals(expr, state.names)
    case 'like':
      return compose([expr.value], ([value]) => renderLike(state.names, value!, expr, render))
    case 'between':
      if (canRaise(expr.max)) return renderNode(state, splitBetween(state, expr))
      return compose([expr.value, expr.min, expr.max], ([value, min, max]) =>
        renderBetween(expr.value.type, value!, min!, max!, state.names),
      )
    case 'row':
      return rowOf(expr.items.map(render))
    case 'field':
      return rowFieldOf(render(expr.base), expr.index)
    case 'array':
      return expr.items.length === 0
        ? sql`CAST([] AS ${duckdbType(expr.type)})`
        : sql`[${joined(expr.items.map(render), ', ')}]`
    case 'scalarSubquery':
      return sql`(${renderSubquery(state, expr.query)})`
    case 'exists':
      noteQueryOfRow(state, expr.query.node)
      return sql`EXISTS (${state.renderQuery(state, expr.query.node, [])})`
    case 'inSubquery': {
      const { type } = expr.value
      const value = needsComparisonKey(type) ? comparisonKey(type, render(expr.value), state.names) : render(expr.value)
      return sql`(${value} IN (${renderSubquery(state, expr.query, true)}))`
    }
    case 'quantified': {
      const { type } = expr.value
      const value = needsComparisonKey(type) ? comparisonKey(type, render(expr.value), state.names) : render(expr.value)
      const quantifier = expr.all ? sql`ALL` : sql`ANY`
      return sql`(${value} ${code(expr.operator)} ${quantifier} (${renderSubquery(state, expr.query, true)}))`
    }
    case 'lambda':
    case 'aggregate':
    case 'window':
    case 'grouping':
      // The grammar allows aggregates in places that the analyzer, like Trino's, does not refuse: VALUES count(*).
      throw new EngineError('GENERIC_INTERNAL_ERROR', `Unexpected ${expr.kind}`)
    default:
      return unreachable(expr)
  }
}

/** Evaluates from left to right as written, so that sums of doubles and overflows equal those of the chain. */
function renderChain(state: RenderState, expr: OperatorExpr): Sql {
  const operands: Expr[] = []
  let at: Expr = expr
  for (; continuesChain(at, expr); at = at.left) operands.unshift(at.right)
  const items = [at, ...operands].map((operand) => {
    const text = renderExpr(state, operand)
    return sameType(operand.type, expr.type) ? text : sql`CAST(${text} AS ${duckdbType(expr.type)})`
  })
  const [left, right] = [state.names.fresh(), state.names.fresh()]
  const step = expr.operator.render(left, right, state)
  return sql`list_reduce([${joined(items, ', ')}], lambda ${left}, ${right}: ${step})`
}

/**
 * From this length on DuckDB turns an IN list into a join, and evaluates the left side regardless of surrounding
 * conditions. Inside a lambda it does not.
 */
const JOINED_VALUES = 5

function renderInList(state: RenderState, expr: InListExpr): Sql {
  const { value, values } = expr
  const within = (x: Sql, items: readonly Sql[]): Sql => renderIn(value.type, x, items, state.names)
  const items = values.map((item) => renderExpr(state, item))
  if (values.length >= JOINED_VALUES && canRaise(value) && values.every(isOfNoRow) && !isVolatile(expr)) {
    const x = state.names.fresh()
    return bindName(x, renderExpr(state, value), within(x, items))
  }
  if (!isVolatile(expr)) return composed(state, expr, [value], [renderExpr(state, value)], ([x]) => within(x!, items))
  // DuckDB expands an IN list into comparisons, each of which would evaluate a volatile value again.
  return bindAll(state, [renderExpr(state, value), ...items], ([x, ...others]) => within(x!, others))
}

/**
 * Trino stops at the first term that decides; DuckDB evaluates all terms of AND and OR in a select list. If a later
 * term could raise an error, a CASE therefore evaluates the earlier terms first.
 */
function renderLogical(state: RenderState, kind: 'and' | 'or', terms: readonly Expr[], texts: readonly Sql[]): Sql {
  const operator = kind === 'and' ? 'AND' : 'OR'
  const whole = balanced(texts, operator)
  if (!terms.slice(1).some(canRaise)) return whole
  const named = terms.findIndex((term, i) => i < terms.length - 1 && isVolatile(term))
  if (named >= 0 && !terms.some(hasSubquery)) {
    // A volatile term is bound to a name, since the CASE and the whole expression both use its value.
    const name = state.names.fresh()
    const rest = balanced([name, ...texts.filter((_, i) => i > named)], operator)
    const decided = kind === 'or' ? sql`WHEN ${name} THEN true` : sql`WHEN NOT ${name} THEN false`
    const last = bindName(name, texts[named]!, sql`CASE ${decided} ELSE ${rest} END`)
    if (named === 0) return last
    const others: Expr = { kind, type: BOOLEAN, terms: terms.slice(named) }
    return renderLogical(state, kind, [...terms.slice(0, named), others], [...texts.slice(0, named), last])
  }
  if (whole.length > REPEATABLE_CONDITION) return renderHalves(state, kind, terms, texts) ?? whole
  const guards = texts
    .slice(0, -1)
    .map((text) => (kind === 'or' ? sql`WHEN ${text} THEN true` : sql`WHEN NOT ${text} THEN false`))
  return sql`CASE ${joined(guards, ' ')} ELSE ${whole} END`
}

/**
 * For a condition too long to repeat: binds the value of its first half to a name and evaluates the second half after
 * it.
 */
function renderHalves(
  state: RenderState,
  kind: 'and' | 'or',
  terms: readonly Expr[],
  texts: readonly Sql[],
): Sql | undefined {
  // A lambda cannot contain queries or columns of outer queries.
  if (terms.some((term) => hasSubquery(term) || outerColumnsOf(state, term).length > 0)) return undefined
  const middle = terms.length >> 1
  const half = (from: number, to: number): Sql =>
    renderLogical(state, kind, terms.slice(from, to), texts.slice(from, to))
  const name = state.names.fresh()
  const rest = balanced([name, half(middle, terms.length)], kind === 'and' ? 'AND' : 'OR')
  const decided = kind === 'or' ? sql`WHEN ${name} THEN true` : sql`WHEN NOT ${name} THEN false`
  return bindName(name, half(0, middle), sql`CASE ${decided} ELSE ${rest} END`)
}

/**
 * A condition of WHERE or ON, as conjuncts. NULL counts as false, which permits plain comparisons of numbers.
 * @param clause `overFiltered`: a WHERE around a SELECT that has removed rows
 */
export function renderConjuncts(
  state: RenderState,
  exprs: readonly Expr[],
  sides: Sides,
  clause: 'on' | 'where' | 'overFiltered' = 'on',
): readonly Sql[] {
  const terms = guardedKeys(exprs.flatMap(termsOf).map(joinedByEquality), sides)
  // The engine turns a query in IN into a join; a term that may fail would move below it, to rows that the list
  // removes.
  const asQueries = clause !== 'on' && state.outerColumns.size === 0 && !terms.some(mayRaiseOfRow)
  return guarded(
    state,
    terms.map((expr) => ({ expr, text: renderCondition(state, expr, asQueries) })),
    sides,
    clause === 'overFiltered',
  )
}

/** The conjuncts of a condition. */
export function termsOf(expr: Expr): readonly Expr[] {
  return expr.kind === 'and' ? expr.terms.flatMap(termsOf) : [expr]
}

/** @param asQueries whether long lists of constants may be rendered as queries */
function renderCondition(state: RenderState, expr: Expr, asQueries: boolean): Sql {
  switch (expr.kind) {
    case 'and':
      return balanced(
        expr.terms.map((term) => renderCondition(state, term, asQueries)),
        'AND',
      )
    case 'or':
      return balanced(
        expr.terms.map((term) => renderAlternative(state, term, asQueries)),
        'OR',
      )
    case 'not':
      if (expr.value.kind !== 'inLiterals') return renderExpr(state, expr)
      return sql`(NOT ${renderCondition(state, expr.value, asQueries)})`
    case 'inLiterals':
      if (!asQueries || hasSubquery(expr.value) || isVolatile(expr.value)) return renderExpr(state, expr)
      return sql`(${renderExpr(state, expr.value)} IN (SELECT unnest(${renderLiterals(expr.literals, state.names)})))`
    case 'compare':
      return renderComparisonCondition(state, expr)
    case 'between': {
      const { value, min, max } = expr
      if (isFloating(value.type) && isAlwaysFinite(max)) {
        return sql`(${renderExpr(state, value)} BETWEEN ${renderExpr(state, min)} AND ${renderExpr(state, max)})`
      }
      return renderExpr(state, expr)
    }
    case 'inList': {
      if (!isFloating(expr.value.type) || !expr.values.every(isAlwaysFinite)) return renderExpr(state, expr)
      const value = renderExpr(state, expr.value)
      return sql`(${value} IN (${joined(
        expr.values.map((item) => renderExpr(state, item)),
        ', ',
      )}))`
    }
    default:
      return renderExpr(state, expr)
  }
}

/**
 * Renders a term of OR. DuckDB rewrites `(a AND b) OR c` to `(b OR c) AND …` if b and c read only one column. A term
 * that may fail therefore stays together with the terms before it. Earlier terms that cannot fail are also repeated
 * outside, since DuckDB finds join keys there.
 */
function renderAlternative(state: RenderState, expr: Expr, asQueries: boolean): Sql {
  const terms = termsOf(expr)
  if (!terms.some((term, i) => i > 0 && mayRaiseOfRow(term))) return renderCondition(state, expr, asQueries)
  const texts = terms.map((term) => renderCondition(state, term, asQueries))
  const whole = balanced(texts, 'AND')
  const before = terms.slice(0, terms.findIndex(mayRaiseOfRow))
  const repeated = whole.length <= REPEATABLE_CONDITION && !before.some((term) => isVolatile(term) || hasSubquery(term))
  return balanced([...(repeated ? texts.slice(0, before.length) : []), whereHold(whole)], 'AND')
}

/**
 * DuckDB treats NaN as the largest number and equal to itself; in Trino, every comparison with NaN is false. Where
 * false and NULL mean the same, a plain comparison is correct if NaN cannot satisfy it; DuckDB then pushes it into
 * scans.
 */
function renderComparisonCondition(state: RenderState, expr: CompareExpr): Sql {
  const { operator, left, right } = expr
  if (!isFloating(left.type) || isVolatile(expr)) return renderExpr(state, expr)
  const [l, r] = [renderExpr(state, left), renderExpr(state, right)]
  const plain = sql`(${l} ${code(operator)} ${r})`
  const unlessNaN = (x: Sql): Sql => sql`(${plain} AND NOT isnan(${x}))`
  switch (operator) {
    case '=':
      return isAlwaysFinite(right) || isAlwaysFinite(left) ? plain : unlessNaN(l)
    case '<':
    case '<=':
      if (isAlwaysFinite(right)) return plain
      return isAlwaysFinite(left) ? unlessNaN(r) : renderExpr(state, expr)
    case '>':
    case '>=':
      if (isAlwaysFinite(left)) return plain
      return isAlwaysFinite(right) ? unlessNaN(l) : renderExpr(state, expr)
    default:
      return renderExpr(state, expr)
  }
}

// ---- Calls

function renderCall(state: RenderState, written: CallExpr): Sql {
  if (written.routine !== undefined) return renderRoutine(state, written, written.routine)
  const call = isConcat(written) ? { ...written, arguments: operandsOfConcat(written) } : written
  const values = call.arguments.filter((argument) => argument.kind !== 'lambda')
  const texts = values.map((argument) => renderExpr(state, argument))
  const build = (bound: readonly Sql[]): Sql => {
    let next = 0
    const args = call.arguments.map((argument): RenderArgument => {
      if (argument.kind === 'lambda') return renderArgument(state, argument)
      const constant = argument.kind === 'constant' ? renderedConstant(argument) : undefined
      return {
        kind: 'value',
        sql: bound[next++]!,
        ...(constant === undefined ? {} : { constant }),
      }
    })
    return call.function.render({ args, session: state.session, names: state.names })
  }
  const outer = call.arguments.flatMap((argument) =>
    argument.kind === 'lambda' ? outerColumnsOf(state, argument) : [],
  )
  if (outer.length === 0) return composed(state, call, values, texts, build)
  const free = values.map((value) => value.kind !== 'constant')
  return bindColumns(
    state,
    outer,
    texts.filter((_, i) => free[i]),
    (names) => {
      let next = 0
      return build(texts.map((text, i) => (free[i] ? names[next++]! : text)))
    },
  )
}

/** Inlines the routine's body at the call. All arguments are evaluated before the body, including unused ones. */
function renderRoutine(state: RenderState, call: CallExpr, { parameters, body }: Routine): Sql {
  const texts = call.arguments.map((argument) => renderExpr(state, argument))
  const light = call.arguments.map(
    (argument, i) => isLight(state, argument, texts[i]!) && !canRaise(argument) && !isVolatile(argument),
  )
  const apply = (names: readonly Sql[]): Sql => {
    parameters.forEach(({ id }, i) => {
      state.lambdaArguments.set(id, names[i]!)
      state.argumentWeights.set(id, light[i]! ? weightOf(state, call.arguments[i]!) : 1)
    })
    return renderExpr(state, body)
  }
  if (!light.includes(false)) return apply(texts)
  return bindAll(
    state,
    texts.filter((_, i) => !light[i]),
    (names) => {
      let next = 0
      return apply(texts.map((text, i) => (light[i] ? text : names[next++]!)))
    },
  )
}

function isLight(state: RenderState, expr: Expr, text: Sql): boolean {
  return weightOf(state, expr) <= LIGHT && text.length <= SHORT
}

/**
 * DuckDB's TRY accepts neither queries nor volatile functions. Queries are evaluated before the TRY; a volatile value
 * is rendered without TRY.
 */
function renderTry(state: RenderState, value: Expr): Sql {
  if (isVolatile(value)) return renderExpr(state, value)
  const queries: { readonly id: ColumnId; readonly text: Sql }[] = []
  const lift = (part: Expr): Expr => {
    if (!isSubquery(part)) return mapChildren(part, lift)
    // Lambda arguments and columns share one number range; names made here are negative.
    const id = -1 - state.lambdaArguments.size
    state.lambdaArguments.set(id, EMPTY)
    queries.push({ id, text: renderExpr(state, part) })
    return { kind: 'lambdaArgument', type: part.type, id }
  }
  const lifted = lift(value)
  if (queries.length === 0)
    return isReadingOfText(lifted) ? renderExpr(state, { ...lifted, safe: true }) : tried(renderExpr(state, lifted))
  return bindAll(
    state,
    queries.map((query) => query.text),
    (names) => {
      queries.forEach(({ id }, i) => state.lambdaArguments.set(id, names[i]!))
      return tried(renderExpr(state, lifted))
    },
  )
}

/** Binds the value to a name, unless repeating it costs less. */
function renderLet(state: RenderState, { name, value, body, strict }: LetExpr): Sql {
  const text = renderExpr(state, value)
  const repeatable = isLight(state, value, text) && !isVolatile(value) && (strict !== true || !canRaise(value))
  if (repeatable || hasSubquery(body)) {
    state.lambdaArguments.set(name.id, text)
    state.argumentWeights.set(name.id, weightOf(state, value))
    return renderExpr(state, body)
  }
  const columns = new Set<ColumnId>()
  visitColumns(body, (id) => columns.add(id))
  return bindColumns(state, [...columns], [text], ([bound]) => {
    state.lambdaArguments.set(name.id, bound!)
    return renderExpr(state, body)
  })
}

export function renderArgument(state: RenderState, expr: Expr): RenderArgument {
  if (expr.kind === 'lambda') return { kind: 'lambda', apply: (...names) => renderLambda(state, expr, names) }
  const constant = expr.kind === 'constant' ? renderedConstant(expr) : undefined
  return { kind: 'value', sql: renderExpr(state, expr), ...(constant === undefined ? {} : { constant }) }
}

function renderLambda(state: RenderState, { parameters, body }: LambdaExpr, names: readonly Sql[]): Sql {
  parameters.forEach(({ id }, i) => state.lambdaArguments.set(id, names[i]!))
  return renderExpr(state, body)
}
