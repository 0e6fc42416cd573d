import type { EngineError } from '../../shared/engine-error.ts'
import { translateError } from '../../sql/functions/runtime-errors.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { withoutData } from '../../telemetry/reported-error.ts'

/**
 * Translates DuckDB's error into Trino's words. An error without a translation is logged, since its text never reaches
 * a client.
 */
export function translateAndLog(logger: Logger): (text: string) => EngineError {
  return (text) => {
    const error = translateError(text)
    if (error.errorName === 'GENERIC_INTERNAL_ERROR') {
      logger.error('task.trouble', { engineError: loggable(text) }, 'The engine failed to run a statement')
    }
    return error
  }
}

/** DuckDB's kinds of errors that mention only its own state, and names in quotes. Other kinds show values. */
const WITHOUT_VALUES =
  /^(?:INTERNAL|FATAL|Binder|Catalog|Parser|Syntax|IO|HTTP|Not implemented|Serialization|TransactionContext|Dependency) Error:/i

/** The part of an engine's error that may be logged. */
function loggable(text: string): string {
  if (WITHOUT_VALUES.test(text)) return withoutData(text)
  return /^[A-Z][A-Za-z ]{0,40} Error(?=:)/.exec(text)?.[0] ?? 'An error of an unknown kind'
}
