import { internalHeaders, taskStatusJson, type TaskStatus, type TaskUpdate } from '../../execution/api/task.ts'
import { bytesIn, inOnePiece, type BodyParts } from '../../shared/body-parts.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { TaskId } from '../../shared/ids.ts'
import { withinTaskCall, type TaskCall } from './task-calls.ts'
import { readTaskStatus, readTaskStatuses, UnusableAnswer } from './worker-answers.ts'
import { WorkerLost, WorkerRefused } from './worker-error.ts'
import {
  createWorkerRequests,
  type WorkerAnswer,
  type WorkerRequest,
  type WorkerRequestsOptions,
} from './worker-requests.ts'

export interface HeardTasks {
  readonly version: string
  readonly tasks: readonly TaskStatus[]
}

/** A page in the list of its task. */
interface ListedPage {
  readonly taskId: TaskId
  /** Its position in the task's output. */
  readonly token: number
  readonly bytes: number
}

/** A request to the task resource that is forwarded unchanged. */
interface ForwardedRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
}

interface ForwardedAnswer extends Omit<WorkerAnswer, 'body'> {
  readonly body: Buffer
}

/**
 * The requests of the coordinator to workers. Each call throws WorkerLost when the worker does not answer properly,
 * WorkerRefused when it refuses, StaleEpoch when it knows a later coordinator.
 */
export interface WorkerClient {
  /** @throws EngineError EXCEEDED_TASK_DESCRIPTOR_STORAGE_CAPACITY when a worker would not take so large an update */
  createTask(nodeUrl: string, taskId: TaskId, update: TaskUpdate): Promise<TaskStatus>
  /** The task as the worker has it, every closed page included; undefined when it has none. */
  getTask(nodeUrl: string, taskId: TaskId): Promise<TaskStatus | undefined>
  /** Resolves when the worker has no such task any more. */
  deleteTask(nodeUrl: string, taskId: TaskId, abort: boolean, traceparent?: string): Promise<void>
  /** Deletes tasks of ended queries, many in one request; unknown tasks count as deleted. */
  deleteTasks(nodeUrl: string, taskIds: readonly TaskId[]): Promise<void>
  /** The bytes of a closed page, or undefined when the worker no longer has it. */
  fetchPage(nodeUrl: string, page: ListedPage, acknowledgeBefore?: number): Promise<BodyParts | undefined>
  /** Acknowledges the pages below a token: they will not be read again. */
  acknowledge(nodeUrl: string, taskId: TaskId, before: number): Promise<void>
  /** Long-polls all tasks of a worker that changed since a version. */
  taskNews(nodeUrl: string, since: string | undefined, signal: AbortSignal): Promise<HeardTasks>
  /** Makes the worker take no new tasks, and stop when its tasks are no longer needed. */
  shutDown(nodeUrl: string): Promise<void>
  /** Forwards any request of the task resource and returns any answer. */
  forward(nodeUrl: string, request: ForwardedRequest): Promise<ForwardedAnswer>
  close(): void
}

export interface WorkerClientOptions extends WorkerRequestsOptions {
  /** The largest body of a task update that workers take. */
  readonly taskBodyBytes: number
  /** The largest page that a worker makes. */
  readonly pageMaxBytes: number
  /** Called for every request that created, changed or ended a task of a traced query. */
  readonly onTaskCall?: (call: TaskCall) => void
  /**
   * Called for every request for a page. `retry`: the worker was not reached, the client asks again; `failed`: the page
   * is gone.
   */
  readonly onPageFetched?: (fetch: PageFetch) => void
}

export interface PageFetch {
  readonly result: 'ok' | 'retry' | 'failed'
  readonly bytes: number
  readonly milliseconds: number
}

const MB = 1024 * 1024
/** Limits for answers, far above normal sizes: a task's figures grow with its batches, news with the worker's tasks. */
const STATUS_BYTES = 64 * MB
const NEWS_BYTES = 128 * MB
const NEWS_WAIT_MS = 30_000

const statusHeaders = { accept: taskStatusJson }

