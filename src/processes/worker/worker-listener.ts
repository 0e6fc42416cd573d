import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { checkWatcher } from '../../protocol/access/authenticate.ts'
import { checkBrowser, type BrowserPolicy } from '../../protocol/edge/browser-policy.ts'
import { observeRequest } from '../../protocol/edge/http-metrics.ts'
import { answerError, HttpProblem } from '../../protocol/edge/problem.ts'
import { traceTaskRequest } from '../../protocol/edge/request-spans.ts'
import { requestTarget } from '../../protocol/edge/request-target.ts'
import type { TaskResource } from '../../protocol/task/task-resource.ts'
import type { Meters } from '../../telemetry/meters.ts'
import type { SpanSink } from '../../telemetry/span.ts'

export interface WorkerListenerDeps {
  readonly policy: BrowserPolicy
  readonly tasks: TaskResource
  /** `/v1/info/state`. */
  readonly state: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /** The answer of `/v1/info`. */
  readonly info: () => Readonly<Record<string, unknown>>
  readonly meters: () => Meters
  /** Whether the request may read the metrics. */
  readonly mayWatch: (request: IncomingMessage) => boolean
  readonly spans: () => SpanSink
  readonly onError: (error: unknown) => void
}

/** Creates the HTTP resources of a worker: tasks, `/v1/info` and its state, `/metrics`. */
export function createWorkerListener({
  policy,
  tasks,
  state,
  info,
  meters,
  mayWatch,
  spans,
  onError,
}: WorkerListenerDeps): RequestListener {
  function answer(request: IncomingMessage, response: ServerResponse, path: string): void {
    if (tasks(request, response)) return
    if (path === '/v1/info/state' && ['GET', 'HEAD', 'PUT'].includes(request.method ?? ''))
      return void state(request, response).catch((error: unknown) => answerError(request, response, error, onError))
    if (request.method !== 'GET' && request.method !== 'HEAD') throw new HttpProblem(404, 'Not found')
    switch (path) {
      case '/metrics':
        checkWatcher(request, mayWatch)
        return void meters()
          .text()
          .then(({ contentType, body }) => response.writeHead(200, { 'Content-Type': contentType }).end(body))
          .catch((error: unknown) => answerError(request, response, error, onError))
      case '/v1/info':
        response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
        return void response.end(JSON.stringify(info()))
      default:
        throw new HttpProblem(404, 'Not found')
    }
  }

  return (request, response) => {
    const { path } = requestTarget(request)
    observeRequest(request, response, path, meters)
    try {
      checkBrowser(request, policy)
    } catch (error) {
      meters().count('httpRefusals', { reason: 'origin' })
      return answerError(request, response, error, onError)
    }
    traceTaskRequest(request, response, path, spans)
    try {
      answer(request, response, path)
    } catch (error) {
      answerError(request, response, error, onError)
    }
  }
}
