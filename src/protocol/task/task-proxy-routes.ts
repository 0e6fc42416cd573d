import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { isEnded, type TaskRecord } from '../../coordinator/query/stream/state.ts'
import { internalHeaders } from '../../execution/api/task.ts'
import { isLoopback } from '../../shared/loopback.ts'
import { ROOT_STAGE, splitTaskId, type QueryId, type TaskId } from '../../shared/ids.ts'
import type { Endpoint, Handler } from '../edge/endpoint.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readBody } from '../edge/request-body.ts'
import { requestTarget } from '../edge/request-target.ts'
import { parseAsOf, SEQUENCE_HEADER, type AsOf } from '../query/as-of.ts'
import type { LiveQueryView } from '../query/live-queries.ts'
import { taskInfoOf } from '../query/stage-tree.ts'
import { remoteAddressOf } from '../edge/client-connection.ts'
import { isAuthorized, keyNeeded } from './internal-request.ts'
import {
  createTaskResource,
  sendJsonBytes,
  taskEndpoints,
  type TaskAddress,
  type TaskResource,
} from './task-resource.ts'

export interface TaskProxyDeps {
  /** Queries that are open or ended less than 15 minutes ago, one at a time, since the list is streamed. */
  recent(): AsyncIterable<LiveQueryView>
  /** A query from memory, else from the log's read model; undefined when there is none. */
  find(queryId: QueryId): Promise<LiveQueryView | undefined>
  /** A query in the past. @throws HttpProblem 404 when it did not exist then, 503 when that cannot be known */
  findAsOf(queryId: QueryId, asOf: AsOf): Promise<LiveQueryView | undefined>
  /**
   * Passes a request on to a worker, with this coordinator's epoch and the secret. Rejects when the worker does not
   * answer.
   */
  forward(
    nodeUrl: string,
    request: {
      readonly method: string
      readonly path: string
      readonly headers: Readonly<Record<string, string>>
      readonly body?: Buffer
    },
  ): Promise<{ readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer }>
  readonly bearer: string
  /** Called for a request without the cluster's key. */
  readonly onRefused?: (request: IncomingMessage) => void
  /**
   * Whether `GET /v1/task` and `GET /v1/task/{id}` work without the key: on a loopback listener without authentication.
   */
  readonly openReads: boolean
  readonly baseUri: (request: IncomingMessage) => string
  readonly maxBodyBytes: number
  readonly onError?: (error: unknown) => void
}

/** A reader of the list that receives nothing for this long is cut off, since others wait for its slot. */
const STALLED_MS = 30_000

async function drained(response: ServerResponse): Promise<void> {
  const stalled = setTimeout(() => response.destroy(), STALLED_MS)
  await Promise.race([once(response, 'drain'), once(response, 'close')])
  clearTimeout(stalled)
}

interface Found {
  readonly view: LiveQueryView
  readonly task: TaskRecord
}

/** Headers of a request that the worker reads. */
const PASSED_ON = ['accept', 'content-type', internalHeaders.maxWait, internalHeaders.acknowledge] as const
/** Headers of an answer that belong to one connection, not to the message. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date'])

/**
 * The task resource of the coordinator. It lists all tasks that it knows, and passes requests on to the task's worker,
 * which `self` names. Tasks of stage 0 live here and can only be read: their output is the statement's.
 */
export function createTaskProxyRoutes(deps: TaskProxyDeps): TaskResource {
  return createTaskResource(proxiedTaskEndpoints(deps), deps.onError)
}

