import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import { parseTaskId } from '../../shared/ids.ts'
import {
  internalHeaders,
  isTaskTerminal,
  MOST_INLINE_BYTES,
  type TaskStatus,
  taskStatusJson,
  taskUpdateSchema,
} from '../../execution/api/task.ts'
import type { TaskManager } from '../../execution/worker/task-manager.ts'
import type { WorkerTask } from '../../execution/worker/task.ts'
import type { Endpoint, Handler } from '../edge/endpoint.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { requestTarget } from '../edge/request-target.ts'
import { createAskers } from './asker.ts'
import { maxWaitMs } from './internal-request.ts'
import { taskInfo } from './task-info.ts'
import { createTaskOutput, pageOrGone } from './task-output.ts'
import {
  createTaskResource,
  sendJsonBytes,
  taskEndpoints,
  type TaskAddress,
  type TaskResource,
} from './task-resource.ts'

export interface TaskRoutesDeps {
  readonly tasks: TaskManager
  /** The cluster's key, as after `Authorization: Bearer `. */
  readonly bearer: string
  /**
   * Whether `GET /v1/task` and `GET /v1/task/{id}` work without the key: on a loopback listener without authentication.
   */
  readonly openReads: boolean
  /** Base address of this process. */
  readonly url: string
  /** @default 16 MB */
  readonly maxBodyBytes?: number
  /** How long a POST waits for a small task to end before it is answered, milliseconds. @default 100 */
  readonly postWaitMs?: number
  /** Called with an error that the request did not cause. */
  readonly onError?: (error: unknown) => void
}

const DEFAULT_WAIT_MS = 1000
/** Even on a busy machine most small tasks end within this time, and leave no file. */
const POST_WAIT_MS = 100

/** A worker's task resource. */
export function createTaskRoutes(deps: TaskRoutesDeps): TaskResource {
  return createTaskResource(workerTaskEndpoints(deps), deps.onError)
}

