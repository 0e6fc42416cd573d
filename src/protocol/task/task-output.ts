import type { IncomingMessage, ServerResponse } from 'node:http'
import { internalHeaders } from '../../execution/api/task.ts'
import type { TaskManager } from '../../execution/worker/task-manager.ts'
import type { WorkerTask } from '../../execution/worker/task.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { HttpProblem } from '../edge/problem.ts'
import { requestTarget } from '../edge/request-target.ts'
import type { Askers } from './asker.ts'
import { maxWaitMs, parsePageToken } from './internal-request.ts'
import type { OutputAddress, PageAddress, TaskHandlers } from './task-resource.ts'

/** Requires the only output of a task, `0`. */
function mustBeTheOutput({ output }: OutputAddress): void {
  if (output !== '0') throw new HttpProblem(404, 'Output not found')
}

const DEFAULT_WAIT_MS = 1000

/** Handlers of the output of a worker's tasks: its pages one by one, each available until it is acknowledged. */
export function createTaskOutput(
  tasks: Pick<TaskManager, 'get'>,
  { authorize, checkEpoch }: Askers,
): Pick<TaskHandlers, 'output' | 'page'> {
  function taskOf({ taskId }: OutputAddress): WorkerTask {
    const task = tasks.get(taskId)
    if (!task) throw new HttpProblem(404, 'Task not found')
    return task
  }

  async function getPage(request: IncomingMessage, response: ServerResponse, address: PageAddress): Promise<void> {
    mustBeTheOutput(address)
    const token = parsePageToken(address.token)
    checkEpoch(authorize(request, false), request, false)
    const task = taskOf(address)
    const acknowledge = request.headers[internalHeaders.acknowledge]
    if (acknowledge !== undefined) await task.acknowledge(parsePageToken(String(acknowledge)))
    if (task.isAcknowledged(token)) throw new HttpProblem(410, `Page ${token} was acknowledged`)
    await task.waitForPage(token, maxWaitMs(request, DEFAULT_WAIT_MS))
    const found = await pageOrGone(task, token)
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

  async function drop(request: IncomingMessage, response: ServerResponse, address: OutputAddress): Promise<void> {
    mustBeTheOutput(address)
    checkEpoch(authorize(request, false), request, true)
    const task = taskOf(address)
    const before = requestTarget(request).query.get('before')
    await (before === null ? task.drop() : task.acknowledge(parsePageToken(before)))
    response.writeHead(204).end()
  }

  return { output: { DELETE: drop }, page: { GET: getPage } }
}

/** Reads a page. A listed page that is missing or has changed is gone: 410. */
export async function pageOrGone(task: WorkerTask, token: number): ReturnType<WorkerTask['page']> {
  try {
    return await task.page(token)
  } catch (error) {
    if (error instanceof EngineError && error.errorName === 'PAGE_TRANSPORT_ERROR') {
      throw new HttpProblem(410, error.message)
    }
    throw error
  }
}
