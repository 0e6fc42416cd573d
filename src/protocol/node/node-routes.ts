import type { IncomingMessage } from 'node:http'
import type { Request, Response, Router } from 'express'
import type { Membership, NodeSnapshot } from '../../coordinator/nodes/membership.ts'
import { announcementSchema, internalHeaders, type ForgottenEpochs } from '../../execution/api/task.ts'
import { createAllowance } from '../../security/watched-files.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import { checkReadSystem } from '../access/system-information.ts'
import { remoteAddressOf } from '../edge/client-connection.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { keyNeeded } from '../task/internal-request.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import type { LiveQueries } from '../query/live-queries.ts'
import { nodeInfo, runningTasks } from './node-info.ts'
import { isNodeId, type NodeId } from '../../shared/ids.ts'

export interface NodeRoutesDeps {
  readonly membership: Pick<Membership, 'nodes' | 'announce' | 'leave'>
  /** Whether the request carries the cluster's secret. */
  readonly isInternal: (request: Request) => boolean
  readonly identify: (request: IncomingMessage) => Identity
  readonly authorize: Authorize
  readonly epoch: () => number
  /** Open queries: their tasks are counted for each worker. A coordinator that does not run queries has none. */
  readonly live: Pick<LiveQueries, 'list'>
  /** Resolves when the report is in the log; absent where this coordinator does not write it. */
  readonly recordForgotten?: ((report: ForgottenReport) => Promise<void>) | undefined
  readonly onError?: (error: unknown) => void
}

/** A worker's report that its epochs were reset. */
export interface ForgottenReport extends ForgottenEpochs {
  readonly nodeId: NodeId
  readonly remoteAddress?: string
}

const MAX_ANNOUNCEMENT_BYTES = 64 * 1024
/**
 * Limits the recorded resets of epochs: this many at once, then one in this many milliseconds. Workers report the
 * others again.
 */
const RECORDED_AT_ONCE = 10
const THEN_EACH_MS = 10_000

/**
 * Makes the routes of the node resource: `/v1/node`, `/v1/node/failed`, and `/v1/announcement`, by which workers
 * register.
 */
export function createNodeRoutes(deps: NodeRoutesDeps): Router {
  const { membership } = deps
  const router = resourceRouter()

  const list = (wanted: (node: NodeSnapshot) => boolean) => (request: Request, response: Response) => {
    checkReadSystem(request, deps)
    const tasks = runningTasks(deps.live.list())
    const nodes = membership
      .nodes()
      .filter(wanted)
      .map((node) => nodeInfo(node, tasks.get(node.url) ?? 0))
    sendJson(response, nodes, contentTypeFor(request), { vary: 'Accept' })
  }
  resource(router, '/v1/node', { GET: list(() => true) })
  resource(router, '/v1/node/failed', { GET: list((node) => node.state === 'failed') })

  function mustBeInternal(request: Request): void {
    if (!deps.isInternal(request)) throw keyNeeded()
  }
  function accepted(response: Response, recorded?: string): void {
    const headers = { [internalHeaders.epoch]: String(deps.epoch()), 'cache-control': 'no-store' }
    response.writeHead(204, recorded === undefined ? headers : { ...headers, [internalHeaders.recorded]: recorded })
    response.end()
  }

  /** The report that is being recorded. A worker repeats its report until it learns that it was recorded. */
  let recording: { readonly id: string; readonly done: Promise<void> } | undefined
  const allowance = createAllowance(RECORDED_AT_ONCE, THEN_EACH_MS)
  async function record(report: ForgottenReport): Promise<string | undefined> {
    if (!deps.recordForgotten) return undefined
    if (recording?.id !== report.id && !allowance.take(performance.now())) return undefined
    if (recording?.id !== report.id) recording = { id: report.id, done: deps.recordForgotten(report) }
    try {
      await recording.done
      return report.id
    } catch (error) {
      if (recording.id === report.id) recording = undefined
      throw error
    }
  }
  resource(router, '/v1/announcement', {
    async PUT(request, response) {
      mustBeInternal(request)
      const announcement = announcementSchema.safeParse(await readJson(request, MAX_ANNOUNCEMENT_BYTES))
      if (!announcement.success) throw new HttpProblem(400, 'The body is not a valid announcement')
      const { forgottenEpochs, ...announced } = announcement.data
      membership.announce(announced)
      const remoteAddress = remoteAddressOf(request)
      accepted(
        response,
        forgottenEpochs &&
          (await record({
            ...forgottenEpochs,
            nodeId: announced.nodeId,
            ...(remoteAddress === undefined ? {} : { remoteAddress }),
          })),
      )
    },
  })
  resource(router, '/v1/announcement/{nodeId}', {
    DELETE(request, response) {
      mustBeInternal(request)
      const nodeId = String(request.params['nodeId'])
      if (isNodeId(nodeId)) membership.leave(nodeId)
      accepted(response)
    },
  })

  router.use(problemHandler(deps.onError))
  return router
}

/** The interface's old content type, unless the client asks for JSON. */
function contentTypeFor(request: Request): string {
  return request.accepts(['application/javascript', 'application/json']) === 'application/json'
    ? 'application/json'
    : 'application/javascript'
}
