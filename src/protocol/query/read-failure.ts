import { EngineError } from '../../shared/engine-error.ts'
import { nodeCode } from '../../shared/node-error.ts'

/** Postgres ended it at `statement_timeout`. */
const ENDED_BY_POSTGRES = '57014'
/** Postgres has no connection left. */
const TOO_MANY_CONNECTIONS = '53300'
/** What the client for Postgres says where no connection was free, or no answer came, in time: these have no code. */
const NOT_IN_TIME = /^(?:timeout exceeded when trying to connect|Query read timeout)$/

/**
 * Why a statement over system tables could not read them, in words that tell nothing of the database nor of anybody's rows.
 * @param what is read, as a sentence begins: `The history`
 */
export function readFailure(error: unknown, what: string): EngineError {
  const code = nodeCode(error)
  if (code === ENDED_BY_POSTGRES)
    return new EngineError('EXCEEDED_TIME_LIMIT', `${what} took too long to be read: ask for less of it`)
  if (error instanceof Error && NOT_IN_TIME.test(error.message))
    return new EngineError('EXCEEDED_TIME_LIMIT', `${what} could not be read in time: ask again later`)
  if (code === TOO_MANY_CONNECTIONS)
    return new EngineError('REMOTE_HOST_GONE', `${what} cannot be read now: its database takes no more connections`)
  return new EngineError('REMOTE_HOST_GONE', `${what} cannot be read now: its database is away`)
}
