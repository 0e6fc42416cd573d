import type { Router } from 'express'
import type { Clock } from '../../shared/clock.ts'
import { formatDuration } from '../../shared/durations.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import type { NodeId } from '../../shared/ids.ts'

/** The state of this process, for load balancers and operators. */
export interface ServerStatus {
  readonly live: true
  /**
   * Whether it accepts statements and its history is current. False while it starts or drains, while the event log is
   * unreachable, and after the projection has stopped.
   */
  readonly ready: boolean
  /** Whether the event log answers. */
  readonly log: 'up' | 'down'
  /**
   * Whether the Postgres of the read models answers. Without it there is no history; with Kafka as the log everything
   * else works.
   */
  readonly database: 'up' | 'down'
  /** Whether this process writes the log. */
  readonly writer: boolean
  readonly epoch: number
  /** How far the read models are behind the log; absent while that is not known. */
  readonly lag?: { readonly events: number; readonly oldestMillis: number }
  /**
   * Whether the projection progresses; on the writer only. `retrying`: it lags, statements go on; `stopped`: for good.
   */
  readonly projection?: {
    readonly state: 'following' | 'retrying' | 'stopped'
    /** ISO time. */
    readonly since?: string
    readonly reason?: string
  }
  readonly deadLetters: number
  /** How often this process was restarted since its supervisor started. */
  readonly restarts: number
  readonly workers: { readonly active: number; readonly suspect: number; readonly failed: number }
  readonly openQueries: number
}

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
      }),
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
