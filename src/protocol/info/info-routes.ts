import type { Router } from 'express'
import type { Clock } from '../../shared/clock.ts'
import { formatDuration } from '../../shared/durations.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import type { NodeId } from '../../shared/ids.ts'

/** How this process does; what a load balancer or an operator asks. */
export interface ServerStatus {
  readonly live: true
  /**
   * It takes statements, and what it tells of history is true: not while it starts or drains, nor while the event log is
   * away, nor once the projection has stopped.
   */
  readonly ready: boolean
  /** Whether the event log answers. */
  readonly log: 'up' | 'down'
  /** Whether the Postgres of the read models answers; without it there is no history, and with Kafka all else. */
  readonly database: 'up' | 'down'
  /** It holds the log. */
  readonly writer: boolean
  readonly epoch: number
  /** How far the read models are behind the log; absent while that is not known. */
  readonly lag?: { readonly events: number; readonly oldestMillis: number }
  /** Whether the projection moves; of the writer alone. `retrying`: it lags, statements go on; `stopped`: for good. */
  readonly projection?: {
    readonly state: 'following' | 'retrying' | 'stopped'
    /** ISO time. */
    readonly since?: string
    readonly reason?: string
  }
  readonly deadLetters: number
  /** Starts of this process again since its supervisor began. */
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
  /** Does it take statements? */
  readonly ready: () => boolean
  /** Does it write the log, and in which epoch? Followers ask for this: it must cost nothing. */
  readonly writerState: () => Pick<ServerStatus, 'writer' | 'epoch'>
  readonly status: () => Promise<Omit<ServerStatus, 'live' | 'ready' | 'writer' | 'epoch'>>
  /** The document of `/openapi.json`. */
  readonly openApi: () => unknown
  readonly onError?: (error: unknown) => void
}

/** `/v1/info`, `/v1/status`, `/openapi.json`. */
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
