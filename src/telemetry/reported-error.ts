import { EngineError } from '../shared/engine-error.ts'
import { nodeCode } from '../shared/node-error.ts'

/**
 * A text for the log without possible data of a statement: quoted text, and the lines of SQL that an engine shows at a
 * failure. A value may contain quotes that are not doubled, so everything from the first quote to the last is removed.
 */
export function withoutData(text: string): string {
  const shown = text.search(/\n\s*LINE \d+:/)
  return (shown < 0 ? text : text.slice(0, shown)).replace(/(['"`])([^]*)\1/g, (quoted, quote: string, inner: string) =>
    inner === '' ? quoted : `${quote}…${quote}`,
  )
}

/** An error as the log shows it. */
export interface ReportedError {
  readonly type: string
  readonly message: string
  /** SQLSTATE, or Node's code. */
  readonly code?: string
  readonly stack?: string
  readonly cause?: ReportedError
}

const MAX_CAUSES = 4

/** @param error any thrown value; its other fields may hold data and are left out */
export function reportedError(error: unknown, depth = 0): ReportedError {
  if (!(error instanceof Error)) return { type: typeof error, message: withoutData(String(error)) }
  const { name, message, stack, cause } = error
  const code = nodeCode(error)
  const frames = isOfNetwork(error) ? undefined : stack?.match(/^ {4}at .*$/gm)?.join('\n')
  return {
    type: name === 'Error' ? error.constructor.name : name,
    message: isOfUser(error) ? error.errorName : withoutData(message),
    ...(code === undefined ? {} : { code }),
    ...(frames === undefined ? {} : { stack: frames }),
    ...(cause === undefined || depth >= MAX_CAUSES ? {} : { cause: reportedError(cause, depth + 1) }),
  }
}

const NETWORK_CODE = /^(ECONN|EHOST|ENET|ETIMEDOUT$|ENOTFOUND$|EAI_|EPIPE$|UND_ERR_)/

/** Whether the error says that another machine or process did not answer. A stack does not help then. */
function isOfNetwork(error: Error, depth = 0): boolean {
  if (NETWORK_CODE.test(nodeCode(error) ?? '')) return true
  return error.cause instanceof Error && depth < MAX_CAUSES && isOfNetwork(error.cause, depth + 1)
}

/** Whether the message may have values of statements and tables, in quotes or not. */
function isOfUser(error: Error): error is EngineError {
  return error instanceof EngineError && error.errorType === 'USER_ERROR'
}

/** An error as text for a stream of lines: the message, then the stack. */
export function reportedErrorText(error: unknown): string {
  const { type, message, stack, cause } = reportedError(error)
  const head = `${type}: ${message}${stack === undefined ? '' : `\n${stack}`}`
  return cause === undefined ? head : `${head}\ncaused by ${cause.type}: ${cause.message}`
}
