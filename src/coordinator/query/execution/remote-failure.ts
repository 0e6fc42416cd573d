import { EngineError, type ErrorName } from '../../../shared/engine-error.ts'
import { errorTable, type ErrorType } from '../../../shared/error-table.ts'
import type { ClusterLost, RemoteError } from '../../clusters/relay/relay-port.ts'

const NEAREST: Readonly<Record<ErrorType, ErrorName>> = {
  USER_ERROR: 'GENERIC_USER_ERROR',
  INTERNAL_ERROR: 'GENERIC_INTERNAL_ERROR',
  INSUFFICIENT_RESOURCES: 'GENERIC_INSUFFICIENT_RESOURCES',
  EXTERNAL: 'GENERIC_INTERNAL_ERROR',
}

/** The error of a query that failed at its cluster, with the name, code and position that the cluster gives. */
export function remoteFailure(cluster: string, error: RemoteError): EngineError {
  const { errorName, errorCode, errorLocation: location } = error
  const errorType = isErrorType(error.errorType) ? error.errorType : 'INTERNAL_ERROR'
  // EngineError puts the position before the message, so the position that the cluster put there is removed.
  const message = location ? error.message.replace(/^line \d+:\d+: /, '') : error.message
  return new EngineError(nearestName(errorName, errorType), message, {
    location,
    remote: { cluster, errorName, errorCode, errorType },
  })
}

function nearestName(errorName: string, errorType: ErrorType): ErrorName {
  return isErrorName(errorName) ? errorName : NEAREST[errorType]
}

function isErrorName(name: string): name is ErrorName {
  return Object.hasOwn(errorTable, name)
}

function isErrorType(type: string): type is ErrorType {
  return Object.hasOwn(NEAREST, type)
}

/** The reason why a statement whose cluster was lost cannot run again. */
export type LostCause =
  /** A part of the result was sent. Another run may give other rows, or the same rows in another order. */
  | 'rows_sent'
  /** The statement changes something, and the cluster may have begun it. */
  | 'may_have_run'
  | 'no_attempts_left'

const UNKNOWN_OUTCOME = 'It is not known whether the statement was carried out: look before you submit it again'

/** The error of a change that this server had to leave, while its cluster went on with it. */
export function withUnknownOutcome(error: EngineError): EngineError {
  return new EngineError(error.errorName, `${error.message}. ${UNKNOWN_OUTCOME}`, { cause: error })
}

/** The error of a query whose cluster was lost. */
export function lostClusterFailure(error: ClusterLost, cause: LostCause): EngineError {
  switch (cause) {
    case 'rows_sent':
      return new EngineError(
        'REMOTE_HOST_GONE',
        `${error.message}. A part of the result had been sent, so the statement cannot run again elsewhere: submit it again`,
        { cause: error },
      )
    case 'may_have_run':
      return new EngineError('REMOTE_HOST_GONE', `${error.message}. ${UNKNOWN_OUTCOME}`, { cause: error })
    case 'no_attempts_left':
      return new EngineError('REMOTE_HOST_GONE', error.message, { cause: error })
  }
}
