import { EngineError } from '../../shared/engine-error.ts'
import type { Expression } from '../syntax/ast.ts'
import type { DataType } from '../syntax/ast-types.ts'
import { childrenOf, type AnyNode } from '../syntax/tree.ts'
import type { SqlType } from '../types/sql-type.ts'
import { errorAt, type AnalysisContext } from './context.ts'
import { dataTypeText, typeOf } from './data-types.ts'

/** The type of a parameter, variable or result of a function. */
export function declaredType(context: AnalysisContext, at: AnyNode, node: DataType): SqlType {
  try {
    return typeOf(node)
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
    throw errorAt(context, at, 'TYPE_MISMATCH', `Unknown type: ${dataTypeText(node)}`)
  }
}

/** Refuses queries and parameters in a function. */
export function verifyRoutineExpression(context: AnalysisContext, node: Expression): void {
  const visit = (part: AnyNode): void => {
    if (part.kind === 'SubqueryExpression') {
      throw errorAt(context, part, 'NOT_SUPPORTED', 'Queries are not allowed in functions')
    }
    if (part.kind === 'Parameter') {
      throw errorAt(context, part, 'INVALID_PARAMETER_USAGE', 'Query takes no parameters')
    }
    childrenOf(part).forEach(visit)
  }
  visit(node)
}
