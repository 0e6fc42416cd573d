import type { IncomingMessage } from 'node:http'
import type { Request, Response, Router } from 'express'
import type { Membership, NodeSnapshot } from '../../coordinator/nodes/membership.ts'
import { announcementSchema, internalHeaders } from '../../execution/api/task.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import { checkReadSystem } from '../access/system-information.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { keyNeeded } from '../task/internal-request.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import { nodeInfo } from './node-info.ts'
import { isNodeId } from '../../shared/ids.ts'

export interface NodeRoutesDeps {
  readonly membership: Pick<Membership, 'nodes' | 'announce' | 'leave'>
  /** Does the request carry the cluster's secret? */
  readonly isInternal: (request: Request) => boolean
  readonly identify: (request: IncomingMessage) => Identity
  readonly authorize: Authorize
  readonly epoch: () => number
  readonly onError?: (error: unknown) => void
}

const MAX_ANNOUNCEMENT_BYTES = 64 * 1024

/** The node resource: `/v1/node`, `/v1/node/failed`, and `/v1/announcement`, by which workers make themselves known. */
export function createNodeRoutes(deps: NodeRoutesDeps): Router {
  const { membership } = deps
  const router = resourceRouter()

  const list = (wanted: (node: NodeSnapshot) => boolean) => (request: Request, response: Response) => {
    checkReadSystem(request, deps)
    const nodes = membership.nodes().filter(wanted).map(nodeInfo)
    sendJson(response, nodes, contentTypeFor(request), { vary: 'Accept' })
  }
  resource(router, '/v1/node', { GET: list(() => true) })
  resource(router, '/v1/node/failed', { GET: list((node) => node.state === 'failed') })

  function mustBeInternal(request: Request): void {
    if (!deps.isInternal(request)) throw keyNeeded()
  }
  function accepted(response: Response): void {
    response.writeHead(204, { [internalHeaders.epoch]: String(deps.epoch()), 'cache-control': 'no-store' }).end()
  }
  resource(router, '/v1/announcement', {
    async PUT(request, response) {
      mustBeInternal(request)
      const announcement = announcementSchema.safeParse(await readJson(request, MAX_ANNOUNCEMENT_BYTES))
      if (!announcement.success) throw new HttpProblem(400, 'Not an announcement')
      membership.announce(announcement.data)
      accepted(response)
    },
  })
  resource(router, '/v1/announcement/:nodeId', {
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

/** The old type that the interface shows, unless the asker names JSON. */
function contentTypeFor(request: Request): string {
  return request.accepts(['application/javascript', 'application/json']) === 'application/json'
    ? 'application/json'
    : 'application/javascript'
}
