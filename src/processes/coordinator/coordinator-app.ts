import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import express, { type Router } from 'express'
import type { Config } from '../../config/load-config.ts'
import type { Acts } from '../../coordinator/acts/acts.ts'
import type { ClusterControl } from '../../coordinator/clusters/cluster-directory.ts'
import type { ResourceGroups } from '../../coordinator/dispatch/resource-groups.ts'
import type { Membership } from '../../coordinator/nodes/membership.ts'
import type { TaskRecord } from '../../coordinator/query/stream/state.ts'
import type { StatementService } from '../../coordinator/query/results/statement-service.ts'
import { forgetWholeQuery, type Administrator, type ForgetOutcome } from '../../coordinator/system/forget-query.ts'
import type { RefusalLog } from '../../coordinator/system/refusal-log.ts'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import {
  Unforgettable,
  type DataForgetter,
  type LogFeed,
  type LogEnd,
  type StreamReader,
} from '../../events/event-log.ts'
import type { QueryRows } from '../../events/projection.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import { setCaller } from '../../protocol/access/caller.ts'
import { createFiguresGuard } from '../../protocol/access/system-information.ts'
import { createAuditRecordRoutes } from '../../protocol/audit/audit-record-routes.ts'
import { createActRoutes } from '../../protocol/acts/act-routes.ts'
import { createAuditRoutes } from '../../protocol/audit/audit-routes.ts'
import { baseUri } from '../../protocol/edge/base-uri.ts'
import { HttpProblem } from '../../protocol/edge/problem.ts'
import { requestTarget } from '../../protocol/edge/request-target.ts'
import { traceReads } from '../../protocol/edge/request-spans.ts'
import { createClusterRoutes } from '../../protocol/clusters/cluster-routes.ts'
import { createErasureRoutes } from '../../protocol/erasure/erasure-routes.ts'
import { createEventRoutes } from '../../protocol/events/event-routes.ts'
import { createGroupRoutes } from '../../protocol/groups/group-routes.ts'
import { createInfoRoutes } from '../../protocol/info/info-routes.ts'
import { openApiDocument } from '../../protocol/info/open-api.ts'
import { createLogInRoutes } from '../../protocol/log-in/log-in-routes.ts'
import { createDrainRoutes } from '../../protocol/node/drain-routes.ts'
import { createNodeRoutes } from '../../protocol/node/node-routes.ts'
import { boundReads } from '../../protocol/query/bound-reads.ts'
import type { LiveQueries } from '../../protocol/query/live-queries.ts'
import type { Prices } from '../../readmodels/history/prices.ts'
import type { StoredQueries } from '../../readmodels/queries/stored-queries.ts'
import { createQueryRoutes } from '../../protocol/query/query-routes.ts'
import { createReplayRoutes } from '../../protocol/replay/replay-routes.ts'
import { createSightingRoutes, type SightingRoutesDeps } from '../../protocol/relay/sighting-routes.ts'
import { isAuthorized } from '../../protocol/task/internal-request.ts'
import { refuseInternal } from '../../protocol/task/refuse-internal.ts'
import type { TaskResource } from '../../protocol/task/task-resource.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import type { Clock } from '../../shared/clock.ts'
import type { LimitOwnerOf } from '../../shared/limit-owner.ts'
import type { QueryId, NodeId } from '../../shared/ids.ts'
import { consoleFolder, shippedFiles } from '../../shared/shipped-files.ts'
import { version } from '../../shared/version.ts'
import type { RestartCount } from '../../supervisor/messages.ts'
import type { Meters } from '../../telemetry/meters.ts'
import type { SpanSink } from '../../telemetry/span.ts'
import { createUiRoutes } from '../../ui/ui-routes.ts'
import type { HttpDeps } from './coordinator-listener.ts'
import type { DependencyHealth } from '../health/dependency-health.ts'
import { statusOf } from '../health/server-status.ts'
import type { Erasures } from '../record/erasures.ts'
import { erasureAnswers } from './erasure-answers.ts'
import type { AccessEntry } from './wire-access.ts'

