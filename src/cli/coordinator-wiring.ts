import type { RequestListener } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { createMetadataPort } from '../coordinator/dispatch/catalog-metadata.ts'
import { createDiskRoom } from '../coordinator/dispatch/disk-room.ts'
import { createResourceGroups } from '../coordinator/dispatch/resource-groups.ts'
import { createStatementMemory } from '../coordinator/dispatch/statement-memory.ts'
import { createPageMemories } from '../coordinator/query/page-memory.ts'
import type { ExecutionDeps } from '../coordinator/query/execution/execution-deps.ts'
import { beginExecution } from '../coordinator/query/execution/query-execution.ts'
import { recordedSubmission } from '../coordinator/query/query-secrets.ts'
import type { QueryExecution } from '../coordinator/query/query-handle.ts'
import { createWriteGuard } from '../coordinator/query/write-guard.ts'
import { createQueryRegistry } from '../coordinator/query/query-registry.ts'
import { isTerminal } from '../coordinator/query/state.ts'
import { createResultPageSource } from '../coordinator/query/result-page-source.ts'
import { createStatementService } from '../coordinator/query/statement-service.ts'
import { releaseLeftTasks } from '../coordinator/recovery/left-tasks.ts'
import { handOver, type Claimed } from '../coordinator/recovery/claim-epoch.ts'
import { createMembership, type Membership } from '../coordinator/nodes/membership.ts'
import { createTaskCleaner } from '../coordinator/scheduler/task-cleaner.ts'
import { createTaskHub } from '../coordinator/scheduler/task-hub.ts'
import { createWorkerClient } from '../coordinator/scheduler/worker-client.ts'
import { isBelow, type Position } from '../events/event-log.ts'
import type { ProjectionRunner } from '../events/projection-runner.ts'
import type { Announcement } from '../execution/api/task.ts'
import { browserPolicyOf } from '../protocol/edge/browser-policy.ts'
import { acceptRelayedBy } from '../protocol/relay/relayed-request.ts'
import { createRecentQueries } from '../protocol/task/recent-queries.ts'
import { createTaskProxyRoutes } from '../protocol/task/task-proxy-routes.ts'
import { diskSpaceOf } from '../execution/worker/disk-space.ts'
import { createStatementUris } from '../protocol/statement/next-uri.ts'
import { createStatementRoutes } from '../protocol/statement/statement-routes.ts'
import { baseUri } from '../protocol/edge/base-uri.ts'
import { lastKnownOf } from '../protocol/statement/waiting-answer.ts'
import type { LiveQueries, LiveQueryView } from '../protocol/query/live-queries.ts'
import { createRuntimeSources } from '../protocol/query/runtime-sources.ts'
import { createFetchMeter, createNodeEvents, observeCoordinator } from './coordinator-metrics.ts'
import { processMemoryLimit } from '../execution/engine/sandbox.ts'
import { createStatementSpans } from '../protocol/statement/statement-spans.ts'
import { sendLastSpans } from './last-spans.ts'
import { emitTaskCall } from './task-call-spans.ts'
import { emitClaim } from './link-spans.ts'
import { createQueryTelemetry } from '../coordinator/query/query-telemetry.ts'
import { createLateApp } from './late-app.ts'
import { refuseInternal } from './refuse-internal.ts'
import { createCoordinatorListener } from './coordinator-http.ts'
import { withinSpan } from './request-spans.ts'
import { restorePast } from './restored-counters.ts'
import { projected, takeOver } from './take-over.ts'
import { createEndedStreams } from '../coordinator/recovery/ended-streams.ts'
import { withStreams } from '../coordinator/recovery/with-streams.ts'
import type { StreamsOfLog } from '../coordinator/recovery/streams-of-log.ts'
import { createRestartMeter } from './restart-meter.ts'
import { readKnownWorkers } from '../readmodels/nodes/queries.ts'
import type { Rebuilt } from '../readmodels/rebuild.ts'
import { deriveKey } from '../security/cluster-secret.ts'
import { createRelayVerifier } from '../security/relay-credential.ts'
import { steadyWall, systemClock } from '../shared/clock.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { createQueryIds } from '../shared/ids.ts'
import { isLoopback } from '../shared/loopback.ts'
import { createSqlFrontEnd } from '../sql/create-front-end.ts'
import type { ChildLife } from './child-life.ts'
import { startAuditing } from './auditing.ts'
import { POOL_CONNECTIONS, type CoordinatorBase } from './coordinator-base.ts'
import { startSweeping } from './sweeping.ts'
import { parseTraceparent } from '../telemetry/trace-context.ts'
import { version } from './version.ts'

