import { bindName } from '../functions/fill-template.ts'
import type { Expr } from '../analyzer/tree.ts'
import { childrenOfExpr, someExpr } from '../analyzer/walk.ts'
import { measure } from './macro-cost.ts'
import type { RenderState } from './render-state.ts'

/** Operands that come to more expressions than this by being repeated are calculated once, under a name. */
const MAX_REPEATED = 300

/**
 * Puts operands into a rendering. A rendering may use an operand several times, openly or in a macro, and each use
 * multiplies all below it: nested ten deep, a statement of a hundred characters took DuckDB minutes to bind. So
 * operands that have grown heavy get a name first.
 */
export function composed(
  state: RenderState,
  expr: Expr,
  parts: readonly Expr[],
  texts: readonly string[],
  build: (texts: readonly string[]) => string,
): string {
  const weights = parts.map((part) => weightOf(state, part))
  const placeholders = parts.map((part, i) => (part.kind === 'constant' ? texts[i]! : `zz${i}_`))
  const { own, uses } = measure(build(placeholders), placeholders)
  const repeated = weights.map((weight, i) => uses[i]! > 1 && uses[i]! * weight > MAX_REPEATED)
  if (!repeated.includes(true)) {
    state.weights.set(expr, own + sum(weights.map((weight, i) => weight * Math.max(uses[i]!, 1))))
    return build(texts)
  }
  // A query cannot stand inside of the lambda that binds names: it is bound as well.
  const bound = parts.map((part, i) => repeated[i]! || hasSubquery(part))
  const names = bound.map((isBound, i) => (isBound ? state.names.fresh() : texts[i]!))
  const body = build(names)
  state.weights.set(
    expr,
    own + sum(weights.map((weight, i) => (bound[i] ? weight + uses[i]! : weight * Math.max(uses[i]!, 1)))),
  )
  return names.reduceRight((text, name, i) => (bound[i] ? bindName(name, texts[i]!, text) : text), body)
}

/** Known for what was composed; otherwise that of the parts. */
export function weightOf(state: RenderState, expr: Expr): number {
  if (expr.kind === 'column' || expr.kind === 'constant') return 1
  if (expr.kind === 'lambdaArgument') return state.argumentWeights.get(expr.id) ?? 1
  const known = state.weights.get(expr)
  if (known !== undefined) return known
  const weight = 1 + sum(childrenOfExpr(expr).map((child) => weightOf(state, child)))
  state.weights.set(expr, weight)
  return weight
}

export function hasSubquery(expr: Expr): boolean {
  return someExpr(expr, isSubquery)
}

export function isSubquery({ kind }: Expr): boolean {
  return kind === 'scalarSubquery' || kind === 'exists' || kind === 'inSubquery' || kind === 'quantified'
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
