import type { JsonArray, JsonExists, JsonObject, JsonQuery, JsonValue } from '../syntax/ast-json.ts'
import { errorAt } from './context.ts'
import type { ExpressionState } from './expression-state.ts'
import type { Expr } from './tree.ts'

/** JSON_EXISTS, JSON_VALUE, JSON_QUERY, JSON_OBJECT, JSON_ARRAY. */
export function analyzeJsonFunction(
  state: ExpressionState,
  node: JsonExists | JsonValue | JsonQuery | JsonObject | JsonArray,
): Expr {
  throw errorAt(state.context, node, 'NOT_SUPPORTED', 'SQL/JSON functions are not supported')
}
