import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import express, { type RequestHandler } from 'express'
import type { Config } from '../config/load-config.ts'
import type { Membership } from '../coordinator/nodes/membership.ts'
import type { StatementService } from '../coordinator/query/statement-service.ts'
import { forgetQuery } from '../coordinator/system/forget-query.ts'
import { createAuditRoutes } from '../protocol/audit/audit-routes.ts'
import { HttpProblem } from '../protocol/edge/problem.ts'
import { createReadGate } from '../protocol/edge/read-gate.ts'
import { requestTarget } from '../protocol/edge/request-target.ts'
import { Unforgettable, type EventLog } from '../events/event-log.ts'
import type { ProjectionCondition, ProjectionLag, QueryRows } from '../events/projection.ts'
import type { ProjectionRunner } from '../events/projection-runner.ts'
import { createEventRoutes } from '../protocol/events/event-routes.ts'
import { createInfoRoutes, type ServerStatus } from '../protocol/info/info-routes.ts'
import { createNodeRoutes } from '../protocol/node/node-routes.ts'
import { openApiDocument } from '../protocol/info/open-api.ts'
import { createQueryRoutes } from '../protocol/query/query-routes.ts'
import { headerFamily, sessionFromHeaders } from '../protocol/statement/session-headers.ts'
import { isAuthorized } from '../protocol/task/internal-request.ts'
import type { TaskResource } from '../protocol/task/task-resource.ts'
import { baseUri } from '../protocol/edge/base-uri.ts'
import type { LiveQueries } from '../protocol/query/live-queries.ts'
import { recordDenials, recordKills, type Cancel } from '../coordinator/system/recorded-rights.ts'
import { readQuery } from '../coordinator/query/read-query.ts'
import { isTerminal, type TaskRecord } from '../coordinator/query/state.ts'
import type { RefusalLog } from '../coordinator/system/refusal-log.ts'
import type { SystemJournal } from '../coordinator/system/system-journal.ts'
import { remoteAddressOf } from '../protocol/relay/relayed-request.ts'
import { allowAll } from '../security/authorization.ts'
import type { Clock } from '../shared/clock.ts'
import type { QueryId } from '../shared/ids.ts'
import { failureOf } from '../shared/engine-error.ts'
import type { RestartCount } from '../supervisor/messages.ts'
import type { Meters } from '../telemetry/meters.ts'
import type { SpanSink } from '../telemetry/span.ts'
import { createUiRoutes } from '../ui/ui-routes.ts'
import type { HttpParts } from './coordinator-http.ts'
import type { DependencyHealth } from './dependency-health.ts'
import { refuseInternal } from './refuse-internal.ts'
import { traceReads } from './request-spans.ts'
import { version } from './version.ts'

/** Files of the page, seen from `dist/cli`. */
const UI_FILES = fileURLToPath(new URL('../../etc/ui', import.meta.url))

/** The writer has an answer of its own after a second. */
const LAG_WAIT_MS = 1500

export interface CoordinatorAppParts {
  readonly clock: Clock
  readonly config: Config
  /** Monotonic time at which the process began, milliseconds. */
  readonly startedAt: number
  readonly nodeId: string
  readonly logId: () => string
  readonly bearer: string
  readonly log: EventLog
  readonly live: LiveQueries
  readonly read: QueryRows
  /** Its condition is known where it runs. */
  readonly projection: Pick<ProjectionRunner, 'barrier' | 'lag'> & Partial<Pick<ProjectionRunner, 'condition'>>
  readonly deadLetters: () => number
  readonly workers: Membership
  /** Does this process write the log, and the epoch it knows. */
  readonly place: () => { readonly writer: boolean; readonly epoch: number }
  readonly openQueries: () => number
  /** Ends a query; of the writer alone. */
  readonly cancel: StatementService['cancel']
  /** Takes a forgotten query out of memory, and its tasks with their pages off their workers. */
  readonly remove: (queryId: string, tasks: readonly TaskRecord[]) => void
  /** The task resource; of the writer alone. */
  readonly tasks: TaskResource
  readonly meters: () => Meters
  readonly spans: () => SpanSink
  readonly restarts: () => readonly RestartCount[]
  readonly health: Pick<DependencyHealth, 'log' | 'database'>
  /** Does it take statements? */
  readonly ready: () => boolean
  readonly refusals: RefusalLog
  /** Of the writer alone: who ended which query. */
  readonly journal: SystemJournal | undefined
  readonly onError: (error: unknown) => void
}

