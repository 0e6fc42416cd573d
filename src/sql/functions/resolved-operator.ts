import type { Sql } from '../../duckdb/text/sql.ts'
import type { SqlType } from '../types/sql-type.ts'
import type { Names, RenderSession } from './rendering.ts'

export type ArithmeticOperator = '+' | '-' | '*' | '/' | '%'

/** An operator with known operand types: the caller coerces both operands, then renders. */
export interface ResolvedOperator {
  readonly left: SqlType
  readonly right: SqlType
  readonly result: SqlType
  render(left: Sql, right: Sql, context: OperatorContext): Sql
}

/** The names and the session that an operator is rendered with. */
export interface OperatorContext {
  readonly names: Names
  readonly session: RenderSession
}
