import type { IncomingMessage } from 'node:http'
import express, { type Express } from 'express'
import type { Config } from '../config/load-config.ts'
import type { Membership } from '../coordinator/nodes/membership.ts'
import type { QueryRegistry } from '../coordinator/query/query-registry.ts'
import type { StatementService } from '../coordinator/query/statement-service.ts'
import type { WorkerClient } from '../coordinator/scheduler/worker-client.ts'
import { forgetQuery } from '../coordinator/system/forget-query.ts'
import { createAuditRoutes } from '../protocol/audit/audit-routes.ts'
import { HttpProblem } from '../protocol/edge/problem.ts'
import { Unforgettable, type EventLog } from '../events/event-log.ts'
import type { QueryRows } from '../events/projection.ts'
import type { ProjectionRunner } from '../events/projection-runner.ts'
import { isLoopback } from '../protocol/edge/browser-policy.ts'
import { createEventRoutes } from '../protocol/events/event-routes.ts'
import { createInfoRoutes } from '../protocol/info/info-routes.ts'
import { createNodeRoutes } from '../protocol/node/node-routes.ts'
import { openApiDocument } from '../protocol/info/open-api.ts'
import { createQueryRoutes } from '../protocol/query/query-routes.ts'
import { headerFamily, sessionFromHeaders } from '../protocol/statement/session-headers.ts'
import { isAuthorized } from '../protocol/task/internal-request.ts'
import { createRecentQueries } from '../protocol/task/recent-queries.ts'
import { createTaskProxyRoutes } from '../protocol/task/task-proxy-routes.ts'
import { baseUri } from '../protocol/statement/statement-routes.ts'
import type { LiveQueries } from '../protocol/query/live-queries.ts'
import { recordDenials, recordKills } from '../coordinator/system/recorded-rights.ts'
import { isTerminal } from '../coordinator/query/state.ts'
import type { Auditing } from './auditing.ts'
import { allowAll } from '../security/authorization.ts'
import type { Clock } from '../shared/clock.ts'
import { failureOf } from '../shared/engine-error.ts'
import type { RestartCount } from '../supervisor/messages.ts'
import type { Meters } from '../telemetry/meters.ts'
import type { DependencyHealth } from './dependency-health.ts'
import { version } from './version.ts'

export interface CoordinatorAppParts {
  readonly clock: Clock
  readonly config: Config
  /** Monotonic time at which the process began, milliseconds. */
  readonly startedAt: number
  readonly nodeId: string
  readonly epoch: number
  readonly logId: string
  readonly bearer: string
  readonly log: EventLog
  readonly live: LiveQueries
  readonly read: QueryRows
  readonly projection: ProjectionRunner
  readonly workers: Membership
  readonly registry: QueryRegistry
  readonly service: StatementService
  readonly client: WorkerClient
  readonly meters: () => Meters
  readonly restarts: () => readonly RestartCount[]
  readonly health: Pick<DependencyHealth, 'log' | 'database'>
  /** Does it take statements? */
  readonly ready: () => boolean
  readonly auditing: Auditing
  readonly onError: (error: unknown) => void
}

/** Every resource but statements: nothing of it lies on the way of a small query. */
export function createCoordinatorApp(parts: CoordinatorAppParts): {
  readonly app: Express
  readonly feed: ReturnType<typeof createEventRoutes>
} {
  const { clock, config, startedAt, nodeId, epoch, logId, bearer, log, live, read, projection } = parts
  const { workers, registry, service, client, onError } = parts
  const { timeouts, limits } = config
  const { refusals, journal } = parts.auditing
  const identify = (request: IncomingMessage) => ({
    user: userOf(request),
    ...(request.socket.remoteAddress === undefined ? {} : { remoteAddress: request.socket.remoteAddress }),
  })
  const authorize = recordDenials(allowAll, refusals)
  const isInternal = (request: IncomingMessage): boolean => {
    const internal = isAuthorized(request, bearer)
    if (!internal) onRefused(request)
    return internal
  }
  const onRefused = (request: IncomingMessage): void =>
    refusals.authenticationFailed({
      user: 'internal',
      method: 'shared_secret',
      remoteAddress: request.socket.remoteAddress,
    })
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.use(
    createInfoRoutes({
      clock,
      startedAtMs: startedAt,
      nodeId,
      version,
      environment: config.environment,
      ready: parts.ready,
      status: async () => ({
        log: parts.health.log,
        database: parts.health.database,
        writer: true,
        epoch,
        lag: await projection.lag(),
        deadLetters: projection.deadLetters,
        restarts: parts
          .restarts()
          .filter((one) => one.process === 'coordinator')
          .reduce((sum, one) => sum + one.count, 0),
        workers: countStates(workers.nodes()),
        openQueries: registry.open,
      }),
      openApi: () => openApiDocument(version),
      onError,
    }),
  )
  app.use(
    createNodeRoutes({
      membership: workers,
      isInternal,
      identify,
      authorize,
      epoch: () => epoch,
      onError,
    }),
  )
  app.use(
    createAuditRoutes({
      isInternal,
      async forget(queryId, by) {
        try {
          const outcome = await forgetQuery({ log, journal }, queryId, by)
          registry.remove(queryId)
          await projection.barrier(timeouts.ownWritesWaitMs)
          return outcome
        } catch (error) {
          throw error instanceof Unforgettable ? new HttpProblem(409, error.message) : error
        }
      },
      rebuilt: async (rebuilt) => void (await journal.record('ProjectionRebuilt', rebuilt)),
      onError,
    }),
  )
  app.use(
    createQueryRoutes({
      live,
      read,
      projection,
      isWriter: () => true,
      cancel: recordKills(
        (queryId, _by, message) =>
          service.cancel(
            queryId,
            message === undefined
              ? failureOf('USER_CANCELED', 'Query was canceled')
              : failureOf('ADMINISTRATIVELY_KILLED', `Query killed. Message: ${message}`),
            timeouts.deleteValidityWaitMs,
          ),
        (queryId) => {
          const query = live.get(queryId)?.query
          return query !== undefined && !isTerminal(query.kind)
        },
        journal,
      ),
      identify,
      authorize,
      baseUri: (request) => baseUri(request, false),
      clock,
      logId: () => logId,
      ownWritesWaitMs: timeouts.ownWritesWaitMs,
      onError,
    }),
  )
  const feed = createEventRoutes({ log, identify, authorize: allowAll, onError })
  app.use(feed.router)
  const taskRoutes = createTaskProxyRoutes({
    ...createRecentQueries(live, read, clock),
    forward: client.forward,
    bearer,
    onRefused,
    openReads: isLoopback(config.host),
    baseUri: (request) => baseUri(request, false),
    maxBodyBytes: limits.taskBodyBytes,
    onError,
  })
  app.use((request, response, next) => {
    if (!taskRoutes(request, response)) next()
  })
  app.get('/metrics', (_request, response, next) => {
    parts
      .meters()
      .text()
      .then(({ contentType, body }) => response.writeHead(200, { 'content-type': contentType }).end(body), next)
  })
  return { app, feed }
}

function countStates(nodes: readonly { readonly state: string }[]): {
  active: number
  suspect: number
  failed: number
} {
  const count = (state: string): number => nodes.filter((node) => node.state === state).length
  return { active: count('active'), suspect: count('suspect'), failed: count('failed') }
}

function userOf(request: IncomingMessage): string {
  return sessionFromHeaders(request, headerFamily(request.headers), 'UTC').user
}
