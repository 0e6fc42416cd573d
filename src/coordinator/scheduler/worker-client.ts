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

/** A page as its task listed it. */
interface ListedPage {
  readonly taskId: TaskId
  /** Its position in the task's output. */
  readonly token: number
  readonly bytes: number
}

/** A request of the task resource, passed on as it is. */
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
 * What the coordinator asks of workers.
 * Each call throws WorkerLost when the worker does not answer in order, WorkerRefused when it says no, StaleEpoch when it
 * knows a later coordinator.
 */
export interface WorkerClient {
  /** @throws EngineError EXCEEDED_TASK_DESCRIPTOR_STORAGE_CAPACITY when a worker would not take so large an update */
  createTask(nodeUrl: string, taskId: TaskId, update: TaskUpdate): Promise<TaskStatus>
  /** The task as the worker has it, every closed page included; undefined when it has none. */
  getTask(nodeUrl: string, taskId: TaskId): Promise<TaskStatus | undefined>
  /** Resolves when the worker has no such task any more. */
  deleteTask(nodeUrl: string, taskId: TaskId, abort: boolean, traceparent?: string): Promise<void>
  /** Tasks of ended queries, many at once; unknown ones are gone already. */
  deleteTasks(nodeUrl: string, taskIds: readonly TaskId[]): Promise<void>
  /** The bytes of a closed page, or undefined when the worker has it no more. */
  fetchPage(nodeUrl: string, page: ListedPage, acknowledgeBefore?: number): Promise<BodyParts | undefined>
  /** Pages below a token are passed for good. */
  acknowledge(nodeUrl: string, taskId: TaskId, before: number): Promise<void>
  /** Long-polls all tasks of a worker that changed since a version. */
  taskNews(nodeUrl: string, since: string | undefined, signal: AbortSignal): Promise<HeardTasks>
  /** The worker takes no new tasks, and goes when nobody needs those that it has. */
  shutDown(nodeUrl: string): Promise<void>
  /** Any request of the task resource; any answer of it. */
  forward(nodeUrl: string, request: ForwardedRequest): Promise<ForwardedAnswer>
  close(): void
}

export interface WorkerClientOptions extends WorkerRequestsOptions {
  /** What workers take as the body of a task update. */
  readonly taskBodyBytes: number
  /** The largest page that a worker makes. */
  readonly pageMaxBytes: number
  /** Told of every request that made, changed or ended a task of a query with a trace. */
  readonly onTaskCall?: (call: TaskCall) => void
  /** Told of every request for a page. `retry`: not reached, whoever wants it asks again; `failed`: it is gone. */
  readonly onPageFetched?: (fetch: PageFetch) => void
}

export interface PageFetch {
  readonly result: 'ok' | 'retry' | 'failed'
  readonly bytes: number
  readonly milliseconds: number
}

const MB = 1024 * 1024
/** What answers may have, far above what they do: a task's figures grow with its batches, news with a worker's tasks. */
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
      // Its own limit may be lower; every other worker's too.
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
  // That it has too much to do, or is too slow, passes.
  if (status >= 400 && status < 500 && status !== 408 && status !== 429) throw new WorkerRefused(what, status, detail)
  throw new WorkerLost(`${what}: HTTP ${status} ${detail}`)
}

/** A worker that answers nonsense is as good as gone: others do its work. */
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