/** The dependencies of HTTP resources that any coordinator has: see `appBaseOf`. */
export interface AppBase {
  readonly clock: Clock
  readonly config: Config
  /** Monotonic time at which the process began, milliseconds. */
  readonly startedAt: number
  readonly nodeId: NodeId
  readonly logId: string
  /** Queries in the read models, and queries that were moved to archive files. */
  readonly stored: StoredQueries
  /** The prices in force; undefined without a file of prices. */
  readonly prices: (() => Prices) | undefined
  readonly bearer: string
  /** Key of the ids of replays. */
  readonly replayKey: Buffer
  /** Seals previews of acts. */
  readonly actKey: Buffer
  readonly read: QueryRows
  readonly meters: () => Meters
  readonly spans: () => SpanSink
  readonly restarts: () => readonly RestartCount[]
  readonly health: Pick<DependencyHealth, 'log' | 'database'>
  readonly onError: (error: unknown) => void
}

/** The dependencies that differ between a coordinator that writes the log and a coordinator that follows it. */
export interface CoordinatorRole {
  /** Reads streams of queries, wherever they are stored, and new events. */
  readonly history: StreamReader & LogEnd & LogFeed
  /** Whether this process writes the log, and the epoch that it knows. */
  readonly writerState: () => { readonly writer: boolean; readonly epoch: number }
  /** Whether the coordinator accepts statements. */
  readonly ready: () => boolean
  readonly live: LiveQueries
  /** The condition is known only where the projection runs. */
  readonly projection: Pick<ProjectionRunner, 'barrier' | 'lag'> & Partial<Pick<ProjectionRunner, 'condition'>>
  readonly workers: Membership
  readonly refusals: RefusalLog
  /** Present only for the writer. */
  readonly writing: WriterDuties | undefined
}

/** The dependencies that only the writer has. */
export interface WriterDuties {
  readonly forgetter: DataForgetter
  /** Records what was forgotten, and rebuilds of read models. */
  readonly journal: SystemJournal
  /** Takes reports of what following coordinators have seen. */
  readonly takeReport: SightingRoutesDeps['take']
  /** Takes the anchor key of a following coordinator. */
  readonly introduceKey: SightingRoutesDeps['introduceKey']
  readonly cancel: StatementService['cancel']
  readonly acts: Acts
  readonly groups: Pick<ResourceGroups, 'stateOf' | 'roots'>
  readonly clusters: Pick<ClusterControl, 'list' | 'byName' | 'ask'>
  /** Whether this server has a catalog of this name. */
  readonly isLocalCatalog: (name: string) => boolean
  /** Takes a forgotten query out of memory, and its tasks with their pages off the workers. */
  readonly remove: (queryId: QueryId, tasks: readonly TaskRecord[]) => void
  /** Removes forgotten queries from the files of the archive. */
  readonly forgetArchived: () => void
  readonly erasures: Erasures
  readonly tasks: TaskResource
  /** Asks a worker to shut down after its current work. */
  readonly shutDown: (workerUrl: string) => Promise<void>
  readonly deadLetters: () => number
  readonly openQueries: () => number
}

export interface CoordinatorAppDeps {
  readonly base: AppBase
  readonly role: CoordinatorRole
  readonly access: Pick<AccessEntry, 'actsAs' | 'authorize' | 'callerAt' | 'logIns' | 'ownerOf'>
}

/** The client of a request and its rights, for all resources alike. */
interface Asking {
  readonly identify: (request: IncomingMessage) => Identity
  readonly authorize: Authorize
  /** The owner whose limits a client's actions count against. */
  readonly ownerOf: LimitOwnerOf
  /** Whether the request carries the cluster's key. A request without it is reported. */
  readonly isInternal: (request: IncomingMessage) => boolean
}

