import type { IncomingMessage } from 'node:http'
import type { Request, Router } from 'express'
import { z } from 'zod'
import type { ClusterView } from '../../coordinator/clusters/cluster.ts'
import type { ClusterControl } from '../../coordinator/clusters/cluster-directory.ts'
import { clusterStream } from '../../coordinator/clusters/events.ts'
import { enderSeenBy } from '../../coordinator/query/stream/ending.ts'
import { shownCloudEvent } from '../../coordinator/query/stream/shown-event.ts'
import { clusterStates } from '../../coordinator/clusters/state.ts'
import type { QueryRows } from '../../events/projection.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import { readStreamPage } from '../../readmodels/query-events/queries.ts'
import { withDeadline } from '../../shared/deadline.ts'
import { isClusterName, type ClusterName } from '../../shared/ids.ts'
import { administratorOf, type AdministratorDeps } from '../access/administrator.ts'
import { checkReadSystem } from '../access/system-information.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import { clusterInfo } from './cluster-info.ts'

export interface ClusterRoutesDeps extends AdministratorDeps {
  readonly clusters: Pick<ClusterControl, 'list' | 'byName' | 'ask'>
  readonly isLocalCatalog: (name: string) => boolean
  /** Rows of the read models. */
  readonly read: QueryRows
  readonly projection: Pick<ProjectionRunner, 'barrier'>
  readonly logId: () => string
  /** Scheme, host and port that the client used. */
  readonly baseUri: (request: IncomingMessage) => string
  /** How long a change of state waits for the event log, milliseconds. */
  readonly logWaitMs: number
  /** How long a read of events waits for the read models, milliseconds. */
  readonly ownWritesWaitMs: number
  readonly onError?: (error: unknown) => void
}

const MAX_BODY_BYTES = 4096
const MAX_EVENTS = 1000

/** `by`: a caller that uses the key of Quipu's processes must name the person behind its request. */
const bodySchema = z.strictObject({
  state: z.enum(clusterStates),
  reason: z.string().min(1).max(500).optional(),
  by: z.string().min(1).max(200).optional(),
})

const eventsParameters = z.object({
  after: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(MAX_EVENTS).default(100),
})

/**
 * Routes of the cluster resource, at the coordinator that writes the log: `/v1/cluster`, `/v1/cluster/{name}`,
 * `/v1/cluster/{name}/state` and `/v1/cluster/{name}/events`.
 */
export function createClusterRoutes(deps: ClusterRoutesDeps): Router {
  const { clusters, isLocalCatalog } = deps
  const router = resourceRouter()
  const shown = (cluster: ClusterView) => clusterInfo(cluster, isLocalCatalog)

  resource(router, '/v1/cluster', {
    GET(request, response) {
      checkReadSystem(request, deps)
      sendJson(response, clusters.list().map(shown))
    },
  })

  resource(router, '/v1/cluster/{name}', {
    GET(request, response) {
      checkReadSystem(request, deps)
      const cluster = clusters.byName(nameOf(request))
      if (!cluster) throw noCluster()
      sendJson(response, shown(cluster))
    },
  })

  resource(router, '/v1/cluster/{name}/state', {
    async PUT(request, response) {
      // The body is read once, and only when it is needed: a caller without the right is refused before that.
      let read: Promise<z.output<typeof bodySchema>> | undefined
      const body = (): NonNullable<typeof read> => (read ??= bodyOf(request))
      const administrator = await administratorOf(request, deps, async () => namedBy(await body()))
      const { state, reason } = await body()
      const name = nameOf(request)
      const asked = clusters.ask(name, state, { ...administrator, ...(reason !== undefined && { reason }) })
      const cluster = await withDeadline(asked, deps.logWaitMs, logIsAway)
      if (!cluster) throw noCluster()
      sendJson(response, shown(cluster))
    },
  })

  resource(router, '/v1/cluster/{name}/events', {
    async GET(request, response) {
      checkReadSystem(request, deps)
      const parsed = eventsParameters.safeParse(request.query)
      if (!parsed.success) throw new HttpProblem(400, z.prettifyError(parsed.error).replaceAll('\n', ' '))
      const { after, limit } = parsed.data
      const name = nameOf(request)
      const passed = await deps.projection.barrier(deps.ownWritesWaitMs)
      const events = await readStreamPage(deps.read, clusterStream(name), after, limit + 1).catch((error: unknown) => {
        deps.onError?.(error)
        throw new HttpProblem(503, 'The events of clusters cannot be read now', { 'retry-after': '1' })
      })
      if (events.length === 0 && !clusters.byName(name)) throw noCluster()
      const page = events.slice(0, limit)
      const seesEnder = enderSeenBy(deps.identify(request), deps.authorize)
      const last = page.at(-1)
      const next = `${deps.baseUri(request)}/v1/cluster/${name}/events?after=${last?.sequence}&limit=${limit}`
      sendJson(
        response,
        page.map((event) => shownCloudEvent(event, `/quipu/${deps.logId()}`, seesEnder)),
        'application/cloudevents-batch+json',
        {
          ...(passed ? {} : { 'x-engine-stale': String(deps.ownWritesWaitMs) }),
          ...(events.length > limit ? { link: `<${next}>; rel="next"` } : {}),
        },
      )
    },
  })

  router.use(problemHandler(deps.onError))
  return router
}

/** @throws HttpProblem 404 when no cluster can have that name */
function nameOf(request: Request): ClusterName {
  const text = String(request.params['name'])
  if (!isClusterName(text)) throw noCluster()
  return text
}

function noCluster(): HttpProblem {
  return new HttpProblem(404, 'There is no such cluster')
}

function logIsAway(): HttpProblem {
  return new HttpProblem(503, 'The event log does not answer: the state may change once it does', {
    'retry-after': '1',
  })
}

async function bodyOf(request: Request): Promise<z.output<typeof bodySchema>> {
  const parsed = bodySchema.safeParse(await readJson(request, MAX_BODY_BYTES))
  if (!parsed.success)
    throw new HttpProblem(400, `The body must be {"state": …, "reason": …}; a state is ${clusterStates.join(', ')}`)
  return parsed.data
}

function namedBy({ by }: z.output<typeof bodySchema>): string {
  if (by === undefined) throw new HttpProblem(400, 'With the key of the cluster: {"state": …, "by": …}')
  return by
}
