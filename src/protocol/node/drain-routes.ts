import type { Request, Router } from 'express'
import { z } from 'zod'
import type { Membership } from '../../coordinator/nodes/membership.ts'
import type { SystemEvent } from '../../coordinator/system/events.ts'
import { isNodeId, type NodeId } from '../../shared/ids.ts'
import { administratorOf, type AdministratorDeps } from '../access/administrator.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import { stateOf } from './node-info.ts'

type DrainAsked = Extract<SystemEvent, { type: 'NodeDrainAsked' }>['data']

export interface DrainRoutesDeps extends AdministratorDeps {
  readonly membership: Pick<Membership, 'nodes' | 'leaving'>
  /** Resolves when the event is in the log. */
  readonly record: (asked: DrainAsked) => Promise<void>
  /** Resolves when the worker takes no new tasks. @throws WorkerLost, WorkerRefused, StaleEpoch */
  readonly shutDown: (url: string) => Promise<void>
  readonly onError?: (error: unknown) => void
}

const MAX_BODY_BYTES = 4096
/** Trino's body; a caller with the cluster's key also names the person that it asks for. */
const bodySchema = z.union([
  z.literal('SHUTTING_DOWN'),
  z.strictObject({ state: z.literal('SHUTTING_DOWN'), by: z.string().min(1).max(200) }),
])

/** Routes of `PUT /v1/node/{nodeId}/state`, at the coordinator that writes the log: a worker drains and then ends. */
export function createDrainRoutes(deps: DrainRoutesDeps): Router {
  const router = resourceRouter()
  /** Drains under way. A second request for the same worker waits for the first and records no second event. */
  const drains = new Map<NodeId, Promise<void>>()

  resource(router, '/v1/node/{nodeId}/state', {
    async PUT(request, response) {
      // The body is read once. A caller without the right is refused whatever the body is.
      let read: Promise<z.output<typeof bodySchema>> | undefined
      const body = (): NonNullable<typeof read> => (read ??= bodyOf(request))
      const administrator = await administratorOf(request, deps, async () => namedBy(await body()))
      await body()
      const nodeId = nodeIdOf(request)
      const node = deps.membership.nodes().find((one) => one.nodeId === nodeId)
      if (!node) throw new HttpProblem(404, 'The worker does not exist')
      if (!node.leaving) {
        const draining = drains.get(node.nodeId) ?? drain(deps, node, administrator)
        drains.set(node.nodeId, draining)
        await draining.finally(() => drains.delete(node.nodeId))
      }
      const now = deps.membership.nodes().find((one) => one.nodeId === nodeId) ?? node
      sendJson(response, { nodeId: now.nodeId, uri: now.url, state: stateOf(now) })
    },
  })

  router.use(problemHandler(deps.onError))
  return router
}

async function drain(
  { record, shutDown, membership }: DrainRoutesDeps,
  { nodeId, url, state: before }: ReturnType<Membership['nodes']>[number],
  administrator: Pick<DrainAsked, keyof Awaited<ReturnType<typeof administratorOf>>>,
): Promise<void> {
  // The event that says who asked is recorded before the worker is drained.
  await record({ nodeId, url, before, after: 'shutting_down', ...administrator })
  await shutDown(url).catch((error: unknown) => {
    throw new HttpProblem(503, `The worker did not accept the request: ${(error as Error).message}`)
  })
  membership.leaving(nodeId)
}

function nodeIdOf(request: Request): NodeId | undefined {
  const text = String(request.params['nodeId'])
  return isNodeId(text) ? text : undefined
}

async function bodyOf(request: Request): Promise<z.output<typeof bodySchema>> {
  const parsed = bodySchema.safeParse(await readJson(request, MAX_BODY_BYTES))
  if (!parsed.success)
    throw new HttpProblem(400, 'The body must be "SHUTTING_DOWN": a worker cannot be set to another state')
  return parsed.data
}

function namedBy(body: z.output<typeof bodySchema>): string {
  if (typeof body === 'string')
    throw new HttpProblem(400, 'With the cluster secret the body must be {"state": "SHUTTING_DOWN", "by": …}')
  return body.by
}
