import { EngineError } from '../../../shared/engine-error.ts'

/** The error of a query whose statement needs secrets that were not kept, so that a successor cannot run it. */
export function secretsNotKept(): EngineError {
  return new EngineError(
    'COORDINATOR_RESTARTED',
    'The coordinator was restarted while the statement ran, and secrets in statements are not stored; submit the statement again',
  )
}
