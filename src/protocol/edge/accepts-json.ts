import type { IncomingMessage } from 'node:http'
import { HttpProblem } from './problem.ts'

/** Requires that the client accepts JSON. @throws HttpProblem 406 */
export function acceptsJson(request: IncomingMessage): void {
  const accept = request.headers.accept
  if (accept === undefined || /application\/(\*|json)|\*\/\*/.test(accept)) return
  throw new HttpProblem(406, 'Answers are application/json')
}
