import type { IncomingMessage, ServerResponse } from 'node:http'
import { parseTaskId, type TaskId } from '../../shared/ids.ts'
import { endpoint, findEndpoint, type Endpoint, type Handler } from '../edge/endpoint.ts'
import { answerError, HttpProblem } from '../edge/problem.ts'
import { requestTarget } from '../edge/request-target.ts'

/** Answers requests of `/v1/task` and below; returns false and does nothing for any other path. */
export type TaskResource = (request: IncomingMessage, response: ServerResponse) => boolean

export interface TaskAddress {
  readonly taskId: TaskId
}

export interface OutputAddress extends TaskAddress {
  readonly output: string
}

export interface PageAddress extends OutputAddress {
  readonly token: string
}

type Methods<A> = Partial<Record<'GET' | 'POST' | 'DELETE', Handler<A>>>

/** A server's handlers at the addresses of the task resource. */
export interface TaskHandlers {
  readonly tasks: Methods<true>
  readonly task: Methods<TaskAddress>
  readonly output: Methods<OutputAddress>
  readonly page: Methods<PageAddress>
}

/** Makes the addresses of the task resource: the same on a worker, and on the coordinator that passes requests on. */
export function taskEndpoints({ tasks, task, output, page }: TaskHandlers): readonly Endpoint[] {
  return [
    endpoint('/v1/task', (path) => /^\/v1\/task\/?$/.test(path) || undefined, tasks),
    endpoint('/v1/task/{taskId}', taskAddress, task),
    endpoint('/v1/task/{taskId}/results/{outputId}', outputAddress, output),
    endpoint('/v1/task/{taskId}/results/{outputId}/{token}', pageAddress, page),
  ]
}

/** The parts of a path after `/v1/task/`. */
function partsOf(path: string): readonly string[] {
  return path.split('/').slice(3)
}

/** Parses the path of a task. @throws EngineError NOT_FOUND, also the functions below, for a text that is no task id */
function taskAddress(path: string): TaskAddress | undefined {
  const [id = '', ...rest] = partsOf(path)
  const taskId = parseTaskId(id)
  return rest.length === 0 ? { taskId } : undefined
}

function outputAddress(path: string): OutputAddress | undefined {
  const [id = '', results, output, ...rest] = partsOf(path)
  if (results !== 'results' || output === undefined || rest.length > 0) return undefined
  return { taskId: parseTaskId(id), output }
}

function pageAddress(path: string): PageAddress | undefined {
  const [id = '', results, output, token, ...rest] = partsOf(path)
  if (results !== 'results' || output === undefined || token === undefined || rest.length > 0) return undefined
  return { taskId: parseTaskId(id), output, token }
}

/**
 * Makes the task resource from a server's endpoints: a worker's, or those of the coordinator that passes requests on.
 * Their errors become answers; `onError` is called with errors that the request did not cause.
 */
export function createTaskResource(endpoints: readonly Endpoint[], onError?: (error: unknown) => void): TaskResource {
  async function handle(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    try {
      const answer = findEndpoint(endpoints, path)
      if (!answer) throw new HttpProblem(404, 'Output not found')
      await answer(request, response)
    } catch (error) {
      answerError(request, response, error, onError)
    }
  }
  return (request, response) => {
    const { path } = requestTarget(request)
    if (!/^\/v1\/task(?:\/|$)/.test(path)) return false
    void handle(request, response, path)
    return true
  }
}

/** Sends JSON that must not be cached, given as bytes. */
export function sendJsonBytes(response: ServerResponse, bytes: Buffer): void {
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': bytes.length,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  })
  response.end(bytes)
}