export function proxiedTaskEndpoints(deps: TaskProxyDeps): readonly Endpoint[] {
  function authorize(request: IncomingMessage, open: boolean): void {
    // Another address means that the request was passed on from a listener with its own rules.
    if (open && deps.openReads && isLoopback(remoteAddressOf(request) ?? '')) return
    if (isAuthorized(request, deps.bearer)) return
    deps.onRefused?.(request)
    throw keyNeeded()
  }

  async function find(taskId: TaskId): Promise<Found> {
    const view = await deps.find(splitTaskId(taskId)!.queryId)
    const task = view?.query.tasks.get(taskId)
    if (!view || !task) throw new HttpProblem(404, 'Task not found')
    return { view, task }
  }

  const infoOf = ({ view, task }: Found, baseUri: string): unknown =>
    taskInfoOf(view.query, task, task.stats ?? view.liveStats.get(task.taskId), baseUri)

  const list: Handler<true> = async (request, response) => {
    if (requestTarget(request).query.has('asOf'))
      throw new HttpProblem(400, 'asOf is only allowed for a single task: /v1/task/{taskId}?asOf=')
    authorize(request, true)
    const baseUri = deps.baseUri(request)
    response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
    let separator = '['
    for await (const view of deps.recent()) {
      for (const task of view.query.tasks.values()) {
        const room = response.write(separator + JSON.stringify(infoOf({ view, task }, baseUri)))
        separator = ','
        if (response.destroyed) return void response.end()
        if (!room) await drained(response)
      }
    }
    response.end(separator === '[' ? '[]' : ']')
  }

  /** Answers from the log alone: a worker knows only the present state of its tasks. */
  async function getTaskAsOf(
    request: IncomingMessage,
    response: ServerResponse,
    taskId: TaskId,
    text: string,
  ): Promise<void> {
    const asOf = parseAsOf(text)
    const view = await deps.findAsOf(splitTaskId(taskId)!.queryId, asOf)
    if (!view) throw new HttpProblem(404, 'Task not found')
    const task = view.query.tasks.get(taskId)
    const moment = asOf.time ?? `event ${asOf.sequence} of its query`
    if (!task) throw new HttpProblem(404, `Task ${taskId} did not exist at ${moment}`)
    response.setHeader(SEQUENCE_HEADER, String(view.sequence))
    sendJsonBytes(response, Buffer.from(JSON.stringify(infoOf({ view, task }, deps.baseUri(request)))))
  }

  const getTask: Handler<TaskAddress> = async (request, response, { taskId }) => {
    authorize(request, true)
    const asOf = requestTarget(request).query.get('asOf')
    if (asOf !== null) return getTaskAsOf(request, response, taskId, asOf)
    const found = await find(taskId)
    const { query } = found.view
    const isTaken = isEnded(query) && query.pages.some((page) => page.taskId === taskId)
    if (found.task.nodeUrl !== '' && found.task.stage !== ROOT_STAGE && !isTaken) {
      const answer = await deps
        .forward(found.task.nodeUrl, {
          method: 'GET',
          path: `/v1/task/${taskId}`,
          headers: { accept: request.headers.accept ?? '*/*' },
        })
        .catch(() => undefined)
      if (answer?.status === 200) {
        response.setHeader(SEQUENCE_HEADER, String(found.view.sequence))
        return sendJsonBytes(response, answer.body)
      }
    }
    // The worker has dropped the task, will drop it because all of it was fetched, or is unreachable: the log answers.
    response.setHeader(SEQUENCE_HEADER, String(found.view.sequence))
    sendJsonBytes(response, Buffer.from(JSON.stringify(infoOf(found, deps.baseUri(request)))))
  }

  const atWorker: Handler<TaskAddress> = async (request, response, { taskId }) => {
    authorize(request, false)
    const { task } = await find(taskId)
    if (task.stage === ROOT_STAGE || task.nodeUrl === '') {
      throw new HttpProblem(409, 'A task of stage 0 is a part of its statement and ends with it')
    }
    await passOn(deps, request, response, task.nodeUrl)
  }

  return taskEndpoints({
    tasks: { GET: list },
    task: { GET: getTask, POST: atWorker, DELETE: atWorker },
    output: { DELETE: atWorker },
    page: { GET: atWorker },
  })
}

/** Lets a worker answer a request, as if the request had been sent to it. */
async function passOn(
  { forward, maxBodyBytes }: Pick<TaskProxyDeps, 'forward' | 'maxBodyBytes'>,
  request: IncomingMessage,
  response: ServerResponse,
  nodeUrl: string,
): Promise<void> {
  const body = request.method === 'POST' ? await readBody(request, maxBodyBytes) : undefined
  const headers: Record<string, string> = {}
  for (const name of PASSED_ON) {
    const value = request.headers[name]
    if (typeof value === 'string') headers[name] = value
  }
  const { method = 'GET' } = request
  const path = requestTarget(request).text
  const answer = await forward(nodeUrl, { method, path, headers, ...(body && { body }) }).catch((cause: unknown) => {
    throw new HttpProblem(503, `The task's worker ${nodeUrl} does not answer: ${String(cause)}`, {
      'retry-after': '1',
    })
  })
  for (const [name, value] of Object.entries(answer.headers)) {
    if (value !== undefined && !HOP_BY_HOP.has(name)) response.setHeader(name, value)
  }
  response.writeHead(answer.status).end(answer.body)
}