export function createWorkerClient(options: WorkerClientOptions): WorkerClient {
  const requests = createWorkerRequests(options)

  return {
    async createTask(nodeUrl, taskId, update) {
      const what = `POST task ${taskId}`
      const body = Buffer.from(JSON.stringify(update))
      if (body.length > options.taskBodyBytes) throw tooLargeTask(update, body.length, options.taskBodyBytes)
      const call = { name: 'task-update', taskId, nodeUrl } as const
      const answer = await withinTaskCall(options.onTaskCall, call, update.traceparent, (headers) =>
        requests.send({
          nodeUrl,
          method: 'POST',
          path: `/v1/task/${taskId}`,
          headers: { ...statusHeaders, ...headers },
          body,
          maxBytes: STATUS_BYTES,
        }),
      )
      // The worker's own limit may be lower; so may that of every other worker.
      if (answer.status === 413) throw tooLargeTask(update, body.length)
      const { body: answered } = expectOk(answer, what)
      return usable(what, () => readTaskStatus(inOnePiece(answered), taskId))
    },

    async getTask(nodeUrl, taskId) {
      const path = `/v1/task/${taskId}`
      const answer = await requests.send({
        nodeUrl,
        method: 'GET',
        path,
        headers: statusHeaders,
        maxBytes: STATUS_BYTES,
      })
      if (answer.status === 404) return undefined
      const { body } = expectOk(answer, `GET task ${taskId}`)
      return usable(`GET task ${taskId}`, () => readTaskStatus(inOnePiece(body), taskId))
    },

    async deleteTask(nodeUrl, taskId, abort, traceparent) {
      const call = { name: 'task-delete', taskId, nodeUrl } as const
      const answer = await withinTaskCall(options.onTaskCall, call, traceparent, (headers) =>
        requests.send({
          nodeUrl,
          method: 'DELETE',
          path: `/v1/task/${taskId}?abort=${abort}`,
          headers: { ...statusHeaders, ...headers },
          maxBytes: STATUS_BYTES,
        }),
      )
      if (answer.status !== 404) expectOk(answer, `DELETE task ${taskId}`)
    },

    async shutDown(nodeUrl) {
      const asked = { nodeUrl, method: 'PUT', path: '/v1/info/state', body: '"SHUTTING_DOWN"', maxBytes: STATUS_BYTES }
      expectOk(await requests.send(asked), 'PUT /v1/info/state')
    },

    async deleteTasks(nodeUrl, taskIds) {
      const body = JSON.stringify({ taskIds })
      const answer = await requests.send({ nodeUrl, method: 'DELETE', path: '/v1/task', body, maxBytes: STATUS_BYTES })
      expectOk(answer, 'DELETE tasks')
    },

    async fetchPage(nodeUrl, page, acknowledgeBefore) {
      const start = performance.now()
      const report = (result: PageFetch['result'], bytes = 0): void =>
        options.onPageFetched?.({ result, bytes, milliseconds: performance.now() - start })
      try {
        const answer = await requests.send(pageRequest(nodeUrl, page, options.pageMaxBytes, acknowledgeBefore))
        const gone = answer.status === 404 || answer.status === 410
        const bytes = gone ? undefined : expectOk(answer, `page ${page.token} of ${page.taskId}`).body
        report(bytes ? 'ok' : 'failed', bytes && bytesIn(bytes))
        return bytes
      } catch (error) {
        report(error instanceof WorkerRefused ? 'failed' : 'retry')
        throw error
      }
    },

    async acknowledge(nodeUrl, taskId, before) {
      const path = `/v1/task/${taskId}/results/0?before=${before}`
      const answer = await requests.send({ nodeUrl, method: 'DELETE', path, maxBytes: STATUS_BYTES })
      if (answer.status !== 404) expectOk(answer, `acknowledge ${taskId}`)
    },

    async taskNews(nodeUrl, since, signal) {
      const answer = await requests.send({
        nodeUrl,
        method: 'GET',
        path: since === undefined ? '/v1/task?since=' : `/v1/task?since=${encodeURIComponent(since)}`,
        headers: statusHeaders,
        maxBytes: NEWS_BYTES,
        timeoutMs: NEWS_WAIT_MS,
        signal,
      })
      expectOk(answer, 'task news')
      const version = answer.headers[internalHeaders.taskVersion]
      return {
        version: typeof version === 'string' ? version : '',
        tasks: usable('task news', () => readTaskStatuses(inOnePiece(answer.body))),
      }
    },

    async forward(nodeUrl, request) {
      const maxBytes = Math.max(STATUS_BYTES, options.pageMaxBytes)
      const { status, headers, body } = await requests.send({ nodeUrl, ...request, maxBytes })
      return { status, headers, body: inOnePiece(body) }
    },
    close: requests.close,
  }
}

function pageRequest(
  nodeUrl: string,
  { taskId, token, bytes }: ListedPage,
  pageMaxBytes: number,
  acknowledgeBefore: number | undefined,
): WorkerRequest {
  return {
    nodeUrl,
    method: 'GET',
    path: `/v1/task/${taskId}/results/0/${token}`,
    headers: {
      [internalHeaders.maxWait]: '0ms',
      ...(acknowledgeBefore === undefined ? {} : { [internalHeaders.acknowledge]: String(acknowledgeBefore) }),
    },
    maxBytes: Math.min(bytes, pageMaxBytes),
  }
}

function expectOk(answer: WorkerAnswer, what: string): WorkerAnswer {
  const { status } = answer
  if (status >= 200 && status < 300) return answer
  const detail = inOnePiece(answer.body).toString('utf8', 0, 200)
  // Overload and slowness pass, so these are no refusals.
  if (status >= 400 && status < 500 && status !== 408 && status !== 429) throw new WorkerRefused(what, status, detail)
  throw new WorkerLost(`${what}: HTTP ${status} ${detail}`)
}

/** A worker with unreadable answers counts as lost: others do its work. */
function usable<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof UnusableAnswer)
      throw new WorkerLost(`${what}: the answer is of no use: ${error.message}`, { cause: error })
    throw error
  }
}

function tooLargeTask(update: TaskUpdate, bytes: number, limit?: number): EngineError {
  return new EngineError(
    'EXCEEDED_TASK_DESCRIPTOR_STORAGE_CAPACITY',
    `The statement with its ${update.splits.length} splits takes ${bytes} bytes for a worker, ` +
      (limit === undefined ? 'which does not take so many' : `which takes at most ${limit}`) +
      ': read fewer files or columns, or make the statement shorter',
  )
}
