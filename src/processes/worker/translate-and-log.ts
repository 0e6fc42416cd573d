import type { EngineError } from '../../shared/engine-error.ts'
import { translateError } from '../../sql/functions/runtime-errors.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { withoutData } from '../../telemetry/told-error.ts'

/** DuckDB's error in Trino's words; what has none is kept for the log, since its text never reaches a client. */
export function translateAndLog(logger: Logger): (text: string) => EngineError {
  return (text) => {
    const error = translateError(text)
    if (error.errorName === 'GENERIC_INTERNAL_ERROR') {
      logger.error('task.trouble', { engineError: withoutData(text) }, 'The engine failed on a statement')
    }
    return error
  }
}
