import { bindName } from '../functions/fill-template.ts'
import type { Expr } from '../analyzer/tree.ts'
import { childrenOfExpr, someExpr } from '../analyzer/walk.ts'
import type { RenderState } from './render-state.ts'

/** Heavier operands are calculated once, under a name, where a rendering would repeat them. */
const HEAVY = 40
/** How often a macro uses an argument, at a guess: DuckDB binds it as often. */
const MACRO_USES = 3

const MACRO = /\b[qt]_\w+\(/

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
  const plain = build(texts)
  const own = texts.reduce((text, part) => (part.length > 2 ? text.replaceAll(part, '') : text), plain)
  const factor = MACRO.test(own) ? MACRO_USES : 1
  const uses = texts.map((text) => (text.length > 2 ? plain.split(text).length - 1 : 1))
  const repeats = weights.some((weight, i) => weight > HEAVY && factor * uses[i]! > 1)
  if (!repeats) {
    state.weights.set(expr, 1 + sum(weights.map((weight, i) => weight * Math.max(uses[i]!, 1) * factor)))
    return plain
  }
  // A query cannot stand inside of the lambda that binds names: it is bound as well.
  const bound = parts.map((part, i) => weights[i]! > HEAVY || hasSubquery(part))
  const names = bound.map((isBound, i) => (isBound ? state.names.fresh() : texts[i]!))
  const body = build(names)
  state.weights.set(expr, 1 + sum(weights) + factor * parts.length)
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
  return someExpr(
    expr,
    ({ kind }) => kind === 'scalarSubquery' || kind === 'exists' || kind === 'inSubquery' || kind === 'quantified',
  )
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
