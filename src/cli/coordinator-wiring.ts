import type { RequestListener } from 'node:http'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { allowedDirectories, loadCatalogs } from '../connectors/spi/catalog-files.ts'
import { withSystemCatalog, type RuntimeSources } from '../connectors/system/system-connector.ts'
import { createMetadataPort } from '../coordinator/dispatch/catalog-metadata.ts'
import { createDiskRoom } from '../coordinator/dispatch/disk-room.ts'
import { createResourceGroups } from '../coordinator/dispatch/resource-groups.ts'
import { startQueryExecution, type ExecutionDeps } from '../coordinator/query/query-execution.ts'
import type { QueryExecution } from '../coordinator/query/query-handle.ts'
import { createWriteGuard } from '../coordinator/query/write-guard.ts'
import { createQueryRegistry } from '../coordinator/query/query-registry.ts'
import { isTerminal } from '../coordinator/query/state.ts'
import { createResultPageSource } from '../coordinator/query/result-page-source.ts'
import { createStatementService } from '../coordinator/query/statement-service.ts'
import { claimEpoch } from '../coordinator/recovery/claim-epoch.ts'
import { releaseLeftTasks } from '../coordinator/recovery/left-tasks.ts'
import { recoverQueries } from '../coordinator/recovery/recover-queries.ts'
import { createMembership, type Membership } from '../coordinator/nodes/membership.ts'
import { createTaskCleaner } from '../coordinator/scheduler/task-cleaner.ts'
import { createTaskHub } from '../coordinator/scheduler/task-hub.ts'
import { createWorkerClient } from '../coordinator/scheduler/worker-client.ts'
import { isBelow, MisconfiguredLog, type EventLog } from '../events/event-log.ts'
import { migrate, MigrationError } from '../events/postgres/migrate.ts'
import { createProjectionRunner } from '../events/projection-runner.ts'
import { diskSpaceOf } from '../execution/worker/disk-space.ts'
import { createEnginePool } from '../execution/engine/engine-pool.ts'
import { createStatementUris } from '../protocol/statement/next-uri.ts'
import { createStatementRoutes } from '../protocol/statement/statement-routes.ts'
import type { LiveQueries, LiveQueryView } from '../protocol/query/live-queries.ts'
import { createRuntimeSources } from '../protocol/query/runtime-sources.ts'
import {
  countPostgresError,
  countProjected,
  createFetchMeter,
  createNodeEvents,
  observeCoordinator,
  timedRead,
} from './coordinator-metrics.ts'
import { createEngineEvents } from './engine-telemetry.ts'
import { createEventLogTelemetry } from './event-log-telemetry.ts'
import { processMemoryLimit } from '../execution/engine/sandbox.ts'
import { createStatementSpans } from '../protocol/statement/statement-spans.ts'
import { querySpanContext } from '../coordinator/query/query-spans.ts'
import { sendLastSpans } from './last-spans.ts'
import { emitTaskCall } from './task-call-spans.ts'
import { emitClaim, emitProjection, emitRecovery } from './link-spans.ts'
import { createQueryTelemetry } from '../coordinator/query/query-telemetry.ts'
import { createCoordinatorApp } from './coordinator-app.ts'
import { createCoordinatorListener } from './coordinator-http.ts'
import { restoreCounters } from './restored-counters.ts'
import { createRestartMeter } from './restart-meter.ts'
import { createProcessTelemetry } from './process-telemetry.ts'
import { beforeLastEpoch } from '../readmodels/audit/queries.ts'
import { readKnownWorkers } from '../readmodels/nodes/queries.ts'
import { createReadModelsProjection } from '../readmodels/projection.ts'
import { beginLifetimeCounts, type LifetimeCounts } from '../readmodels/lifetime-counts.ts'
import { rebuildIfNeeded } from '../readmodels/rebuild.ts'
import { deriveKey, internalBearer, loadClusterSecret } from '../security/cluster-secret.ts'
import { systemClock } from '../shared/clock.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { createQueryIds, epochOf } from '../shared/ids.ts'
import { createSqlFrontEnd } from '../sql/create-front-end.ts'
import { translateError } from '../sql/functions/runtime-errors.ts'
import { redactSecrets } from '../sql/syntax/redact-secrets.ts'
import type { ChildLife } from './child-life.ts'
import { startAuditing } from './auditing.ts'
import { watchDependencies } from './dependency-health.ts'
import { connectorFactories, duckdbTypeOf, tablesFolder } from './connector-factories.ts'
import { engineSettings } from './engine-settings.ts'
import { eventLogOf } from './event-log-of.ts'
import { startSweeping } from './sweeping.ts'
import { version } from './version.ts'

