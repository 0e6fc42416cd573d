import type { JsonTable } from '../syntax/ast-json.ts'
import { errorAt, type AnalysisContext } from './context.ts'
import type { Field, Scope } from './scope.ts'
import type { RelationNode } from './tree.ts'

export function analyzeJsonTable(
  context: AnalysisContext,
  node: JsonTable,
  _scope: Scope,
): { readonly node: RelationNode; readonly fields: readonly Field[] } {
  throw errorAt(context, node, 'NOT_SUPPORTED', 'JSON_TABLE is not supported')
}
