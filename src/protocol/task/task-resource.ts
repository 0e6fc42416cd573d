import type { IncomingMessage, ServerResponse } from 'node:http'
import { sendProblem, toProblem } from '../edge/problem.ts'
import { requestTarget, type RequestTarget } from '../edge/request-target.ts'

/** Answers requests of `/v1/task` and below; false, having done nothing, for any other path. */
export type TaskResource = (request: IncomingMessage, response: ServerResponse) => boolean

/**
 * The task resource around a server's own answers: a worker's, or the coordinator's that passes requests on.
 * @param answer what it throws becomes the answer; what is no fault of the request is told to `onError`
 */
export function createTaskResource(
  answer: (request: IncomingMessage, response: ServerResponse, target: RequestTarget) => Promise<void>,
  onError?: (error: unknown) => void,
): TaskResource {
  async function handle(request: IncomingMessage, response: ServerResponse, target: RequestTarget): Promise<void> {
    try {
      await answer(request, response, target)
    } catch (error) {
      const problem = toProblem(error)
      if (problem.status === 500) onError?.(error)
      sendProblem(request, response, problem)
    }
  }
  return (request, response) => {
    const target = requestTarget(request)
    if (!/^\/v1\/task(?:\/|$)/.test(target.path)) return false
    void handle(request, response, target)
    return true
  }
}

/** JSON of this moment, given as its bytes. */
export function sendJsonBytes(response: ServerResponse, bytes: Buffer): void {
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': bytes.length,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  })
  response.end(bytes)
}
