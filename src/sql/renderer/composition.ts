import { bindName } from '../functions/fill-template.ts'
import type { ColumnId, Expr } from '../analyzer/tree.ts'
import { childrenOfExpr, isVolatile, someExpr, visitColumns } from '../analyzer/walk.ts'
import { isLeaf, plainName, sql, type Sql } from '../../duckdb/text/sql.ts'
import { structOf } from '../types/duckdb-representation.ts'
import { costOfSql } from './macro-cost.ts'
import { columnName, type RenderState } from './render-state.ts'

/** If repeating operands adds more expressions than this, they are computed once and bound to a name. */
const MAX_REPEATED = 300

/**
 * Puts operands into a rendering. A rendering may use an operand several times, directly or in a macro, and each use
 * multiplies everything below it: nested ten deep, a statement of a hundred characters took DuckDB minutes to bind.
 * Heavy and volatile operands are therefore bound to a name first. So are columns of an outer query that a lambda would
 * read, because DuckDB does not find them there.
 */
export function composed(
  state: RenderState,
  expr: Expr,
  parts: readonly Expr[],
  texts: readonly Sql[],
  build: (texts: readonly Sql[]) => Sql,
): Sql {
  const weights = parts.map((part) => weightOf(state, part))
  // Placeholders are recognized by identity, not by their text.
  const placeholders = parts.map((part, i) => (part.kind === 'constant' ? texts[i]! : plainName(`zz${i}_`)))
  const { own, uses, loops, inLambdas } = costOfSql(
    build(placeholders),
    placeholders.map((placeholder, i) =>
      parts[i]!.kind === 'constant' && !isWord(placeholder) ? undefined : placeholder,
    ),
  )
  const repeated = weights.map(
    (weight, i) =>
      (uses[i]! > 1 && uses[i]! * weight > MAX_REPEATED) ||
      ((uses[i]! > 1 || loops[i]!) && isVolatile(parts[i]!)) ||
      (inLambdas[i]! && outerColumnsOf(state, parts[i]!).length > 0),
  )
  if (!repeated.includes(true)) {
    state.weights.set(expr, own + sum(weights.map((weight, i) => weight * Math.max(uses[i]!, 1))))
    return build(texts)
  }
  state.weights.set(expr, own + sum(weights) + sum(uses))
  const bound = parts.map((part) => part.kind !== 'constant')
  return bindAll(
    state,
    texts.filter((_, i) => bound[i]),
    (names) => {
      let next = 0
      return build(texts.map((text, i) => (bound[i] ? names[next++]! : text)))
    },
  )
}

/** The columns of outer queries in an expression; a lambda cannot read them. */
export function outerColumnsOf(state: RenderState, expr: Expr): readonly ColumnId[] {
  if (state.outerColumns.size === 0) return []
  const found = new Set<ColumnId>()
  visitColumns(expr, (id) => {
    if (state.outerColumns.has(id) && !state.columnNames.has(id)) found.add(id)
  })
  return [...found]
}

/** Whether a constant is a text literal, a single token. */
function isWord(constant: Sql): boolean {
  return isLeaf(constant, 'literal')
}

/**
 * Renders `body` over values that are computed once. They are the fields of one struct, so that all of them stand
 * outside of the lambda: DuckDB allows no query in a lambda and, in a query without FROM, no column of an outer query.
 */
export function bindAll(state: RenderState, values: readonly Sql[], body: (names: readonly Sql[]) => Sql): Sql {
  const bound = state.names.fresh()
  const fields = Object.fromEntries(values.map((value, i) => [`p${i}`, value]))
  const names = values.map((_, i) => sql`${bound}.${plainName(`p${i}`)}`)
  return bindName(bound, structOf(fields), body(names))
}

/** Binds values and columns to names outside of a lambda. `body` renders the lambda with the names of the values. */
export function bindColumns(
  state: RenderState,
  columns: readonly ColumnId[],
  values: readonly Sql[],
  body: (names: readonly Sql[]) => Sql,
): Sql {
  const outside = columns.map((id) => state.columnNames.get(id) ?? columnName(id))
  return bindAll(state, [...values, ...outside], (names) => {
    columns.forEach((id, i) => state.columnNames.set(id, names[values.length + i]!))
    const inside = body(names)
    columns.forEach((id, i) => {
      if (outside[i] === columnName(id)) state.columnNames.delete(id)
      else state.columnNames.set(id, outside[i]!)
    })
    return inside
  })
}

/** The size of an expression: recorded for composed expressions, otherwise computed from its parts. */
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