export function workerTaskEndpoints(deps: TaskRoutesDeps): readonly Endpoint[] {
  const { tasks } = deps
  const askers = createAskers(deps)
  const { authorize, checkEpoch } = askers
  const maxBodyBytes = deps.maxBodyBytes ?? 16 * 1024 * 1024

  const infoOf = (status: TaskStatus): unknown => taskInfo(status, `${deps.url}/v1/task/${status.taskId}`)

  function sendTask(request: IncomingMessage, response: ServerResponse, status: TaskStatus): void {
    sendJson(response, wantsStatus(request) ? status : infoOf(status))
  }

  const list: Handler<true> = async (request, response) => {
    const { query } = requestTarget(request)
    checkEpoch(authorize(request, true), request, false)
    const since = query.get('since')
    if (since === null) return sendJson(response, tasks.statuses().map(infoOf))
    if (!/^\d{0,16}$/.test(since)) throw new HttpProblem(400, 'since must be a version')
    const after = since === '' ? undefined : Number(since)
    if (after !== undefined) await tasks.waitForNews(after, maxWaitMs(request, DEFAULT_WAIT_MS))
    // Before the statuses are read: a change meanwhile is then reported twice, never left out.
    response.setHeader(internalHeaders.taskVersion, String(tasks.version()))
    const statuses = tasks.statuses(after)
    // Without a version the coordinator may already have the pages, so they are not added.
    sendJson(response, after === undefined ? statuses : await Promise.all(statuses.map(withNewPages)))
  }

  /** Adds a task's new pages where they are few and small, so that the coordinator need not fetch them. */
  async function withNewPages(status: TaskStatus): Promise<TaskStatus> {
    const task = status.deleted ? undefined : tasks.get(status.taskId)
    if (!task || status.pages.length === 0 || bytesOf(status) > MOST_INLINE_BYTES) return status
    const inlinePages = await listedPages(task, status).catch(() => [])
    return inlinePages.length > 0 ? { ...status, inlinePages } : status
  }

  /** Deletes many tasks at once, those that ended queries leave behind. Unknown ones are gone already. */
  const deleteTasks: Handler<true> = async (request, response) => {
    const asker = authorize(request, false)
    checkEpoch(asker, request, true)
    const body = forgetSchema.safeParse(await readJson(request, maxBodyBytes))
    if (!body.success) throw new HttpProblem(400, 'The body must be {"taskIds": […]}')
    const taskIds = body.data.taskIds.map(parseTaskId)
    checkEpoch(asker, request, true)
    await Promise.all(taskIds.map((taskId) => tasks.delete(taskId, 'CANCELED')))
    response.writeHead(204, { 'Cache-Control': 'no-store' }).end()
  }

  const getTask: Handler<TaskAddress> = async (request, response, { taskId }) => {
    const { query } = requestTarget(request)
    const asker = authorize(request, true)
    if (query.has('asOf')) throw new HttpProblem(400, 'A worker does not support asOf: ask a coordinator')
    checkEpoch(asker, request, false)
    const task = tasks.get(taskId)
    // A new coordinator continues the task: the answer that its predecessor waits for reaches nobody.
    if (asker === 'coordinator') task?.keep()
    const status = task?.status() ?? tasks.deleted(taskId)
    if (!status) throw new HttpProblem(404, 'Task not found')
    sendTask(request, response, status)
  }

  const postTask: Handler<TaskAddress> = async (request, response, { taskId }) => {
    const asker = authorize(request, false)
    checkEpoch(asker, request, true)
    const update = parseUpdate(await readJson(request, maxBodyBytes))
    // Checked again: another coordinator may have come while the body arrived.
    checkEpoch(asker, request, true)
    const task = tasks.update(taskId, update)
    if (!update.fragment.estimate.small) await nextLoopPass()
    else if (!task.isComplete()) await endedWithin(task, deps.postWaitMs ?? POST_WAIT_MS)
    let status = task.status()
    const inlinePages = wantsStatus(request) ? await smallPages(task, status) : undefined
    // The coordinator does not come back for a task whose answer contains everything. If the answer is lost, it asks
    // again or starts the task anew.
    if (isTaskTerminal(status.state) && inlinePages?.length === status.pages.length) task.send()
    else task.keep()
    // The news report changes from here on.
    status = task.status()
    if (!inlinePages) return sendTask(request, response, status)
    sendJson(response, inlinePages.length > 0 ? { ...status, inlinePages } : status)
  }

  const deleteTask: Handler<TaskAddress> = async (request, response, { taskId }) => {
    const { query } = requestTarget(request)
    checkEpoch(authorize(request, false), request, true)
    const status = await tasks.delete(taskId, query.get('abort') === 'true' ? 'ABORTED' : 'CANCELED')
    if (!status) throw new HttpProblem(404, 'Task not found')
    sendTask(request, response, status)
  }

  return taskEndpoints({
    tasks: { GET: list, DELETE: deleteTasks },
    task: { GET: getTask, POST: postTask, DELETE: deleteTask },
    ...createTaskOutput(tasks, askers),
  })
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
  if (!parsed.success)
    throw new HttpProblem(400, `The body is not a valid task update: ${z.prettifyError(parsed.error)}`)
  return parsed.data
}

/**
 * Waits for one pass of the event loop. No client waits for a task that is not small, so its files and answer come
 * after the engine's work.
 */
function nextLoopPass(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

async function endedWithin(task: WorkerTask, millis: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  await Promise.race([task.ended, new Promise((resolve) => (timer = setTimeout(resolve, millis)))])
  clearTimeout(timer)
}

type InlinePages = NonNullable<TaskStatus['inlinePages']>

function bytesOf(status: TaskStatus): number {
  return status.pages.reduce((sum, page) => sum + page.bytes, 0)
}

async function smallPages(task: WorkerTask, status: TaskStatus): Promise<InlinePages> {
  if (status.state !== 'FINISHED' || bytesOf(status) > MOST_INLINE_BYTES || task.isAcknowledged(0)) return []
  return listedPages(task, status)
}

async function listedPages(task: WorkerTask, status: TaskStatus): Promise<InlinePages> {
  const pages: InlinePages = []
  for (const { token } of status.pages) {
    const found = await pageOrGone(task, token)
    if (found) pages.push({ token, data: found.bytes.toString('utf8') })
  }
  return pages
}
