import { EngineError } from '../../../shared/engine-error.ts'

/** What a successor would have to run is not kept. */
export function secretsNotKept(): EngineError {
  return new EngineError(
    'COORDINATOR_RESTARTED',
    'The coordinator was restarted while the statement ran; the secrets in it are not kept, so submit it again',
  )
}