/** What a coordinator is at a time, the writer of the log or a follower of it. */
export interface CoordinatorPhase {
  /** No admission any more; open polls are answered; the epoch is handed over. */
  drain(): Promise<void>
  /** After the last answer: closes what is open. */
  stop(): Promise<void>
}

const clock = systemClock

/** A result of a statement without tables is kept in memory while it is made. */
const INLINE_BYTES = 16 * 1024 * 1024

/** A page whose worker was not reached for so long is lost. */
const PAGE_LOST_MS = 15_000

/** An ended query is answered from memory so long after its last request, then from the log. */
const ENDED_IN_MEMORY_MS = 10_000

/** So many wait there for read models that are away; of the others only their places in the log are kept. */
const ENDED_IN_MEMORY = 2_000
/** And so much of memory do they take, whoever may ask for them. */
const ENDED_BYTES = 64 * 1024 * 1024

/** Result pages at hand, of all queries: whatever is beside the log as well. */
const PAGE_MEMORY_BYTES = 64 * 1024 * 1024

/** How long a coordinator that stops waits until its successor may know of it. */
const HAND_OVER_MS = 1_000

/** Open polls wait a second at most. */
const RESIGN_MS = 1_500

const DISBELIEVED =
  'A worker refuses this coordinator for an epoch that the event log has never had: see quipu reset-epoch'

/** A statement that ends within this after its POST is one append. */
const FIRST_APPEND_HOLD_MS = 8

/**
 * Puts together what writes the log, whose epoch was just claimed.
 * @param rebuilt read models that were made anew before the claim
 * @param heard workers that announced themselves before
 * @param serve takes the listener as soon as there is one
 */
