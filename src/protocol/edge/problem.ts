import type { IncomingMessage, ServerResponse } from 'node:http'
import { EngineError, type ErrorName } from '../../shared/engine-error.ts'
import { QuipuError } from '../../shared/quipu-error.ts'

/**
 * An error answer of a route that is not about a statement's execution: a status, a sentence, perhaps headers. Thrown
 * by routes.
 */
export class HttpProblem extends QuipuError {
  readonly retry = 'never'
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[]>>

  constructor(status: number, message: string, headers: Readonly<Record<string, string | string[]>> = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

const STATUS_TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  408: 'Request Timeout',
  409: 'Conflict',
  410: 'Gone',
  413: 'Payload Too Large',
  415: 'Unsupported Media Type',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}

const STATUS_OF: Partial<Record<ErrorName, number>> = {
  NOT_FOUND: 404,
  PERMISSION_DENIED: 403,
  QUERY_QUEUE_FULL: 429,
  TOO_MANY_REQUESTS_FAILED: 429,
  QUERY_TEXT_TOO_LARGE: 413,
  SERVER_SHUTTING_DOWN: 503,
  SERVER_STARTING_UP: 503,
}

/**
 * Turns any thrown value into a problem. A value that is neither a problem nor an EngineError is a bug: 500 without its
 * text.
 */
export function toProblem(error: unknown): HttpProblem {
  if (error instanceof HttpProblem) return error
  if (error instanceof EngineError) {
    const status = STATUS_OF[error.errorName] ?? (error.errorType === 'USER_ERROR' ? 400 : 500)
    // The condition passes: clients try again after this many seconds.
    return new HttpProblem(status, error.message, status === 429 ? { 'retry-after': '1' } : {})
  }
  // Express throws this for a path that it cannot decode.
  if (error instanceof URIError) return new HttpProblem(400, 'The path is not UTF-8 in percent-encoding')
  return new HttpProblem(500, 'Internal error')
}

/** Writes a problem: `application/problem+json` where Accept allows JSON, else text. */
export function sendProblem(request: IncomingMessage, response: ServerResponse, problem: HttpProblem): void {
  // Part of another answer was sent: the client must not take this answer for its end.
  if (response.headersSent) {
    response.destroy()
    return
  }
  const title = STATUS_TITLES[problem.status] ?? 'Error'
  const json = /json|\*\/\*/.test(request.headers.accept ?? '')
  const body = json
    ? JSON.stringify({ type: 'about:blank', title, status: problem.status, detail: problem.message })
    : `Error ${problem.status} ${title}: ${problem.message}`
  response.writeHead(problem.status, title, {
    'content-type': json ? 'application/problem+json' : 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    ...problem.headers,
    // The client and Node would read the rest of an unread body as the next request.
    ...(request.complete ? {} : { connection: 'close' }),
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}

/**
 * The delay of an answer with 429, milliseconds. The answer asks clients to wait at least a second; clients that try
 * again at once cause less work by this delay, on each of their connections.
 */
const LATER_AFTER_MS = 500

/**
 * Answers a request with a thrown error.
 * @param onBug called with a value that is neither a problem nor an EngineError
 */
export function answerError(
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
  onBug: ((error: unknown) => void) | undefined,
): void {
  const problem = toProblem(error)
  if (problem.status === 500) onBug?.(error)
  if (problem.status === 429) setTimeout(() => sendProblem(request, response, problem), LATER_AFTER_MS)
  else sendProblem(request, response, problem)
}
