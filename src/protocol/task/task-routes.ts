import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import { EngineError } from '../../shared/engine-error.ts'
import { parseTaskId, type TaskId } from '../../shared/ids.ts'
import { internalHeaders, taskStatusJson, taskUpdateSchema, type TaskStatus } from '../../execution/api/task.ts'
import type { TaskManager } from '../../execution/worker/task-manager.ts'
import type { WorkerTask } from '../../execution/worker/task.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { isAuthorized, maxWaitMs, parsePageToken, pickMethod } from './internal-request.ts'
import { taskInfo } from './task-info.ts'
import { createTaskResource, sendJsonBytes, type TaskResource } from './task-resource.ts'

export interface TaskRoutesDeps {
  readonly tasks: TaskManager
  /** The cluster's key, as after `Authorization: Bearer `. */
  readonly bearer: string
  /** `GET /v1/task` and `GET /v1/task/{id}` without the key: a loopback listener without authentication. */
  readonly openReads: boolean
  /** Base address of this process. */
  readonly url: string
  /** @default 16 MB */
  readonly maxBodyBytes?: number
  /** Small tasks are waited for so long before a POST is answered. @default 20 */
  readonly postWaitMs?: number
  /** An error that is none of the request's. */
  readonly onError?: (error: unknown) => void
}

const DEFAULT_WAIT_MS = 1000
/** Pages of so many bytes together ride in the answer of the POST that saw their task end. */
const INLINE_BYTES = 64 * 1024

/** Who has the cluster's key, or reads what anybody may. */
type Asker = 'coordinator' | 'anybody'

type Handler = (request: IncomingMessage, response: ServerResponse, query: URLSearchParams) => Promise<void>

/**
 * A worker's task resource: `/v1/task`, `/v1/task/{taskId}`, `/v1/task/{taskId}/results/{outputId}[/{token}]`.
 * @returns a handler that answers false, having done nothing, when the path is not of this resource
 */
