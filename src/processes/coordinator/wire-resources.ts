import { ROOT_STAGE } from '../../shared/ids.ts'
import type { Acts } from '../../coordinator/acts/acts.ts'
import type { PrepareStatementDeps } from '../../coordinator/query/results/prepare-statement.ts'
import type { RequestListener } from 'node:http'
import type { ClusterControl } from '../../coordinator/clusters/cluster-directory.ts'
import type { RefusalLog } from '../../coordinator/system/refusal-log.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import { createCheckResults, createResultsGuard } from '../../protocol/access/results-guard.ts'
import { baseUri } from '../../protocol/edge/base-uri.ts'
import { browserPolicyOf } from '../../protocol/edge/browser-policy.ts'
import type { LiveQueries } from '../../protocol/query/live-queries.ts'
import { acceptRelayedBy } from '../../protocol/relay/relayed-request.ts'
import { createStatementUris } from '../../protocol/statement/next-uri.ts'
import { createStatementRoutes, type StatementRoutes } from '../../protocol/statement/statement-routes.ts'
import { lastKnownOf } from '../../protocol/statement/waiting-answer.ts'
import { createRecentQueries } from '../../protocol/task/recent-queries.ts'
import { refuseInternal } from '../../protocol/task/refuse-internal.ts'
import { createTaskProxyRoutes } from '../../protocol/task/task-proxy-routes.ts'
import type { TaskResource } from '../../protocol/task/task-resource.ts'
import { deriveKey } from '../../security/cluster-secret.ts'
import { createRelayVerifier } from '../../security/relay-credential.ts'
import { steadyWall, systemClock as clock } from '../../shared/clock.ts'
import { isLoopback } from '../../shared/loopback.ts'
import type { QueryRegistry } from '../../coordinator/query/registry/query-registry.ts'
import type { Auditing } from '../record/auditing.ts'
import type { Erasures } from '../record/erasures.ts'
import type { AppBase, CoordinatorRole, WriterDuties } from './coordinator-app.ts'
import { createCoordinatorListener } from './coordinator-listener.ts'
import { createLazyApp, type LazyApp } from './lazy-app.ts'
import type { QueryHistory } from './query-history.ts'
import type { AccessEntry } from './wire-access.ts'
import type { CoordinatorBase } from './wire-base.ts'
import type { WiredQueries } from './wire-queries.ts'
import type { WiredWorkers } from './wire-workers.ts'

export interface ResourcesDeps {
  readonly base: CoordinatorBase
  readonly appBase: AppBase
  readonly epoch: number
  readonly ready: () => boolean
  readonly history: QueryHistory
  /** Removes forgotten queries from the files of the archive. */
  readonly forgetArchived: () => void
  readonly erasures: Erasures
  readonly live: LiveQueries
  readonly projection: ProjectionRunner
  readonly registry: QueryRegistry
  readonly workers: WiredWorkers
  readonly queries: WiredQueries
  readonly acts: Acts
  /** Takes a forgotten query out of memory, and its tasks with their pages off the workers. */
  readonly remove: WriterDuties['remove']
  /** Finds the group of a statement and the rules for its session. */
  readonly prepare: Pick<PrepareStatementDeps, 'groupOf' | 'propertyRules'>
  readonly clusters: ClusterControl
  readonly auditing: Auditing
}

/** The HTTP resources of the writer: statements at once, all others once their libraries are loaded. */
export interface WiredResources {
  readonly listener: RequestListener
  readonly app: LazyApp
}

export function wireResources(deps: ResourcesDeps): WiredResources {
  const { base, appBase, epoch, auditing } = deps
  const access = base.access.entry(auditing.refusals)
  const app = createLazyApp({ base: appBase, role: writerRole(deps), access })
  const relay = createRelayVerifier(deriveKey(base.secret, 'relay'), epoch, steadyWall(clock))
  return {
    app,
    listener: createCoordinatorListener({
      policy: browserPolicyOf(base.config),
      statements: statementsOf(deps, access),
      access,
      isRelayed: acceptRelayedBy(relay),
      rest: app.handle,
      meters: appBase.meters,
      refusals: auditing.refusals,
      onError: appBase.onError,
    }),
  }
}

