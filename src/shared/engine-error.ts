import { errorTable, type ErrorName, type ErrorType } from './error-table.ts'
import { QuipuError, type Retry } from './quipu-error.ts'

export type { ErrorName, ErrorType } from './error-table.ts'

/** A place in a statement, both 1-based; columns count code points. */
export interface ErrorLocation {
  readonly lineNumber: number
  readonly columnNumber: number
}

/** What went wrong with a query, as events and the wire carry it. */
export interface Failure {
  readonly errorName: ErrorName
  readonly errorCode: number
  readonly errorType: ErrorType
  readonly message: string
  readonly location?: ErrorLocation
}

/**
 * What a query or a request is told: a name from Trino's table, a message that says what to do, a place where one is known.
 * Translated once, at the edge: the statement's `error` object inside a query, problem+json outside of one.
 * The message of an error with a location begins `line L:C: `, as Trino's do.
 */
export class EngineError extends QuipuError {
  readonly retry: Retry
  readonly errorName: ErrorName
  readonly location: ErrorLocation | undefined

  constructor(
    errorName: ErrorName,
    message: string,
    options?: ErrorOptions & { location?: ErrorLocation | undefined; retry?: Retry },
  ) {
    const at = options?.location
    super(at ? `line ${at.lineNumber}:${at.columnNumber}: ${message}` : message, options)
    this.errorName = errorName
    this.retry = options?.retry ?? 'never'
    this.location = at
  }

  get errorCode(): number {
    return errorTable[this.errorName].code
  }

  get errorType(): ErrorType {
    return errorTable[this.errorName].type
  }

  toFailure(): Failure {
    return failureOf(this.errorName, this.message, this.location)
  }
}

export function failureOf(errorName: ErrorName, message: string, location?: ErrorLocation): Failure {
  const { code, type } = errorTable[errorName]
  return { errorName, errorCode: code, errorType: type, message, ...(location ? { location } : {}) }
}

/** A failure as an event or an answer gave it: zod's optional fields may be `undefined`, a Failure has them or not. */
export function asFailure({ location, errorName, errorCode, errorType, message }: GivenFailure): Failure {
  return { errorName, errorCode, errorType, message, ...(location ? { location } : {}) }
}

type GivenFailure = Omit<Failure, 'location'> & { readonly location?: ErrorLocation | undefined }

/** Any thrown value as a failure; what is not an EngineError is a bug of ours, its text stays in the log. */
export function toFailure(error: unknown): Failure {
  if (error instanceof EngineError) return error.toFailure()
  return failureOf('GENERIC_INTERNAL_ERROR', 'Internal error; the coordinator log has the details')
}

/** The start-up or a whole process cannot go on; carries the exit code and one line for the operator. */
export class ExitError extends QuipuError {
  readonly retry = 'never'
  readonly exitCode: number

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}
