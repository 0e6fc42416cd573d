import type { Expression } from '../syntax/ast.ts'

/** An expression as messages show it: the text that it was read from. */
export function printSource(sql: string, expression: Expression): string {
  return sql.slice(expression.span.start, expression.span.end)
}
