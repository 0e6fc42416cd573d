import type { Router } from 'express'
import type { Clock } from '../../shared/clock.ts'
import { formatDuration } from '../../shared/durations.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import type { NodeId } from '../../shared/ids.ts'
import type { ServerInfo, ServerStatus } from './schemas/server.ts'

export interface InfoRoutesDeps {
  readonly clock: Clock
  /** Monotonic time at which the process began, milliseconds. */
  readonly startedAtMs: number
  readonly nodeId: NodeId
  readonly version: string
  readonly environment: string
  /** Whether the process accepts statements. */
  readonly ready: () => boolean
  /** Whether this process writes the log, and its epoch. Followers poll this, so it must be cheap. */
  readonly writerState: () => Pick<ServerStatus, 'writer' | 'epoch'>
  readonly status: () => Promise<Omit<ServerStatus, 'live' | 'ready' | 'writer' | 'epoch'>>
  /** The document of `/openapi.json`. */
  readonly openApi: () => unknown
  readonly onError?: (error: unknown) => void
}

/** Makes the routes of `/v1/info`, `/v1/status` and `/openapi.json`. */
export function createInfoRoutes(deps: InfoRoutesDeps): Router {
  const router = resourceRouter()
  let openApi: unknown

  resource(router, '/v1/info', {
    GET: (_request, response) =>
      sendJson(response, {
        nodeVersion: { version: deps.version },
        nodeId: deps.nodeId,
        environment: deps.environment,
        coordinator: true,
        starting: !deps.ready(),
        ...deps.writerState(),
        uptime: formatDuration((deps.clock.monotonicMs() - deps.startedAtMs) * 1e6),
      } satisfies ServerInfo),
  })
  resource(router, '/v1/status', {
    async GET(_request, response) {
      const status = await deps.status()
      const ready = deps.ready() && status.log === 'up' && status.projection?.state !== 'stopped'
      sendJson(response, { live: true, ready, ...deps.writerState(), ...status } satisfies ServerStatus)
    },
  })
  resource(router, '/openapi.json', {
    GET: (_request, response) => sendJson(response, (openApi ??= deps.openApi())),
  })

  router.use(problemHandler(deps.onError))
  return router
}