export function createTaskRoutes(deps: TaskRoutesDeps): TaskResource {
  const { tasks } = deps
  const maxBodyBytes = deps.maxBodyBytes ?? 16 * 1024 * 1024

  /**
   * The highest epoch of a log wins, and a lower one has no effect at all. Only who has the key speaks for a coordinator:
   * what anybody else says of epochs is not looked at.
   */
  function checkEpoch(asker: Asker, request: IncomingMessage, needed: boolean): void {
    if (asker === 'anybody') return
    const text = request.headers[internalHeaders.epoch]
    if (text === undefined && !needed) return
    const logId = request.headers[internalHeaders.log]
    const isLog = logId === undefined || (typeof logId === 'string' && /^[\w-]{1,64}$/.test(logId))
    if (typeof text !== 'string' || !/^\d{1,10}$/.test(text) || !isLog) {
      throw new HttpProblem(400, `${internalHeaders.epoch} and ${internalHeaders.log} must be the coordinator's`)
    }
    const verdict = tasks.epochs.accept(Number(text), logId)
    switch (verdict) {
      case 'accepted':
        return tasks.heard()
      case 'stale':
        throw new HttpProblem(409, 'A coordinator with a higher epoch has taken over')
      case 'implausible':
        throw new HttpProblem(400, `Epoch ${text} is too far from those that this worker has heard of`)
      default:
        throw new Error(`Unknown verdict: ${JSON.stringify(verdict satisfies never)}`)
    }
  }

  function authorize(request: IncomingMessage, open: boolean): Asker {
    if (isAuthorized(request, deps.bearer)) return 'coordinator'
    if (open && deps.openReads) return 'anybody'
    throw new HttpProblem(401, 'The internal interface needs the cluster secret', { 'www-authenticate': 'Bearer' })
  }

  function taskOf(taskId: TaskId): WorkerTask {
    const task = tasks.get(taskId)
    if (!task) throw new HttpProblem(404, 'Task not found')
    return task
  }

  const infoOf = (status: TaskStatus): unknown => taskInfo(status, `${deps.url}/v1/task/${status.taskId}`)

  function sendTask(request: IncomingMessage, response: ServerResponse, status: TaskStatus): void {
    sendJson(response, wantsStatus(request) ? status : infoOf(status))
  }

  const list: Handler = async (request, response, query) => {
    checkEpoch(authorize(request, true), request, false)
    const since = query.get('since')
    if (since === null) return sendJson(response, tasks.statuses().map(infoOf))
    if (!/^\d{0,16}$/.test(since)) throw new HttpProblem(400, 'since must be a version')
    const after = since === '' ? undefined : Number(since)
    if (after !== undefined) await tasks.waitForNews(after, maxWaitMs(request, DEFAULT_WAIT_MS))
    // Before the statuses are read: what changes meanwhile is told again, never left out.
    response.setHeader(internalHeaders.taskVersion, String(tasks.version()))
    sendJson(response, tasks.statuses(after))
  }

  /** Many at once: what ended queries leave behind. Unknown ones are gone already. */
  const deleteTasks: Handler = async (request, response) => {
    const asker = authorize(request, false)
    checkEpoch(asker, request, true)
    const body = forgetSchema.safeParse(await readJson(request, maxBodyBytes))
    if (!body.success) throw new HttpProblem(400, 'The body must be {"taskIds": […]}')
    const taskIds = body.data.taskIds.map(parseTaskId)
    checkEpoch(asker, request, true)
    await Promise.all(taskIds.map((taskId) => tasks.delete(taskId, 'CANCELED')))
    response.writeHead(204, { 'Cache-Control': 'no-store' }).end()
  }

  function getTask(taskId: TaskId): Handler {
    return async (request, response, query) => {
      const asker = authorize(request, true)
      if (query.has('asOf')) throw new HttpProblem(400, 'A worker knows only the present: ask a coordinator for asOf')
      checkEpoch(asker, request, false)
      const status = tasks.get(taskId)?.status() ?? tasks.deleted(taskId)
      if (!status) throw new HttpProblem(404, 'Task not found')
      sendTask(request, response, status)
    }
  }

  function postTask(taskId: TaskId): Handler {
    return async (request, response) => {
      const asker = authorize(request, false)
      checkEpoch(asker, request, true)
      const update = parseUpdate(await readJson(request, maxBodyBytes))
      // Once more: another coordinator may have come while the body did.
      checkEpoch(asker, request, true)
      const task = tasks.update(taskId, update)
      if (update.fragment.estimate.small && !task.isComplete()) await endedWithin(task, deps.postWaitMs ?? 20)
      const status = task.status()
      if (!wantsStatus(request)) return sendTask(request, response, status)
      const inlinePages = await smallPages(task, status)
      sendJson(response, inlinePages.length > 0 ? { ...status, inlinePages } : status)
    }
  }

  function deleteTask(taskId: TaskId): Handler {
    return async (request, response, query) => {
      checkEpoch(authorize(request, false), request, true)
      const status = await tasks.delete(taskId, query.get('abort') === 'true' ? 'ABORTED' : 'CANCELED')
      if (!status) throw new HttpProblem(404, 'Task not found')
      sendTask(request, response, status)
    }
  }

  function getPage(taskId: TaskId, token: number): Handler {
    return async (request, response) => {
      checkEpoch(authorize(request, false), request, false)
      const task = taskOf(taskId)
      const acknowledge = request.headers[internalHeaders.acknowledge]
      if (acknowledge !== undefined) await task.acknowledge(parsePageToken(String(acknowledge)))
      if (task.isAcknowledged(token)) throw new HttpProblem(410, `Page ${token} was acknowledged`)
      await task.waitForPage(token, maxWaitMs(request, DEFAULT_WAIT_MS))
      const found = await readPage(task, token)
      const status = task.status(Infinity)
      const next = found ? token + 1 : token
      const isLast = task.isComplete() && next >= status.pagesSent + status.bufferedPages
      response.setHeader(internalHeaders.taskInstanceId, status.instanceId)
      response.setHeader(internalHeaders.pageToken, String(token))
      response.setHeader(internalHeaders.pageNextToken, String(next))
      response.setHeader(internalHeaders.bufferComplete, String(isLast))
      if (status.state === 'FAILED') response.setHeader(internalHeaders.taskFailed, 'true')
      response.setHeader('Cache-Control', 'no-store')
      if (!found) return void response.writeHead(204).end()
      response.setHeader(internalHeaders.pageSha256, found.page.sha256)
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': found.bytes.length })
      response.end(found.bytes)
    }
  }

  function deleteOutput(taskId: TaskId): Handler {
    return async (request, response, query) => {
      checkEpoch(authorize(request, false), request, true)
      const task = taskOf(taskId)
      const before = query.get('before')
      await (before === null ? task.drop() : task.acknowledge(parsePageToken(before)))
      response.writeHead(204).end()
    }
  }

  function route(method: string, path: string): Handler {
    const [id, results, output, token, ...rest] = path.split('/').slice(3)
    if (id === undefined || (id === '' && results === undefined))
      return pickMethod(method, { GET: list, DELETE: deleteTasks })
    const taskId = parseTaskId(id)
    if (results === undefined) {
      return pickMethod(method, { GET: getTask(taskId), POST: postTask(taskId), DELETE: deleteTask(taskId) })
    }
    if (results !== 'results' || output !== '0' || rest.length > 0) throw new HttpProblem(404, 'Output not found')
    return token === undefined
      ? pickMethod(method, { DELETE: deleteOutput(taskId) })
      : pickMethod(method, { GET: getPage(taskId, parsePageToken(token)) })
  }

  return createTaskResource(
    (request, response, { path, query }) => route(request.method ?? 'GET', path)(request, response, query),
    deps.onError,
  )
}

function sendJson(response: ServerResponse, body: unknown): void {
  sendJsonBytes(response, Buffer.from(JSON.stringify(body)))
}

function wantsStatus(request: IncomingMessage): boolean {
  return request.headers.accept === taskStatusJson
}

const forgetSchema = z.object({ taskIds: z.array(z.string()).max(1000) })

function parseUpdate(body: unknown): z.infer<typeof taskUpdateSchema> {
  const parsed = taskUpdateSchema.safeParse(body)
  if (!parsed.success) throw new HttpProblem(400, `Not a task update: ${z.prettifyError(parsed.error)}`)
  return parsed.data
}

async function endedWithin(task: WorkerTask, millis: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  await Promise.race([task.ended, new Promise((resolve) => (timer = setTimeout(resolve, millis)))])
  clearTimeout(timer)
}

async function smallPages(task: WorkerTask, status: TaskStatus): Promise<{ token: number; data: string }[]> {
  const bytes = status.pages.reduce((sum, page) => sum + page.bytes, 0)
  if (status.state !== 'FINISHED' || bytes > INLINE_BYTES || status.pagesSent > 0) return []
  const pages: { token: number; data: string }[] = []
  for (const { token } of status.pages) {
    const found = await readPage(task, token)
    if (found) pages.push({ token, data: found.bytes.toString('utf8') })
  }
  return pages
}

/** A page that was listed and is not there any more, or not as it was listed, is gone. */
async function readPage(task: WorkerTask, token: number): ReturnType<WorkerTask['page']> {
  try {
    return await task.page(token)
  } catch (error) {
    if (error instanceof EngineError && error.errorName === 'PAGE_TRANSPORT_ERROR') {
      throw new HttpProblem(410, error.message)
    }
    throw error
  }
}