export async function wireWriter(
  life: ChildLife,
  base: CoordinatorBase,
  projection: ProjectionRunner,
  { epoch, writer }: Claimed,
  rebuilt: Rebuilt | undefined,
  claimMillis: number,
  heard: readonly Announcement[],
  serve: (listener: RequestListener) => void,
  closeListener: () => Promise<void>,
): Promise<CoordinatorPhase> {
  const { config, startedAt, nodeId, telemetry, dataDir, secret, bearer, catalogs, engine, engineUse } = base
  const { logTelemetry, pool, read, address, health } = base
  let streams: StreamsOfLog | undefined
  const endedStreams = createEndedStreams(base.log)
  const log = withStreams(base.log, () => streams, endedStreams)
  const { logger } = telemetry
  const { timeouts, limits } = config
  const statementSpans = createStatementSpans({
    spans: telemetry.spans,
    sampler: telemetry.sampler,
    clock,
    onUnsampled: () => telemetry.meters().count('spans', { result: 'unsampled' }),
  })
  const queryTelemetry = createQueryTelemetry({
    meters: telemetry.meters,
    spans: telemetry.spans,
    polls: statementSpans.polls,
    pollsUnrecorded: statementSpans.pollsUnrecorded,
    logger,
    now: clock.now,
    connectorOf: (catalog) => catalogs.get(catalog)?.connectorName ?? 'none',
    slowMs: timeouts.slowQueryMs,
  })
  const claimedAt = new Date(clock.now()).toISOString()
  life.claimed(writer)
  logger.bind({ epoch })
  logger.info('epoch.won', {}, 'Writes the event log from now on')
  telemetry.meters().count('epochClaims', { result: 'won' })
  emitClaim(telemetry.spans(), epoch, claimMillis)
  const { logId } = await log.tip()
  // Whose clients wait already has statements to take; those that need the engine wait for it by themselves.
  if (life.successor) base.engineStarted.catch(life.fail)
  else await base.engineStarted

  let membership: Membership | undefined
  const client = createWorkerClient({
    onOutcome: (url, error) => membership?.outcome(url, error),
    onPageFetched: createFetchMeter(telemetry.meters),
    onTaskCall: (call) => emitTaskCall(telemetry.spans(), call),
    epoch: () => epoch,
    logId,
    bearer,
    requestTimeoutMs: 5_000,
    taskBodyBytes: limits.taskBodyBytes,
    onStaleEpoch: endedByAnother,
  })
  const workers = createMembership({
    log,
    clock,
    limits: { beatMs: timeouts.workerBeatMs, failedMs: timeouts.workerFailedMs },
    writes: () => true,
    onEvent: createNodeEvents(telemetry.meters, logger),
  })
  membership = workers
  if (base.databaseThere) workers.remember(await readKnownWorkers(read))
  for (const announcement of heard) workers.announce(announcement)
  await workers.start()
  const hub = createTaskHub(client, workers, { lostAfterMs: timeouts.workerFailedMs, monotonicMs: clock.monotonicMs })
  const groups = createResourceGroups({ running: limits.runningQueries, queued: limits.queuedQueries })
  const ids = createQueryIds(epoch, clock.now)
  const cleaner = createTaskCleaner(client, workers, clock)
  const writeGuard = createWriteGuard()
  const memory = createStatementMemory({
    totalBytes: limits.openStatementBytes,
    userBytes: limits.userStatementBytes,
    addressBytes: limits.addressStatementBytes,
  })
  const pageMemories = createPageMemories(PAGE_MEMORY_BYTES)
  const execution: ExecutionDeps = {
    log,
    clock,
    frontEnd: createSqlFrontEnd(),
    catalogs,
    guard: writeGuard,
    metadata: createMetadataPort(catalogs),
    engine,
    groups,
    client,
    hub,
    workers,
    version,
    nodeId,
    selfUrl: address,
    maxAttempts: 4,
    workerWaitMs: timeouts.workerWaitMs,
    limits: {
      pageBytes: limits.pageBytes,
      inlineBytes: INLINE_BYTES,
      queryRunMs: timeouts.queryRunMs,
      planBytes: limits.taskBodyBytes,
      headerBytes: limits.headerBytes,
      answersKeptMs: timeouts.answersKeptMs,
    },
    cleaner,
    pageMemory: pageMemories.ofQuery,
    firstAppendHoldMs: FIRST_APPEND_HOLD_MS,
    onInternalError: (queryId, error) =>
      logger.error('query.internal_error', { queryId, err: error }, 'A query failed by a fault of ours'),
    withinSpan: (traceparent, run) =>
      withinSpan(telemetry.spans().enabled ? parseTraceparent(traceparent) : undefined, run),
    onUnrecorded: (queryId) =>
      life.fail(new ExitError(exitCodes.internal, `The end of query ${queryId} could not be recorded`)),
  }
  const isProjected = (position: Position): boolean => isBelow(position, projection.committed)
  const registry = createQueryRegistry(
    clock,
    { ...timeouts, inMemoryMs: ENDED_IN_MEMORY_MS, endedInMemory: ENDED_IN_MEMORY, endedBytes: ENDED_BYTES },
    ({ aggregate: { position } }) => {
      endedStreams.projected(isProjected)
      return position !== undefined && isProjected(position)
    },
    ({ queryId, aggregate: { firstPosition: first, position: last } }) => {
      // The log in Postgres finds a stream by itself.
      if (config.kafkaBrokers.length === 0) return true
      if (!first || !last || first.partition !== last.partition) return false
      endedStreams.add(queryId, { first, last })
      return true
    },
  )
  const live: LiveQueries = {
    get: (queryId) => viewOf(registry.get(queryId)),
    // Those that ended a while ago are in the tables: a busy registry has very many.
    list: () =>
      registry
        .list()
        .filter(({ aggregate: { state, position } }) => !isTerminal(state.kind) || !position || !isProjected(position))
        .map(viewOf)
        .filter((view) => view !== undefined),
  }
  base.useRuntime(
    createRuntimeSources({
      live,
      read,
      projection,
      membership: workers,
      clock,
      self: { nodeId, url: address, version },
      ownWritesWaitMs: timeouts.ownWritesWaitMs,
      onError: (error) => logger.warn('request.failed', { err: error }, 'The read models could not be read'),
    }),
  )
  base.keepPagesSince(() =>
    registry
      .list()
      .reduce(
        (oldest, { aggregate: { state } }) =>
          state.kind === 'NONE' ? oldest : Math.min(oldest, Date.parse(state.createdAt)),
        clock.now(),
      ),
  )
  let draining = false
  let resigned = false
  const disbelieved = new Set<string>()
  const diskRoom = createDiskRoom(limits.diskFloorBytes, () => diskSpaceOf(dataDir), clock)
  const service = createStatementService({
    clock,
    log,
    registry,
    memory,
    pages: createResultPageSource({ log, client, workers, clock, lostAfterMs: PAGE_LOST_MS }),
    start: (submission) => {
      const started = beginExecution(execution, ids(), submission)
      queryTelemetry.follow(started)
      return started
    },
    limits: {
      openQueries: limits.openQueries,
      postLogWaitMs: timeouts.postLogWaitMs,
      postPlanWaitMs: timeouts.postPlanWaitMs,
      answersKeptMs: timeouts.answersKeptMs,
    },
    accepting: () => !draining,
    epoch,
    hasDiskRoom: () => diskRoom.enough(),
  })
  const caughtUp = projected(log, projection)
  const auditing = startAuditing({
    log,
    caughtUp,
    clock,
    config,
    catalogs,
    digestKey: deriveKey(secret, 'catalog-digest'),
    read,
    rebuilt,
    logger,
  })
  const statements = createStatementRoutes({
    service,
    memory,
    uris: createStatementUris(deriveKey(secret, 'statement-token')),
    clock,
    spans: statementSpans,
    lastKnown: lastKnownOf(read),
    groupOf: (session) => groups.groupOf(session),
    defaultTimeZone: 'UTC',
    limits: {
      statementBytes: limits.statementBytes,
      longPollMs: timeouts.longPollMs,
      deleteValidityWaitMs: timeouts.deleteValidityWaitMs,
    },
    forwarded: false,
    onDelivered: queryTelemetry.firstRows,
    onRejected: (group, reason) => telemetry.meters().count('groupRejections', { group, reason }),
    onPolled: (result) => telemetry.meters().count('polls', { result }),
  })
  const onError = (error: unknown): void => logger.error('request.failed', { err: error }, 'A request failed')
  const tasks = createTaskProxyRoutes({
    ...createRecentQueries({
      live,
      read: base.clientRead,
      projection,
      clock,
      ownWritesWaitMs: timeouts.ownWritesWaitMs,
    }),
    forward: client.forward,
    bearer,
    onRefused: refuseInternal(auditing.refusals),
    openReads: isLoopback(config.host),
    baseUri: (request) => baseUri(request, false),
    maxBodyBytes: limits.taskBodyBytes,
    onError,
  })
  const app = createLateApp({
    clock,
    config,
    startedAt,
    nodeId,
    logId: () => logId,
    bearer,
    log,
    live,
    read: base.clientRead,
    projection,
    deadLetters: () => projection.deadLetters,
    workers,
    place: () => ({ writer: true, epoch }),
    openQueries: () => registry.open,
    cancel: service.cancel,
    remove(queryId, tasks) {
      cleaner.release(
        tasks.filter(({ stage }) => stage !== 0),
        0,
      )
      registry.remove(queryId)
    },
    tasks,
    meters: telemetry.meters,
    spans: telemetry.spans,
    restarts: life.restarts,
    health,
    ready: () => !draining,
    refusals: auditing.refusals,
    journal: auditing.journal,
    onError,
  })
  const listener = createCoordinatorListener({
    policy: browserPolicyOf(config),
    statements,
    isRelayed: acceptRelayedBy(createRelayVerifier(deriveKey(secret, 'relay'), epoch, steadyWall(clock))),
    rest: app.handle,
    meters: telemetry.meters,
    refusals: auditing.refusals,
    onError,
  })
  /** Another one writes: clients are told nothing but that they wait, until they come to it. */
  async function resign(reason: string): Promise<void> {
    if (resigned) return
    resigned = true
    logger.warn('epoch.lost', { epoch }, reason)
    draining = true
    for (const query of registry.list()) query.suspend()
    await Promise.race([closeListener(), sleep(RESIGN_MS)])
    life.fail(new ExitError(exitCodes.fenced, reason))
  }
  /** What a worker says of epochs is asked of the log: a worker that is wrong, or lies, ends no coordinator. */
  async function endedByAnother(nodeUrl: string): Promise<boolean> {
    const tip = await log.tip()
    if ((tip.at[0]?.state.epoch ?? 0) > epoch) {
      void resign('A worker has seen a higher epoch')
      return true
    }
    if (!disbelieved.has(nodeUrl)) logger.error('epoch.disbelieved', { worker: nodeUrl }, DISBELIEVED)
    disbelieved.add(nodeUrl)
    return false
  }
  void log.fenced.then((reason) => resign(reason.message))
  const reservation = groups.reserve()
  serve(listener)
  app.load()
  const recovered = takeOver({
    base,
    log,
    epoch,
    client,
    reservation,
    memory,
    onStreams(found) {
      streams = found
      void caughtUp.then(() => (streams = undefined))
    },
    endedSince: new Date(clock.now() - timeouts.answersKeptMs).toISOString(),
    isOwn: (queryId) => registry.get(queryId) !== undefined,
    resume(queryId, resumption) {
      const { created } = resumption.state
      const submission = { ...recordedSubmission(created), held: resumption.held }
      const resumed = beginExecution(execution, queryId, submission, resumption)
      registry.add(resumed)
      queryTelemetry.resumed(resumed)
    },
    onFailed: queryTelemetry.recovered,
  })
  const afterwards: (() => Promise<void> | void)[] = []
  recovered
    .then(() => {
      // What was decided before is under way: names may be checked again.
      writeGuard.open()
      afterwards.push(startSweeping({ catalogs, clock, registry, logger, active: () => !draining }).stop)
      const stopLeftTasks = releaseLeftTasks({
        client,
        workers,
        log,
        cleaner,
        held: (queryId) => registry.get(queryId)?.aggregate.intended,
        answersKeptMs: timeouts.answersKeptMs,
        onError: (error) => logger.warn('request.failed', { err: error }, 'A worker did not say which tasks it has'),
      })
      afterwards.push(stopLeftTasks)
    })
    .catch((error: unknown) => (resigned || draining ? undefined : life.fail(error)))
  void telemetry
    .load(
      (meters) => {
        meters.onScrape(createRestartMeter(life, meters))
        observeCoordinator(
          {
            epoch,
            ready: () => !draining,
            log,
            logTelemetry,
            projection,
            read,
            registry,
            workers,
            engine,
            engineKillBytes: processMemoryLimit(engineUse.memoryLimitBytes),
            groups,
            pool,
            poolLimit: POOL_CONNECTIONS,
          },
          meters,
        )
      },
      base.databaseThere
        ? (meters) => restorePast({ base, caughtUp: () => caughtUp, before: epoch }, meters)
        : undefined,
    )
    .then(async () => {
      if (life.deadWriter === undefined) return
      // The queries that ended last are the last that are projected.
      await caughtUp
      await sendLastSpans(log, read, telemetry.spans(), claimedAt)
    })
    .catch((error: unknown) => logger.error('telemetry.trouble', { err: error }, 'Telemetry could not be loaded'))
  logger.info('ready', { epoch, milliseconds: Math.round(clock.monotonicMs() - startedAt) }, 'Coordinator is ready')
  return {
    drain: async () => {
      draining = true
      // What runs is left to the next coordinator as it is; open polls are answered with its state.
      for (const query of registry.list()) query.suspend()
      await Promise.race([auditing.stop(), sleep(HAND_OVER_MS, undefined, { ref: false })])
      await handOver(auditing.journal, { epoch, writer }, HAND_OVER_MS)
      await app.close()
    },
    stop: async () => {
      registry.stop()
      for (const end of afterwards) await end()
      await workers.stop()
      await auditing.stop()
      hub.stop()
      cleaner.stop()
      client.close()
      await projection.stop()
      await base.stop()
    },
  }
}

function viewOf(execution: QueryExecution | undefined): LiveQueryView | undefined {
  if (!execution) return undefined
  const { state: query, sequence } = execution.aggregate
  if (query.kind === 'NONE') return undefined
  return { query, sequence, liveStats: execution.liveStats, queuedReason: execution.queuedReason }
}
