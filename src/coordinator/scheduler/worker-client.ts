import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { internalHeaders, taskStatusJson, type TaskStatus, type TaskUpdate } from '../../execution/api/task.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { requestOptionsOf } from '../../shared/request-options.ts'
import { readTaskStatus, readTaskStatuses, UnusableAnswer } from './worker-answers.ts'
import { entitySpanId, formatTraceparent, newSpanId, parseTraceparent } from '../../telemetry/trace-context.ts'

export interface WorkerAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** A worker that could not be reached or broke off: says nothing about what it did. */
export class WorkerUnreachable extends Error {
  override readonly name = 'WorkerUnreachable'
}

/** The worker has seen a higher epoch: this coordinator is no longer the writer. */
export class StaleEpoch extends Error {
  override readonly name = 'StaleEpoch'
}

export interface TaskNews {
  readonly version: string
  readonly tasks: readonly TaskStatus[]
}

/** What the coordinator asks of workers; every request carries its epoch and the cluster secret. */
export interface WorkerClient {
  /** @throws EngineError EXCEEDED_TASK_DESCRIPTOR_STORAGE_CAPACITY when a worker would not take so large an update */
  createTask(nodeUrl: string, taskId: string, update: TaskUpdate): Promise<TaskStatus>
  /** The task as the worker has it, every closed page included; undefined when it has none. */
  getTask(nodeUrl: string, taskId: string): Promise<TaskStatus | undefined>
  /** Resolves when the worker has no such task any more. */
  deleteTask(nodeUrl: string, taskId: string, abort: boolean, traceparent?: string): Promise<void>
  /** Tasks of ended queries, many at once; unknown ones are gone already. */
  deleteTasks(nodeUrl: string, taskIds: readonly string[]): Promise<void>
  /** The bytes of a closed page, or undefined when the worker has it no more. */
  fetchPage(nodeUrl: string, taskId: string, token: number, acknowledgeBefore?: number): Promise<Buffer | undefined>
  /** Pages below a token are passed for good. */
  acknowledge(nodeUrl: string, taskId: string, before: number): Promise<void>
  /** Long-polls all tasks of a worker that changed since a version. */
  taskNews(nodeUrl: string, since: string | undefined, signal: AbortSignal): Promise<TaskNews>
  /** Any request of the task resource, passed on as it is. */
  forward(
    nodeUrl: string,
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: Buffer,
  ): Promise<WorkerAnswer>
  close(): void
}

export interface WorkerClientOptions {
  readonly epoch: () => number
  /** Of the log that the epoch is of. */
  readonly logId: string
  readonly bearer: string
  readonly requestTimeoutMs: number
  /** What workers take as the body of a task update. */
  readonly taskBodyBytes: number
  /** Told of every request's outcome: feeds the decaying counters of the node resource. */
  readonly onOutcome?: (nodeUrl: string, error: Error | undefined) => void
  /** A worker says that it has seen a higher epoch. @returns whether it is right */
  readonly onStaleEpoch: (nodeUrl: string) => Promise<boolean>
  /** Told of every request that made, changed or ended a task of a query with a trace. */
  readonly onTaskCall?: (call: TaskCall) => void
  /** Told of every request for a page. `retry`: not reached, whoever wants it asks again; `failed`: it is gone. */
  readonly onPageFetched?: (fetch: PageFetch) => void
}

/** A request that changes a task of a traced query. */
export interface TaskCall {
  readonly name: 'task-update' | 'task-delete'
  readonly taskId: string
  readonly nodeUrl: string
  /** Of the stage. */
  readonly traceparent: string
  /** The request's own: the worker's span is below it. */
  readonly spanId: string
  /** Absent when there was no answer. */
  readonly status: number | undefined
  readonly milliseconds: number
}

export interface PageFetch {
  readonly result: 'ok' | 'retry' | 'failed'
  readonly bytes: number
  readonly milliseconds: number
}

