import type { EngineError } from '../../shared/engine-error.ts'
import { translateError } from '../../sql/functions/runtime-errors.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { withoutData } from '../../telemetry/reported-error.ts'

/** DuckDB's error in Trino's words; what has none is kept for the log, since its text never reaches a client. */
export function translateAndLog(logger: Logger): (text: string) => EngineError {
  return (text) => {
    const error = translateError(text)
    if (error.errorName === 'GENERIC_INTERNAL_ERROR') {
      logger.error('task.trouble', { engineError: loggable(text) }, 'The engine failed on a statement')
    }
    return error
  }
}

/** DuckDB's kinds of errors that speak of its own state, and of names, in quotes; others show values as they are. */
const WITHOUT_VALUES =
  /^(?:INTERNAL|FATAL|Binder|Catalog|Parser|Syntax|IO|HTTP|Not implemented|Serialization|TransactionContext|Dependency) Error:/i

/** What the log has of an engine's error. */
function loggable(text: string): string {
  if (WITHOUT_VALUES.test(text)) return withoutData(text)
  return /^[A-Z][A-Za-z ]{0,40} Error(?=:)/.exec(text)?.[0] ?? 'An error of no known kind'
}
