import { isInteger, isNumeric, sameType } from '../types/sql-type.ts'
import type { BetweenExpr, CallExpr, Expr, LambdaArgumentExpr, OperatorExpr } from '../analyzer/tree.ts'
import { someExpr } from '../analyzer/walk.ts'
import { isSubquery } from './composition.ts'
import { canRaise } from '../analyzer/raising.ts'
import { EMPTY } from '../../duckdb/text/sql.ts'
import type { RenderState } from './render-state.ts'

/** A chain of this many operators is rendered as a fold over a list: DuckDB plans deep trees for seconds. */
const LONG_CHAIN = 100

/** Whether `a + b + …` uses one operator and one type throughout. */
export function isLongChain(expr: OperatorExpr): boolean {
  let at: Expr = expr
  for (let length = 0; length < LONG_CHAIN; length++) {
    if (!continuesChain(at, expr)) return false
    at = at.left
  }
  return true
}

/** Whether a part of the left side of an operator belongs to the same chain. */
export function continuesChain(part: Expr, { name, type }: OperatorExpr): part is OperatorExpr {
  if (part.kind !== 'operator' || part.name !== name) return false
  if (!sameType(part.type, type) || !sameType(part.left.type, type)) return false
  // Sums of decimals are computed in the result type.
  if (type.kind === 'decimal') return (name === '+' || name === '-') && part.right.type.kind === 'decimal'
  return sameType(part.right.type, type)
}

/** Renders BETWEEN as two comparisons: the second bound is evaluated only if the first comparison holds. */
export function splitBetween(state: RenderState, { value, min, max, type }: BetweenExpr): Expr {
  const terms = (x: Expr): Expr => ({
    kind: 'and',
    type,
    terms: [
      { kind: 'compare', type, operator: '>=', left: x, right: min },
      { kind: 'compare', type, operator: '<=', left: x, right: max },
    ],
  })
  if (value.kind === 'column' || value.kind === 'constant' || value.kind === 'lambdaArgument') return terms(value)
  const name: LambdaArgumentExpr = { kind: 'lambdaArgument', type: value.type, id: -1 - state.lambdaArguments.size }
  state.lambdaArguments.set(name.id, EMPTY)
  return { kind: 'let', type, name, value, body: terms(name) }
}

/** Whether the expression depends on no row: it reads no column and no argument of a lambda, and has no query. */
export function isOfNoRow(expr: Expr): boolean {
  return !someExpr(expr, (part) => part.kind === 'column' || part.kind === 'lambdaArgument' || isSubquery(part))
}

/** Whether the value is never NaN or infinite: a literal, an integer or a decimal. */
export function isAlwaysFinite(expr: Expr): boolean {
  if (expr.kind === 'cast') return isInteger(expr.value.type) || expr.value.type.kind === 'decimal'
  return expr.kind === 'constant' && isNumeric(expr.type) && Number.isFinite(Number(expr.value ?? Number.NaN))
}

/** Whether the expression is `||` of texts, or of arrays of one type. */
export function isConcat(expr: Expr): expr is CallExpr {
  if (expr.kind !== 'call' || expr.function.name !== 'concat') return false
  if (expr.type.kind === 'varchar') return true
  return expr.type.kind === 'array' && expr.arguments.every((argument) => sameType(argument.type, expr.type))
}

/** The operands of a chain of `||`, in order. */
export function operandsOfConcat(call: CallExpr): readonly Expr[] {
  const parts: Expr[] = []
  const waiting: Expr[] = [call]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (isConcat(next)) waiting.push(...next.arguments.toReversed())
    else parts.push(next)
  }
  return parts
}

/** Whether the expression reads a number or boolean from a text that cannot fail itself: its TRY is TRY_CAST. */
export function isReadingOfText(expr: Expr): expr is Extract<Expr, { kind: 'cast' }> {
  return (
    expr.kind === 'cast' &&
    !expr.stored &&
    expr.value.type.kind === 'varchar' &&
    (isNumeric(expr.type) || expr.type.kind === 'boolean') &&
    !canRaise(expr.value)
  )
}
