import { EngineError } from '../../shared/engine-error.ts'
import type { SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'

/**
 * The error for times finer than microseconds, which have another representation. A function without a rendering for
 * them fails instead of cutting digits.
 */
export function notSupportedPrecision(type: SqlType): EngineError {
  return new EngineError('NOT_SUPPORTED', `Values of ${typeName(type)} finer than microseconds are not supported here`)
}