/** Every resource but statements: nothing of it lies on the way of a small query. */
export function createCoordinatorApp(parts: CoordinatorAppParts): {
  readonly app: HttpParts['rest']
  readonly feed: ReturnType<typeof createEventRoutes>
} {
  const { clock, config, startedAt, nodeId, logId, bearer, log, live, read, projection } = parts
  const { workers, place, refusals, journal, onError } = parts
  const { timeouts } = config
  const identify = (request: IncomingMessage) => {
    const remoteAddress = remoteAddressOf(request)
    return { user: userOf(request), ...(remoteAddress === undefined ? {} : { remoteAddress }) }
  }
  const authorize = recordDenials(allowAll, refusals)
  const onRefused = refuseInternal(refusals)
  const isInternal = (request: IncomingMessage): boolean => {
    const internal = isAuthorized(request, bearer)
    if (!internal) onRefused(request)
    return internal
  }
  const cancel: Cancel = (queryId, _by, message) =>
    parts.cancel(
      queryId,
      message === undefined
        ? failureOf('USER_CANCELED', 'Query was canceled')
        : failureOf('ADMINISTRATIVELY_KILLED', `Query killed. Message: ${message}`),
      timeouts.deleteValidityWaitMs,
    )
  const isOpen = (queryId: QueryId): boolean => {
    const query = live.get(queryId)?.query
    return query !== undefined && !isTerminal(query.kind)
  }
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
      place,
      status: async () => ({
        log: parts.health.log,
        database: parts.health.database,
        ...(await lagOf(projection)),
        ...conditionOf(projection.condition),
        deadLetters: parts.deadLetters(),
        restarts: parts
          .restarts()
          .filter((one) => one.process === 'coordinator')
          .reduce((sum, one) => sum + one.count, 0),
        workers: countStates(workers.nodes()),
        openQueries: parts.openQueries(),
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
      epoch: () => place().epoch,
      onError,
    }),
  )
  if (journal)
    app.use(
      createAuditRoutes({
        isInternal,
        async forget(queryId, by) {
          try {
            // Afterwards nobody knows which they were.
            const { state } = await readQuery(log, queryId)
            const outcome = await forgetQuery({ log, journal }, queryId, by)
            if (outcome.kind === 'forgotten')
              parts.remove(queryId, state.kind === 'NONE' ? [] : [...state.tasks.values()])
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
  app.use(boundReads((request) => isAuthorized(request, bearer), timeouts.historyReadMs))
  app.use(traceReads(parts.spans))
  app.use(
    createQueryRoutes({
      live,
      read,
      projection,
      isWriter: () => place().writer,
      cancel: journal ? recordKills(cancel, isOpen, journal) : cancel,
      identify,
      authorize,
      baseUri: (request) => baseUri(request, false),
      clock,
      logId,
      ownWritesWaitMs: timeouts.ownWritesWaitMs,
      onError,
    }),
  )
  app.use(createUiRoutes(UI_FILES, onError))
  const feed = createEventRoutes({
    log,
    identify,
    authorize: allowAll,
    maxReaders: config.limits.feeds,
    maxReadersPerAddress: config.limits.feedsPerAddress,
    maxReplays: config.limits.replays,
    onError,
  })
  app.use(feed.router)
  app.use((request, response, next) => {
    if (!parts.tasks(request, response)) next()
  })
  app.get('/metrics', (_request, response, next) => {
    parts
      .meters()
      .text()
      .then(({ contentType, body }) => response.writeHead(200, { 'content-type': contentType }).end(body), next)
  })
  return { app, feed }
}

/** Reads of one query or one page of the list. */
const READS = { running: 6, runningPerAddress: 4, waiting: 512, waitingPerAddress: 128 }
/** Lists of all tasks, made of all events of all queries of the last minutes, for as long as their readers take. */
const LISTS = { running: 2, runningPerAddress: 2, waiting: 32, waitingPerAddress: 8 }

/** @param isInternal carries the cluster's key: its processes wait for nobody */
function boundReads(isInternal: (request: IncomingMessage) => boolean, lingerMs: number): RequestHandler {
  const [reads, lists] = [createReadGate({ ...READS, lingerMs }), createReadGate({ ...LISTS, lingerMs })]
  return (request, response, next) => {
    const { path } = requestTarget(request)
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (!isRead || !/^\/v1\/(query|task)(\/|$)/.test(path) || isInternal(request)) return next()
    const gate = /^\/v1\/task\/?$/.test(path) ? lists : reads
    gate.enter(request, response).then((entered) => {
      if (entered) next()
    }, next)
  }
}

/** @returns nothing where log or read models do not say soon: what is down is told without */
async function lagOf(projection: Pick<ProjectionRunner, 'lag'>): Promise<{ readonly lag?: ProjectionLag }> {
  const late = new AbortController()
  const asked = projection.lag().then(
    (lag) => ({ lag }),
    () => ({}),
  )
  const answer = await Promise.race([asked, sleep(LAG_WAIT_MS, {}, { signal: late.signal }).catch(() => ({}))])
  late.abort()
  return answer
}

function conditionOf(condition: ProjectionCondition | undefined): Pick<ServerStatus, 'projection'> {
  if (!condition) return {}
  const { kind: state, ...more } = condition
  return { projection: { state, ...more } }
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
