import type { Expression } from './ast.ts'
import type { QualifiedName } from './ast-node.ts'
import type { Query } from './ast-query.ts'
import type { Statement } from './ast-statements.ts'

/** Functions through which the parts of the printer call each other; `indent` counts steps of three blanks. */
export interface Printer {
  expression(node: Expression): string
  query(node: Query, indent: number): string
  statement(node: Statement, indent: number): string
  /** The name of a table or view. */
  table(name: QualifiedName): string
}

export function margin(indent: number): string {
  return '   '.repeat(indent)
}

/** Joins the present parts with a blank. */
export function phrase(...parts: readonly (string | false | undefined)[]): string {
  return parts.filter((part) => part !== false && part !== undefined && part !== '').join(' ')
}
