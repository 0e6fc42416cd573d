import { EngineError } from '../../shared/engine-error.ts'
import type { ThreadError } from './thread-messages.ts'

/** Packs an error as plain data. */
export function packError(error: unknown): ThreadError {
  if (error instanceof EngineError) {
    const { errorName, message, location } = error
    const prefix = location ? `line ${location.lineNumber}:${location.columnNumber}: ` : ''
    return { kind: 'engine', errorName, message: message.slice(prefix.length), location }
  }
  return { kind: 'bug', stack: error instanceof Error ? (error.stack ?? error.message) : String(error) }
}

/** The error that was packed. A bug has the stack of the thread in which it happened. */
export function unpackError(packed: Exclude<ThreadError, { kind: 'asked' }>): Error {
  if (packed.kind === 'engine') return new EngineError(packed.errorName, packed.message, { location: packed.location })
  const error = new Error(packed.stack.split('\n', 1)[0])
  error.stack = packed.stack
  return error
}
