import type { Expression } from '../syntax/ast.ts'
import { BOOLEAN } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { castTo } from './build.ts'
import { errorAt, type AnalysisContext } from './context.ts'
import { analyzeExpression } from './expressions.ts'
import { verifyScalar, verifyWrittenScalar } from './expression-state.ts'
import type { Scope } from './scope.ts'
import type { Expr } from './tree.ts'

/**
 * A condition that must be a boolean without aggregations, window functions and grouping operations.
 * @param clause its name in messages
 */
export function analyzeCondition(context: AnalysisContext, node: Expression, scope: Scope, clause: string): Expr {
  verifyWrittenScalar(context, node, clause)
  const analyzed = analyzeExpression(context, node, scope)
  verifyScalar(context, node, analyzed, clause)
  return toBoolean(context, node, analyzed.expr, clause)
}

/** @throws EngineError TYPE_MISMATCH */
export function toBoolean(context: AnalysisContext, node: Expression, expr: Expr, clause: string): Expr {
  if (expr.type.kind === 'boolean') return expr
  if (expr.type.kind === 'unknown') return castTo(expr, BOOLEAN)
  throw errorAt(
    context,
    node,
    'TYPE_MISMATCH',
    `${clause} must evaluate to a boolean: actual type ${typeName(expr.type)}`,
  )
}
