import { EngineError } from '../../shared/engine-error.ts'
import { nodeCode } from '../../shared/node-error.ts'
import { QuipuError } from '../../shared/quipu-error.ts'

/** Postgres canceled the statement at `statement_timeout`. */
const ENDED_BY_POSTGRES = '57014'
/** Postgres has no connection left. */
const TOO_MANY_CONNECTIONS = '53300'
/** No connection was free in time, or no answer came in time; the database itself may be healthy. */
export class NotReadInTime extends QuipuError {
  readonly retry = 'later'
}

/**
 * The error of a statement that could not read system tables. Its text says nothing about the database or other users'
 * rows.
 * @param what the thing that is read, in the form that begins a sentence: `The history`
 */
export function readFailure(error: unknown, what: string): EngineError {
  const code = nodeCode(error)
  if (code === ENDED_BY_POSTGRES)
    return new EngineError('EXCEEDED_TIME_LIMIT', `${what} took too long to read: ask for less of it`)
  if (error instanceof NotReadInTime)
    return new EngineError('EXCEEDED_TIME_LIMIT', `${what} could not be read in time: ask again later`)
  if (code === TOO_MANY_CONNECTIONS)
    return new EngineError('REMOTE_HOST_GONE', `${what} cannot be read now: its database accepts no more connections`)
  return new EngineError('REMOTE_HOST_GONE', `${what} cannot be read now: its database does not answer`)
}
