import { nodeCode } from '../shared/node-error.ts'

/**
 * A text for the log without what may be data of a statement: what stands in quotes, and the lines of SQL that an engine
 * shows where it failed.
 */
export function withoutData(text: string): string {
  const shown = text.search(/\n\s*LINE \d+:/)
  return (shown < 0 ? text : text.slice(0, shown)).replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`/g, (quoted) =>
    quoted.length > 2 ? `${quoted.charAt(0)}…${quoted.charAt(0)}` : quoted,
  )
}

/** An error as the log has it. */
export interface ToldError {
  readonly type: string
  readonly message: string
  /** SQLSTATE, or Node's. */
  readonly code?: string
  readonly stack?: string
  readonly cause?: ToldError
}

const MAX_CAUSES = 4

/** @param error anything thrown; other fields of it than these may hold data and are left out */
export function toldError(error: unknown, depth = 0): ToldError {
  if (!(error instanceof Error)) return { type: typeof error, message: withoutData(String(error)) }
  const { name, message, stack, cause } = error
  const code = nodeCode(error)
  const frames = stack?.match(/^ {4}at .*$/gm)?.join('\n')
  return {
    type: name === 'Error' ? error.constructor.name : name,
    message: withoutData(message),
    ...(code === undefined ? {} : { code }),
    ...(frames === undefined ? {} : { stack: frames }),
    ...(cause === undefined || depth >= MAX_CAUSES ? {} : { cause: toldError(cause, depth + 1) }),
  }
}

/** For a stream of lines: message, then where. */
export function toldErrorText(error: unknown): string {
  const { type, message, stack, cause } = toldError(error)
  const head = `${type}: ${message}${stack === undefined ? '' : `\n${stack}`}`
  return cause === undefined ? head : `${head}\ncaused by ${cause.type}: ${cause.message}`
}
