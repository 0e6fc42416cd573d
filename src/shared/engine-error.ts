import { errorTable, type ErrorName, type ErrorType } from './error-table.ts'
import { QuipuError, type Retry } from './quipu-error.ts'

export type { ErrorName, ErrorType } from './error-table.ts'

/** A place in a statement, both 1-based; columns count code points. */
export interface ErrorLocation {
  readonly lineNumber: number
  readonly columnNumber: number
}

/** An error as the cluster that ran the statement names it. Connectors there may use names that no table here has. */
export interface RemoteErrorName {
  readonly cluster: string
  readonly errorName: string
  readonly errorCode: number
  readonly errorType: ErrorType
}

/** Why a query failed, as events and answers carry it. */
export interface Failure {
  readonly errorName: ErrorName
  readonly errorCode: number
  readonly errorType: ErrorType
  readonly message: string
  readonly location?: ErrorLocation
  /** The error of a cluster; clients see its name in place of `errorName`, which is the nearest one of this server. */
  readonly remote?: RemoteErrorName
}

/**
 * An error for the client of a query or a request: a name from Trino's table, a message that says what to do, a
 * position if one is known. Translated once, at the edge: into the statement's `error` object inside a query, into
 * problem+json outside of one. The message of an error with a location begins `line L:C: `, as in Trino.
 */
export class EngineError extends QuipuError {
  readonly retry: Retry
  readonly errorName: ErrorName
  readonly location: ErrorLocation | undefined
  readonly remote: RemoteErrorName | undefined

  constructor(
    errorName: ErrorName,
    message: string,
    options?: ErrorOptions & {
      location?: ErrorLocation | undefined
      retry?: Retry
      remote?: RemoteErrorName | undefined
    },
  ) {
    const at = options?.location
    super(at ? `line ${at.lineNumber}:${at.columnNumber}: ${message}` : message, options)
    this.errorName = errorName
    this.retry = options?.retry ?? 'never'
    this.location = at
    this.remote = options?.remote
  }

  get errorCode(): number {
    return errorTable[this.errorName].code
  }

  get errorType(): ErrorType {
    return errorTable[this.errorName].type
  }

  toFailure(): Failure {
    return { ...failureOf(this.errorName, this.message, this.location), ...(this.remote && { remote: this.remote }) }
  }
}

export function failureOf(errorName: ErrorName, message: string, location?: ErrorLocation): Failure {
  const { code, type } = errorTable[errorName]
  return { errorName, errorCode: code, errorType: type, message, ...(location ? { location } : {}) }
}

/** A failure from an event or an answer. zod's optional fields may be `undefined`; a Failure leaves such fields out. */
export function asFailure({ location, remote, errorName, errorCode, errorType, message }: GivenFailure): Failure {
  return { errorName, errorCode, errorType, message, ...(location ? { location } : {}), ...(remote ? { remote } : {}) }
}

type GivenFailure = Omit<Failure, 'location' | 'remote'> & {
  readonly location?: ErrorLocation | undefined
  readonly remote?: RemoteErrorName | undefined
}

/** Any thrown value as a failure. Anything but an EngineError is a bug of Quipu, so its text stays in the log. */
export function toFailure(error: unknown): Failure {
  if (error instanceof EngineError) return error.toFailure()
  return failureOf('GENERIC_INTERNAL_ERROR', 'Internal error; the coordinator log has the details')
}

/** Says that the start, or the whole process, cannot continue. Carries the exit code and one line for the operator. */
export class ExitError extends QuipuError {
  readonly retry = 'never'
  readonly exitCode: number

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}
