import type { Names } from './rendering.ts'

const MULTIPLYING = /\b[qt]_[a-z_0-9]+\(|\bCASE\b/g
const LITERAL = /^(?:CAST\((?:'(?:[^']|'')*'|-?[\d.]+|NULL) AS [A-Za-z0-9_(), [\]]+\)|'(?:[^']|'')*'|true|false|-?\d+)$/
/** Longer operands are not repeated either. */
const REPEATABLE = 160

/**
 * Whether an operand must not be repeated: macros and CASE name their arguments several times, and DuckDB binds each
 * copy, so that nesting them without care costs exponential time (six levels of substr: more than a second).
 */
export function isHeavy(sql: string): boolean {
  return sql.length > REPEATABLE || (sql.match(MULTIPLYING)?.length ?? 0) >= 2
}

/**
 * `body` over the operands; where one is heavy and `body` repeats its operands, they are computed once, in a list of one
 * struct whose lambda the body becomes. All of them then: what stands in a lambda may hold neither subquery nor aggregate.
 */
export function bindHeavy(
  operands: readonly string[],
  names: Names,
  body: (operands: readonly string[]) => string,
): string {
  if (!operands.some(isHeavy)) return body(operands)
  const bound = operands.flatMap((sql, i) => (LITERAL.test(sql) ? [] : [{ sql, i }]))
  const name = names.fresh()
  const single = bound.length === 1
  const inner = operands.map((sql, i) => {
    const at = bound.findIndex((each) => each.i === i)
    return at < 0 ? sql : single ? name : `${name}.a${at}`
  })
  const rendered = body(inner)
  if (!repeats(rendered, inner)) return body(operands)
  const list = single ? bound[0]!.sql : `{${bound.map(({ sql }, at) => `'a${at}': ${sql}`).join(', ')}}`
  return `list_transform([${list}], lambda ${name}: ${rendered})[1]`
}

/** A body of native operators that names each operand once may take any of them as it is. */
function repeats(rendered: string, operands: readonly string[]): boolean {
  if (rendered.match(MULTIPLYING) !== null) return true
  return operands.some((operand) => rendered.split(operand).length > 2)
}