/** Creates all resources except statements. Small queries use none of this code. */
export function createCoordinatorApp(deps: CoordinatorAppDeps): {
  readonly app: HttpDeps['rest']
  readonly feed: ReturnType<typeof createEventRoutes>
} {
  const { base, role } = deps
  const asking = askingOf(deps)
  const app = express()
  // The same settings as in `resourceRouter`.
  app.enable('case sensitive routing')
  app.disable('x-powered-by')
  app.disable('etag')
  app.use(createFiguresGuard(asking))
  app.use(infoRoutes(deps))
  const { logIns } = deps.access
  if (logIns) app.use(createLogInRoutes({ ...logIns, onError: base.onError }))
  app.use(nodeRoutes(deps, asking))
  if (role.writing) app.use(drainRoutes(deps, role.writing, asking))
  if (role.writing) app.use(groupRoutes(deps, role.writing, asking))
  if (role.writing) app.use(clusterRoutes(deps, role.writing, asking))
  if (role.writing) app.use(auditRoutes(deps, role.writing, asking))
  app.use(auditRecordRoutes(deps, asking))
  if (role.writing) app.use(replayRoutes(deps, role.writing, asking))
  if (role.writing) app.use(erasureRoutes(deps, role.writing, asking))
  if (role.writing) app.use(sightingRoutes(deps, role.writing))
  app.use(boundReads((request) => isAuthorized(request, base.bearer), base.config.timeouts.historyReadMs))
  app.use(traceReads(base.spans))
  app.use(queryRoutes(deps, asking))
  if (role.writing) app.use(actRoutes(deps, role.writing, asking))
  app.use(createUiRoutes({ console: consoleFolder, logIn: join(shippedFiles, 'ui') }, base.onError))
  const feed = eventRoutes(deps, asking)
  app.use(feed.router)
  app.use((request, response, next) => {
    if (!role.writing?.tasks(request, response)) next()
  })
  app.get('/metrics', (_request, response, next) => {
    base
      .meters()
      .text()
      .then(({ contentType, body }) => response.writeHead(200, { 'content-type': contentType }).end(body), next)
  })
  return { app, feed }
}

function askingOf({ base, role, access }: CoordinatorAppDeps): Asking {
  const onRefused = refuseInternal(role.refusals)
  return {
    identify: access.actsAs,
    authorize: access.authorize,
    ownerOf: access.ownerOf,
    isInternal(request) {
      const internal = isAuthorized(request, base.bearer)
      if (!internal) onRefused(request)
      return internal
    },
  }
}

function infoRoutes({ base, role }: CoordinatorAppDeps): Router {
  const { health, restarts } = base
  const { projection, workers, writing } = role
  return createInfoRoutes({
    clock: base.clock,
    startedAtMs: base.startedAt,
    nodeId: base.nodeId,
    version,
    environment: base.config.environment,
    ready: role.ready,
    writerState: role.writerState,
    status: () => statusOf({ health, restarts, projection, workers, writing }),
    openApi: () => openApiDocument(version),
    onError: base.onError,
  })
}

function nodeRoutes({ base, role }: CoordinatorAppDeps, { isInternal, identify, authorize }: Asking): Router {
  const journal = role.writing?.journal
  return createNodeRoutes({
    membership: role.workers,
    isInternal,
    identify,
    authorize,
    epoch: () => role.writerState().epoch,
    live: role.live,
    recordForgotten: journal && (async (report) => void (await journal.record('EpochsForgotten', report))),
    onError: base.onError,
  })
}

function drainRoutes({ base, role }: CoordinatorAppDeps, duties: WriterDuties, asking: Asking): Router {
  const { journal, shutDown } = duties
  return createDrainRoutes({
    ...asking,
    membership: role.workers,
    record: async (asked) => void (await journal.record('NodeDrainAsked', asked)),
    shutDown,
    onError: base.onError,
  })
}

function groupRoutes({ base, role }: CoordinatorAppDeps, { groups }: WriterDuties, asking: Asking): Router {
  return createGroupRoutes({ groups, live: role.live, ...asking, clock: base.clock, onError: base.onError })
}

function clusterRoutes({ base, role }: CoordinatorAppDeps, duties: WriterDuties, asking: Asking): Router {
  const { clusters, isLocalCatalog } = duties
  const { postLogWaitMs: logWaitMs, ownWritesWaitMs } = base.config.timeouts
  return createClusterRoutes({
    ...asking,
    clusters,
    isLocalCatalog,
    read: base.read,
    projection: role.projection,
    logId: () => base.logId,
    baseUri,
    logWaitMs,
    ownWritesWaitMs,
    onError: base.onError,
  })
}

