import { formOf, joined, literal, plainName, sql, tokensOfSql, type Sql } from '../../duckdb/text/sql.ts'
import type { Names } from './rendering.ts'

const MULTIPLYING = /\b[qt]_[a-z_0-9]+\(|\bCASE\b/g
/**
 * Calls that cost more than binding a value to a name: JavaScript, and functions that read texts by patterns or as
 * JSON.
 */
const SLOW = /\b(?:u|q_json|q_text|q_iso|q_rx|regexp|json)_[a-z_0-9]+\(/
const LITERAL_START = /^(?:CAST\((?:['\d.-]|NULL AS)|'|true$|false$|-?\d)/
const LITERAL = /^(?:CAST\((?:'(?:[^']|'')*'|-?[\d.]+|NULL) AS [A-Za-z0-9_(), [\]]+\)|'(?:[^']|'')*'|true|false|-?\d+)$/
/** Longer operands are not repeated either. */
const REPEATABLE = 160

/**
 * Whether an operand must not be repeated. Macros and CASE use their arguments several times, and DuckDB binds and
 * evaluates each copy. Careless nesting therefore costs exponential time (six levels of substr: more than a second).
 */
export function isHeavy(piece: Sql): boolean {
  if (piece.length > REPEATABLE) return true
  const form = formOf(piece)
  return SLOW.test(form) || (form.match(MULTIPLYING)?.length ?? 0) >= 2
}

/** Whether a piece is a literal, alone or cast to its type. */
function isLiteral(piece: Sql): boolean {
  return LITERAL_START.test(formOf(piece, 12)) && LITERAL.test(formOf(piece))
}

/**
 * Renders `body` over operands. If an operand is heavy and `body` repeats its operands, they are computed once, in a
 * list of one struct, and the body becomes a lambda over it. All operands are then bound, since a lambda may contain
 * neither subqueries nor aggregates.
 */
export function bindHeavy(operands: readonly Sql[], names: Names, body: (operands: readonly Sql[]) => Sql): Sql {
  if (!operands.some(isHeavy)) return body(operands)
  const bound = operands.flatMap((piece, i) => (isLiteral(piece) ? [] : [{ piece, i }]))
  // All operands are long literals: DuckDB has no struct without fields.
  if (bound.length === 0) return body(operands)
  const name = names.fresh()
  const single = bound.length === 1
  const inner = operands.map((piece, i) => {
    const at = bound.findIndex((each) => each.i === i)
    return at < 0 ? piece : single ? name : sql`${name}.${plainName(`a${at}`)}`
  })
  const rendered = body(inner)
  if (!repeats(rendered, inner)) return body(operands)
  const fields = bound.map(({ piece }, at) => sql`${literal(`a${at}`)}: ${piece}`)
  const list = single ? bound[0]!.piece : sql`{${joined(fields, ', ')}}`
  return sql`list_transform([${list}], lambda ${name}: ${rendered})[1]`
}

/**
 * Whether a body uses macros or CASE, or an operand more than once. Native operators that use each operand once need no
 * binding.
 */
function repeats(rendered: Sql, operands: readonly Sql[]): boolean {
  if (formOf(rendered).match(MULTIPLYING) !== null) return true
  const uses = new Map(operands.map((operand, i) => [operand, i] as const))
  const counts = operands.map(() => 0)
  return tokensOfSql(rendered, uses).some((token) => token.kind === 'known' && ++counts[token.index]! > 1)
}