/** Removes a forgotten query from memory, and its tasks from their workers. */
export function removerOf({
  registry,
  cleaner,
}: {
  readonly registry: Pick<QueryRegistry, 'remove'>
  readonly cleaner: WiredWorkers['cleaner']
}): WriterDuties['remove'] {
  return (queryId, tasks) => {
    cleaner.release(
      tasks.filter(({ stage }) => stage !== ROOT_STAGE),
      0,
    )
    registry.remove(queryId)
  }
}

function writerRole(deps: ResourcesDeps): CoordinatorRole {
  const { base, epoch, projection, registry, workers, queries, auditing } = deps
  const { client } = workers
  return {
    history: deps.history,
    writerState: () => ({ writer: true, epoch }),
    ready: deps.ready,
    live: deps.live,
    projection,
    workers: workers.workers,
    refusals: auditing.refusals,
    writing: {
      forgetter: base.log,
      journal: auditing.journal,
      takeReport: (report) => base.access.takeReport(report, auditing.refusals),
      introduceKey: auditing.introduceKey,
      cancel: queries.service.cancel,
      acts: deps.acts,
      groups: queries.groups,
      clusters: deps.clusters,
      isLocalCatalog: (name) => base.localCatalogs.names().includes(name),
      remove: deps.remove,
      forgetArchived: deps.forgetArchived,
      erasures: deps.erasures,
      shutDown: client.shutDown,
      tasks: tasksOf(deps, client.forward, auditing.refusals),
      deadLetters: () => projection.deadLetters,
      openQueries: () => registry.open,
    },
  }
}

function statementsOf(
  { base, appBase, queries, prepare }: ResourcesDeps,
  { actsAs, authorize }: AccessEntry,
): StatementRoutes {
  const { config, secret, pollRead } = base
  const { timeouts, limits } = config
  const { service, memory, acceptance, spans, telemetry } = queries
  const checkResults = createCheckResults(base.access.configured, actsAs, authorize)
  return createStatementRoutes({
    service,
    memory,
    acceptance,
    texts: queries.texts,
    ownerOf: base.access.ownerOf,
    uris: createStatementUris(secret),
    clock,
    spans,
    lastKnown: lastKnownOf(pollRead),
    actsAs,
    guard: createResultsGuard(base.access.configured, checkResults, service.ownerOf),
    checkResults,
    ...prepare,
    defaultTimeZone: 'UTC',
    limits: {
      statementBytes: limits.statementBytes,
      longPollMs: timeouts.longPollMs,
      deleteValidityWaitMs: timeouts.deleteValidityWaitMs,
    },
    onDelivered: telemetry.firstRows,
    onRejected: (group, reason) =>
      appBase.meters().count('groupRejections', { group: base.access.groupLabel(group), reason }),
    onPolled: (result) => appBase.meters().count('polls', { result }),
  })
}

function tasksOf(
  { base, appBase, live, projection }: ResourcesDeps,
  forward: WiredWorkers['client']['forward'],
  refusals: RefusalLog,
): TaskResource {
  const { config, bearer, clientRead } = base
  return createTaskProxyRoutes({
    ...createRecentQueries({
      live,
      read: clientRead,
      stored: appBase.stored,
      projection,
      clock,
      ownWritesWaitMs: config.timeouts.ownWritesWaitMs,
    }),
    forward,
    bearer,
    onRefused: refuseInternal(refusals),
    openReads: isLoopback(config.host) && !base.access.configured,
    baseUri: baseUri,
    maxBodyBytes: config.limits.taskBodyBytes,
    onError: appBase.onError,
  })
}