/** A coordinator whose parts are wired. */
export interface WiredCoordinator {
  readonly listener: RequestListener
  /** No admission any more; open polls are answered; the epoch is handed over. */
  drain(): Promise<void>
  /** After the last answer: closes what is open. */
  stop(): Promise<void>
}

const clock = systemClock

/** Files shipped with the project, seen from `dist/cli`. */
const SHIPPED = fileURLToPath(new URL('../../etc', import.meta.url))

/** To Postgres, for reads of the read models. */
const POOL_CONNECTIONS = 8
/** A server that is stopped takes connections and never answers. */
const READ_WAITS = { connectionTimeoutMillis: 2000, query_timeout: 30_000 }

/** A result of a statement without tables is kept in memory while it is made. */
const INLINE_BYTES = 16 * 1024 * 1024

/** A page whose worker was not reached for so long is lost. */
const PAGE_LOST_MS = 15_000

/** An ended query is answered from memory so long after its last request, then from the log. */
const ENDED_IN_MEMORY_MS = 10_000

/** A statement that ends within this after its POST is one append. */
const FIRST_APPEND_HOLD_MS = 8

/**
 * Puts the coordinator together.
 * @throws ExitError 64 or 69 with one line when something it needs is wrong or missing
 */
export async function wireCoordinator(life: ChildLife): Promise<WiredCoordinator> {
  const startedAt = clock.monotonicMs()
  const { config } = life
  const nodeId = `coordinator-${process.pid}`
  const telemetry = createProcessTelemetry(config, 'coordinator', nodeId)
  const { logger } = telemetry
  const { timeouts, limits } = config
  const dataDir = resolve(config.dataDir)
  const secret = loadClusterSecret(dataDir, config.sharedSecret)
  const bearer = internalBearer(secret)
  let bound: { query: ReturnType<typeof createEnginePool>['query'] } | undefined
  let runtime: RuntimeSources | undefined
  const configured = loadCatalogs(resolve(config.catalogDir), connectorFactories, {
    dataDir,
    tablesDir: tablesFolder(config),
    shippedDir: SHIPPED,
    duckdbType: duckdbTypeOf,
    query: (sql) => {
      if (!bound) throw new Error('catalogs are asked before the engine is there')
      return bound.query(sql)
    },
  })
  const catalogs = withSystemCatalog(configured, () => {
    if (!runtime) throw new Error('system tables are read before they are there')
    return runtime
  })
  const statementSpans = createStatementSpans({
    spans: telemetry.spans,
    sampler: telemetry.sampler,
    clock,
    onUnsampled: () => telemetry.meters().count('spans', { result: 'unsampled' }),
  })
  const queryTelemetry = createQueryTelemetry({
    meters: telemetry.meters,
    spans: telemetry.spans,
    pollsUnrecorded: statementSpans.pollsUnrecorded,
    logger,
    now: clock.now,
    connectorOf: (catalog) => catalogs.get(catalog)?.connectorName ?? 'none',
    slowMs: timeouts.slowQueryMs,
  })
  const engineUse = engineSettings(config, {
    folder: join(dataDir, 'coordinator'),
    allowedDirectories: allowedDirectories(catalogs),
    sharers: config.workers + 1,
    translateError,
    onEvent: createEngineEvents(telemetry.meters, logger),
  })
  const engine = createEnginePool(engineUse)
  bound = engine
  const engineStarted = engine.start()
  engineStarted.catch(() => {})

  const connection: pg.ClientConfig = { connectionString: await life.database() }
  const migrating = clock.monotonicMs()
  await usable(migrate(connection), 'Postgres')
  const migrateSeconds = (clock.monotonicMs() - migrating) / 1000
  telemetry.meters().observe('postgresQueryDuration', { operation: 'migrate' }, migrateSeconds)
  const logTelemetry = createEventLogTelemetry({
    meters: telemetry.meters,
    spans: telemetry.spans,
    topic: config.kafkaBrokers.length === 0 ? undefined : config.kafkaTopic,
    onTrouble: (error) => logger.warn('log.trouble', { err: error }, 'The event log is in trouble; it goes on trying'),
  })
  const projectionTrouble = (kind: string, error: unknown): void => {
    countPostgresError(telemetry.meters(), error)
    logger.warn('projection.trouble', { kind, err: error }, 'The projection is in trouble')
  }
  /** Creation of the oldest open query, milliseconds since the epoch: its pages are still needed. */
  let oldestOpen = (): number => clock.now()
  const log = await eventLogOf(config, connection.connectionString!, {
    ...logTelemetry.hooks,
    bornIn: epochOf,
    pagesKey: deriveKey(secret, 'result-pages'),
    pagesNeededSince: () => new Date(oldestOpen() - timeouts.answersKeptMs),
  })
  await usable(log.open(), 'the event log')
  // Before the claim: a log in Kafka reads streams, its own claim's too, from what was projected.
  const rebuilt = await rebuildIfNeeded({ log, database: connection, clock })
  if (rebuilt) logger.info('projection.rebuilt', { ...rebuilt }, 'Read models were made anew from the event log')
  const projection = createProjectionRunner({
    log,
    projection: createReadModelsProjection(),
    database: connection,
    clock,
    // Nobody waits: reads of one's own writes come from memory, and a barrier ends the lingering.
    lingerMs: 100,
    onBatch(batch) {
      countProjected(telemetry.meters(), batch)
      emitProjection(telemetry.spans(), 'readmodels', batch)
    },
    onTrouble: (trouble) =>
      trouble.kind === 'dead_letter'
        ? logger.error('dead_letter', { trouble }, 'An event could not be projected')
        : projectionTrouble(trouble.kind, trouble.error),
    onWait: ({ passed, milliseconds }) =>
      telemetry.meters().observe('projectionWait', { result: passed ? 'passed' : 'timeout' }, milliseconds / 1000),
  })
  await projection.start()

  const address = config.advertisedUrl ?? life.url ?? `http://${config.host}:${config.port}`
  const claiming = clock.monotonicMs()
  const { epoch, writer } = await claimEpoch(log, {
    address,
    version,
    deadWriter: life.deadWriter,
    silentMs: timeouts.writerSilentMs,
    jitterMs: timeouts.writerSilentJitterMs,
    clock,
    systemAfter: await beforeLastEpoch(connection),
  })
  const claimedAt = new Date(clock.now()).toISOString()
  life.claimed(writer)
  logger.bind({ epoch })
  logger.info('epoch.won', {}, 'Writes the event log from now on')
  // Each claim raises the epoch by one: so the counter goes on where the last process left it.
  telemetry.meters().count('epochClaims', { result: 'won' }, epoch)
  emitClaim(telemetry.spans(), epoch, clock.monotonicMs() - claiming)
  const { logId } = await log.tip()
  void log.fenced.then((reason) => life.fail(new ExitError(exitCodes.fenced, reason.message)))
  await engineStarted

  const pool = new pg.Pool({
    ...connection,
    max: POOL_CONNECTIONS,
    options: '-c search_path=m,quipu_log,public',
    ...READ_WAITS,
  })
  pool.on('error', (error) => logger.warn('log.trouble', { err: error }, 'A connection to Postgres was lost'))
  const health = watchDependencies(log, connection, (name, is) =>
    is === 'down'
      ? logger.error('dependency.down', { dependency: name }, 'It does not answer; what needs it waits')
      : logger.info('dependency.up', { dependency: name }, 'It answers again'),
  )
  const read = health.failFast(timedRead(pool, telemetry.meters))

  let membership: Membership | undefined
  const client = createWorkerClient({
    onOutcome: (url, error) => membership?.outcome(url, error),
    onPageFetched: createFetchMeter(telemetry.meters),
    onTaskCall: (call) => emitTaskCall(telemetry.spans(), call),
    epoch: () => epoch,
    bearer,
    requestTimeoutMs: 5_000,
    onStaleEpoch: () => life.fail(new ExitError(exitCodes.fenced, 'A worker has seen a higher epoch')),
  })
  const workers = createMembership({
    log,
    clock,
    limits: { beatMs: timeouts.workerBeatMs, failedMs: timeouts.workerFailedMs },
    writes: () => true,
    onEvent: createNodeEvents(telemetry.meters, logger),
  })
  membership = workers
  workers.remember(await readKnownWorkers(read))
  await workers.start()
  const hub = createTaskHub(client, workers, { lostAfterMs: timeouts.workerFailedMs, monotonicMs: clock.monotonicMs })
  const groups = createResourceGroups({ running: limits.runningQueries, queued: limits.queuedQueries })
  const ids = createQueryIds(epoch, clock.now)
  const cleaner = createTaskCleaner(client, workers, clock)
  const writeGuard = createWriteGuard()
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
      answersKeptMs: timeouts.answersKeptMs,
    },
    cleaner,
    firstAppendHoldMs: FIRST_APPEND_HOLD_MS,
    onInternalError: (queryId, error) =>
      logger.error('query.internal_error', { queryId, err: error }, 'A query failed by a fault of ours'),
    onUnrecorded: (queryId) =>
      life.fail(new ExitError(exitCodes.internal, `The end of query ${queryId} could not be recorded`)),
  }
  const registry = createQueryRegistry(clock, { ...timeouts, inMemoryMs: ENDED_IN_MEMORY_MS }, (query) => {
    const { position } = query.aggregate
    return position !== undefined && isBelow(position, projection.committed)
  })
  const live: LiveQueries = {
    get: (queryId) => viewOf(registry.get(queryId)),
    // Those that ended a while ago are in the tables: a busy registry has very many.
    list: () =>
      registry
        .list()
        .filter(
          ({ aggregate: { state, position } }) =>
            !isTerminal(state.kind) || !position || !isBelow(position, projection.committed),
        )
        .map(viewOf)
        .filter((view) => view !== undefined),
  }
  runtime = createRuntimeSources({
    live,
    read,
    projection,
    membership: workers,
    clock,
    self: { nodeId, url: address, version },
    ownWritesWaitMs: timeouts.ownWritesWaitMs,
  })
  oldestOpen = () =>
    registry
      .list()
      .reduce(
        (oldest, { aggregate: { state } }) =>
          state.kind === 'NONE' ? oldest : Math.min(oldest, Date.parse(state.createdAt)),
        clock.now(),
      )
  let draining = false
  const diskRoom = createDiskRoom(limits.diskFloorBytes, () => diskSpaceOf(dataDir), clock)
  const service = createStatementService({
    clock,
    log,
    registry,
    pages: createResultPageSource({ log, client, workers, clock, lostAfterMs: PAGE_LOST_MS }),
    start: (submission) => {
      const started = startQueryExecution(execution, ids(), submission)
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
    hasDiskRoom: () => diskRoom.enough(),
  })
  const recovering = clock.monotonicMs()
  const known = await readKnownWorkers(read)
  // Every worker learns of this epoch before anything is told on: what an old coordinator still sends has no effect.
  await Promise.allSettled(known.map(({ url }) => client.taskNews(url, undefined, AbortSignal.timeout(1000))))
  const open = await openQueries(log, connection, projection.barrier.bind(projection))
  // Nothing of this epoch has ended yet: what is in the read models now, this process does not count.
  const lifetime = await beginLifetimeCounts(connection, epoch).catch((error: unknown) => ({
    counts: Promise.reject<LifetimeCounts>(error),
  }))
  lifetime.counts.catch(() => {})
  const takenOver: (string | undefined)[] = []
  const recovered = await recoverQueries(
    {
      log,
      clock,
      epoch,
      resume(queryId, resumption) {
        const { created } = resumption.state
        const resumed = startQueryExecution(execution, queryId, { sql: created.sql, created }, resumption)
        registry.add(resumed)
        queryTelemetry.resumed(resumed)
        takenOver.push(querySpanContext(resumption.state))
      },
      onFailed: queryTelemetry.recovered,
    },
    open,
  )
  // What was decided before is under way: names may be checked again.
  writeGuard.open()
  const stopLeftTasks = releaseLeftTasks({
    client,
    workers,
    log,
    cleaner,
    held: (queryId) => registry.get(queryId)?.aggregate.intended,
    answersKeptMs: timeouts.answersKeptMs,
    onError: (error) => logger.warn('request.failed', { err: error }, 'A worker did not say which tasks it has'),
  })
  const sweeper = startSweeping({ catalogs, clock, registry, logger, active: () => !draining })
  const recoveryMillis = clock.monotonicMs() - recovering
  telemetry.meters().set('recoveryDuration', {}, recoveryMillis / 1000)
  telemetry.meters().count('recoveredQueries', { outcome: 'resumed' }, recovered.resumed)
  telemetry.meters().count('recoveredQueries', { outcome: 'failed' }, recovered.failed)
  telemetry.meters().count('recoveredQueries', { outcome: 'finished' }, recovered.ended)
  emitRecovery(telemetry.spans(), {
    epoch,
    milliseconds: recoveryMillis,
    queries: open.length,
    traceparents: takenOver,
  })
  if (open.length > 0)
    logger.info(
      'recovery',
      { ...recovered, milliseconds: Math.round(recoveryMillis) },
      'Queries of the coordinator before were taken over',
    )
  const auditing = startAuditing({
    log,
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
    uris: createStatementUris(deriveKey(secret, 'statement-token')),
    clock,
    redact: redactSecrets,
    spans: statementSpans,
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
  const { app, feed } = createCoordinatorApp({
    clock,
    config,
    startedAt,
    nodeId,
    epoch,
    logId,
    bearer,
    log,
    live,
    read,
    projection,
    workers,
    registry,
    service,
    client,
    meters: telemetry.meters,
    restarts: life.restarts,
    health,
    ready: () => !draining,
    auditing,
    onError,
  })
  const listener = createCoordinatorListener({
    policy: { authenticated: false, publicHosts: config.publicHosts, insecure: config.insecure },
    statements,
    rest: app,
    meters: telemetry.meters,
    refusals: auditing.refusals,
    onError,
  })
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
      async (meters) => restoreCounters(await lifetime.counts, meters),
    )
    .then(() => (life.deadWriter === undefined ? undefined : sendLastSpans(log, read, telemetry.spans(), claimedAt)))
    .catch((error: unknown) => logger.error('telemetry.trouble', { err: error }, 'Telemetry could not be loaded'))
  logger.info('ready', { epoch, milliseconds: Math.round(clock.monotonicMs() - startedAt) }, 'Coordinator is ready')
  return {
    listener,
    drain: async () => {
      draining = true
      // What runs is left to the next coordinator as it is; open polls are answered with its state.
      for (const query of registry.list()) query.suspend()
      await feed.close()
    },
    stop: async () => {
      stopLeftTasks()
      registry.stop()
      await sweeper.stop()
      await workers.stop()
      await auditing.stop()
      hub.stop()
      cleaner.stop()
      client.close()
      await health.stop()
      await projection.stop()
      await log.close()
      await pool.end()
      await engine.stop()
      await telemetry.stop()
    },
  }
}

function viewOf(execution: QueryExecution | undefined): LiveQueryView | undefined {
  const query = execution?.aggregate.state
  if (!execution || !query || query.kind === 'NONE') return undefined
  return { query, liveStats: execution.liveStats, queuedReason: execution.queuedReason }
}

/** Streams of queries without an end, as the read models know them once they hold the whole log. */
async function openQueries(
  log: EventLog,
  connection: pg.ClientConfig,
  barrier: (timeoutMs: number) => Promise<boolean>,
): Promise<readonly string[]> {
  while (!(await barrier(10_000))) await log.tip()
  const database = new pg.Client(connection)
  await database.connect()
  try {
    const { rows } = await database.query<{ query_id: string }>(
      `select query_id from m.queries where state not in ('FINISHED', 'FAILED')`,
    )
    return rows.map((row) => row.query_id)
  } finally {
    await database.end()
  }
}

/** One line for what is wrong or missing at the start. */
async function usable<T>(opening: Promise<T>, what: string): Promise<T> {
  try {
    return await opening
  } catch (error) {
    const code =
      error instanceof MigrationError || error instanceof MisconfiguredLog
        ? exitCodes.configuration
        : exitCodes.dependency
    throw new ExitError(code, `Cannot use ${what}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
