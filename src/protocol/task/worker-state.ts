import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { createAskers, type AskerDeps } from './asker.ts'
import { isAuthorized } from './internal-request.ts'

export interface WorkerStateDeps extends AskerDeps {
  readonly nodeId: string
  readonly isLeaving: () => boolean
  /**
   * Makes the worker accept no new tasks. The process ends when its tasks are no longer needed, and is not restarted.
   * May be called again.
   */
  readonly leave: () => Promise<void>
}

const MAX_BODY_BYTES = 256

/**
 * Handles `/v1/info/state` of a worker, as in Trino: reads its state, and makes it drain. A drain comes from the
 * coordinator that writes the log, which checks the right to it and records who asked.
 */
export function createWorkerState(
  deps: WorkerStateDeps,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const { authorize, checkEpoch } = createAskers(deps)
  return async (request, response) => {
    if (request.method === 'PUT') {
      if (!isAuthorized(request, deps.bearer)) throw askCoordinator(deps.nodeId)
      const asker = authorize(request, false)
      checkEpoch(asker, request, true)
      if ((await readJson(request, MAX_BODY_BYTES)) !== 'SHUTTING_DOWN')
        throw new HttpProblem(400, 'The body must be "SHUTTING_DOWN"')
      // Another coordinator may have come while the body arrived.
      checkEpoch(asker, request, true)
      await deps.leave()
    }
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    response.end(request.method === 'HEAD' ? undefined : JSON.stringify(deps.isLeaving() ? 'SHUTTING_DOWN' : 'ACTIVE'))
  }
}

/** The refusal for callers that use Trino's address: it names the address to use here. */
function askCoordinator(nodeId: string): HttpProblem {
  return new HttpProblem(401, `A worker knows no users: send PUT /v1/node/${nodeId}/state to a coordinator`, {
    'www-authenticate': 'Bearer',
  })
}