function auditRoutes({ base, role }: CoordinatorAppDeps, duties: WriterDuties, asking: Asking): Router {
  const { journal, forgetter: log, remove, forgetArchived } = duties
  async function forget(queryId: QueryId, administrator: Administrator): Promise<ForgetOutcome> {
    try {
      const deps = { log, journal, history: role.history, remove }
      const outcome = await forgetWholeQuery(deps, queryId, administrator)
      await role.projection.barrier(base.config.timeouts.ownWritesWaitMs)
      forgetArchived()
      return outcome
    } catch (error) {
      throw error instanceof Unforgettable ? new HttpProblem(409, error.message) : error
    }
  }
  return createAuditRoutes({
    ...asking,
    forget,
    rebuilt: async (rebuilt) => void (await journal.record('ProjectionRebuilt', rebuilt)),
    verified: async (report) => void (await journal.record('LogVerified', report)),
    onError: base.onError,
  })
}

function auditRecordRoutes({ base, role }: CoordinatorAppDeps, { identify, authorize }: Asking): Router {
  return createAuditRecordRoutes({
    read: base.read,
    projection: role.projection,
    ownWritesWaitMs: base.config.timeouts.ownWritesWaitMs,
    logId: () => base.logId,
    identify,
    authorize,
    onError: base.onError,
  })
}

function erasureRoutes({ base }: CoordinatorAppDeps, { erasures }: WriterDuties, asking: Asking): Router {
  return createErasureRoutes({ ...asking, ...erasureAnswers(erasures), onError: base.onError })
}

function replayRoutes({ base }: CoordinatorAppDeps, { journal }: WriterDuties, asking: Asking): Router {
  return createReplayRoutes({ ...asking, journal, key: base.replayKey, clock: base.clock, onError: base.onError })
}

function sightingRoutes({ base, role }: CoordinatorAppDeps, { takeReport: take, introduceKey }: WriterDuties): Router {
  return createSightingRoutes({ take, introduceKey, onRefused: refuseInternal(role.refusals), onError: base.onError })
}

function queryRoutes({ base, role }: CoordinatorAppDeps, { identify, authorize }: Asking): Router {
  const { timeouts } = base.config
  return createQueryRoutes({
    live: role.live,
    read: base.read,
    stored: base.stored,
    projection: role.projection,
    isWriter: () => role.writerState().writer,
    // Coordinators that do not write pass the request on.
    end: async (queryId, ending) =>
      role.writing?.cancel(queryId, ending, timeouts.deleteValidityWaitMs) ?? ('waiting' as const),
    identify,
    authorize,
    baseUri: baseUri,
    clock: base.clock,
    logId: () => base.logId,
    prices: base.prices,
    ownWritesWaitMs: timeouts.ownWritesWaitMs,
    onError: base.onError,
  })
}

function actRoutes({ base, role }: CoordinatorAppDeps, { acts }: WriterDuties, asking: Asking): Router {
  const { postLogWaitMs: logWaitMs, deleteValidityWaitMs: stopWaitMs, ownWritesWaitMs } = base.config.timeouts
  return createActRoutes({
    ...asking,
    acts,
    live: role.live,
    read: base.read,
    stored: base.stored,
    projection: role.projection,
    isWriter: () => role.writerState().writer,
    key: base.actKey,
    mostQueries: base.config.limits.actQueries,
    clock: base.clock,
    logWaitMs,
    stopWaitMs,
    ownWritesWaitMs,
    onError: base.onError,
  })
}

function eventRoutes(
  { base, role, access }: CoordinatorAppDeps,
  { identify, authorize, ownerOf }: Asking,
): ReturnType<typeof createEventRoutes> {
  const { feeds, feedsPerAddress, replays } = base.config.limits
  return createEventRoutes({
    log: role.history,
    identify,
    async identifyAgain(request) {
      setCaller(request, await access.callerAt(request, requestTarget(request).path))
      return identify(request)
    },
    authorize,
    maxReaders: feeds,
    maxReadersOfOne: feedsPerAddress,
    ownerOf,
    maxReplays: replays,
    onError: base.onError,
  })
}
