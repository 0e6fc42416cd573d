import { EngineError } from '../../shared/engine-error.ts'
import type { SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'

/** Times finer than microseconds are held otherwise; what has no rendering for them says so, nothing is cut. */
export function notSupportedPrecision(type: SqlType): EngineError {
  return new EngineError('NOT_SUPPORTED', `Values of ${typeName(type)} finer than microseconds are not supported here`)
}