export function createWorkerClient(options: WorkerClientOptions): WorkerClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 64, noDelay: true, timeout: 120_000 })

  function send(
    nodeUrl: string,
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: Buffer | string,
    timeoutMs = options.requestTimeoutMs,
    signal?: AbortSignal,
  ): Promise<WorkerAnswer> {
    return new Promise((resolve, reject) => {
      const fail = (cause: Error): void => {
        const error = new WorkerUnreachable(`${method} ${nodeUrl}: ${cause.message}`, { cause })
        if (!signal?.aborted) options.onOutcome?.(nodeUrl, error)
        reject(error)
      }
      const request = httpRequest(
        {
          ...requestOptionsOf(nodeUrl, path),
          method,
          agent,
          ...(signal ? { signal } : {}),
          headers: {
            authorization: `Bearer ${options.bearer}`,
            [internalHeaders.epoch]: String(options.epoch()),
            [internalHeaders.log]: options.logId,
            ...(body === undefined
              ? {}
              : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
            ...headers,
          },
        },
        (response) => {
          const parts: Buffer[] = []
          response.on('data', (part: Buffer) => parts.push(part))
          response.on('error', fail)
          response.on('end', () => {
            const status = response.statusCode ?? 0
            if (status === 409) {
              // One worker's word ends no coordinator.
              options
                .onStaleEpoch(nodeUrl)
                .then(
                  (right) =>
                    right
                      ? reject(new StaleEpoch(`${nodeUrl} has seen a higher epoch`))
                      : fail(new Error('it has seen an epoch that the event log has not')),
                  fail,
                )
              return
            }
            options.onOutcome?.(nodeUrl, undefined)
            resolve({ status, headers: response.headers, body: parts.length === 1 ? parts[0]! : Buffer.concat(parts) })
          })
        },
      )
      request.setTimeout(timeoutMs, () => request.destroy(new Error(`no answer within ${timeoutMs} ms`)))
      request.on('error', fail)
      request.end(body)
    })
  }

  async function told(
    name: TaskCall['name'],
    nodeUrl: string,
    taskId: string,
    traceparent: string | undefined,
    call: (headers: Readonly<Record<string, string>>) => Promise<WorkerAnswer>,
  ): Promise<WorkerAnswer> {
    const context = options.onTaskCall ? parseTraceparent(traceparent) : undefined
    if (traceparent === undefined || !context?.sampled) return call({})
    const start = performance.now()
    // As a successor would name it, whose stand-in is the parent of the worker's span when this one is lost.
    const spanId = name === 'task-update' ? entitySpanId(name, taskId) : newSpanId()
    let status: number | undefined
    try {
      const answer = await call({ traceparent: formatTraceparent({ ...context, spanId }) })
      status = answer.status
      return answer
    } finally {
      const milliseconds = performance.now() - start
      options.onTaskCall?.({ name, taskId, nodeUrl, traceparent, spanId, status, milliseconds })
    }
  }

  const expectOk = (answer: WorkerAnswer, what: string): WorkerAnswer => {
    if (answer.status >= 200 && answer.status < 300) return answer
    throw new WorkerUnreachable(`${what}: HTTP ${answer.status} ${answer.body.toString('utf8', 0, 200)}`)
  }

  /** A worker that answers nonsense is as good as gone: others do its work. */
  function usable<T>(what: string, read: () => T): T {
    try {
      return read()
    } catch (error) {
      if (error instanceof UnusableAnswer)
        throw new WorkerUnreachable(`${what}: the answer is of no use: ${error.message}`)
      throw error
    }
  }

  return {
    async createTask(nodeUrl, taskId, update) {
      const body = Buffer.from(JSON.stringify(update))
      if (body.length > options.taskBodyBytes) throw tooLargeTask(update, body.length, options.taskBodyBytes)
      const answer = await told('task-update', nodeUrl, taskId, update.traceparent, (headers) =>
        send(nodeUrl, 'POST', `/v1/task/${taskId}`, { accept: taskStatusJson, ...headers }, body),
      )
      // Its own limit may be lower; every other worker's too.
      if (answer.status === 413) throw tooLargeTask(update, body.length)
      const { body: answered } = expectOk(answer, `POST task ${taskId}`)
      return usable(`POST task ${taskId}`, () => readTaskStatus(answered, taskId))
    },
    async getTask(nodeUrl, taskId) {
      const answer = await send(nodeUrl, 'GET', `/v1/task/${taskId}`, { accept: taskStatusJson })
      if (answer.status === 404) return undefined
      const { body } = expectOk(answer, `GET task ${taskId}`)
      return usable(`GET task ${taskId}`, () => readTaskStatus(body, taskId))
    },
    async deleteTask(nodeUrl, taskId, abort, traceparent) {
      const answer = await told('task-delete', nodeUrl, taskId, traceparent, (headers) =>
        send(nodeUrl, 'DELETE', `/v1/task/${taskId}?abort=${abort}`, { accept: taskStatusJson, ...headers }),
      )
      if (answer.status !== 404) expectOk(answer, `DELETE task ${taskId}`)
    },
    async deleteTasks(nodeUrl, taskIds) {
      expectOk(await send(nodeUrl, 'DELETE', '/v1/task', {}, JSON.stringify({ taskIds })), 'DELETE tasks')
    },
    async fetchPage(nodeUrl, taskId, token, acknowledgeBefore) {
      const start = performance.now()
      const told = (result: PageFetch['result'], bytes = 0): void =>
        options.onPageFetched?.({ result, bytes, milliseconds: performance.now() - start })
      try {
        const answer = await send(nodeUrl, 'GET', `/v1/task/${taskId}/results/0/${token}`, {
          [internalHeaders.maxWait]: '0ms',
          ...(acknowledgeBefore === undefined ? {} : { [internalHeaders.acknowledge]: String(acknowledgeBefore) }),
        })
        const gone = answer.status === 404 || answer.status === 410
        const body = gone ? undefined : expectOk(answer, `page ${token} of ${taskId}`).body
        told(gone ? 'failed' : 'ok', body?.length)
        return body
      } catch (error) {
        told('retry')
        throw error
      }
    },
    async acknowledge(nodeUrl, taskId, before) {
      const answer = await send(nodeUrl, 'DELETE', `/v1/task/${taskId}/results/0?before=${before}`, {})
      if (answer.status !== 404) expectOk(answer, `acknowledge ${taskId}`)
    },
    async taskNews(nodeUrl, since, signal) {
      const query = since === undefined ? '?since=' : `?since=${encodeURIComponent(since)}`
      const answer = await send(
        nodeUrl,
        'GET',
        `/v1/task${query}`,
        { accept: taskStatusJson },
        undefined,
        30_000,
        signal,
      )
      expectOk(answer, 'task news')
      const version = answer.headers[internalHeaders.taskVersion]
      return {
        version: typeof version === 'string' ? version : '',
        tasks: usable('task news', () => readTaskStatuses(answer.body)),
      }
    },
    forward: (nodeUrl, method, path, headers, body) => send(nodeUrl, method, path, headers, body),
    close: () => agent.destroy(),
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
