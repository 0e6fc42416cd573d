import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { allowedDirectories, loadCatalogs } from '../connectors/spi/catalog-files.ts'
import { withSystemCatalog, type RuntimeSources } from '../connectors/system/system-connector.ts'
import { MisconfiguredLog } from '../events/event-log.ts'
import { migrate, MigrationError } from '../events/postgres/migrate.ts'
import { createProjectionRunner, type ProjectionRunner } from '../events/projection-runner.ts'
import { createEnginePool } from '../execution/engine/engine-pool.ts'
import { createReadModelsProjection } from '../readmodels/projection.ts'
import { deriveKey, internalBearer, loadClusterSecret } from '../security/cluster-secret.ts'
import { steadyWall, systemClock } from '../shared/clock.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { epochOf } from '../shared/ids.ts'
import { translateError } from '../sql/functions/runtime-errors.ts'
import type { DeadLetter } from '../events/projection.ts'
import type { ChildLife } from './child-life.ts'
import { connectorFactories, duckdbTypeOf, tablesFolder } from './connector-factories.ts'
import { countPostgresError, countProjected, timedRead } from './coordinator-metrics.ts'
import { watchDependencies } from './dependency-health.ts'
import { createEngineEvents } from './engine-telemetry.ts'
import { engineSettings } from './engine-settings.ts'
import { eventLogOf } from './event-log-of.ts'
import { createEventLogTelemetry } from './event-log-telemetry.ts'
import { emitProjection } from './link-spans.ts'
import { createProcessTelemetry } from './process-telemetry.ts'
import { tracedRead } from './request-spans.ts'
import type { Need, StartNeeds } from './start-needs.ts'

const clock = systemClock

/** Files shipped with the project, seen from `dist/cli`. */
const SHIPPED = fileURLToPath(new URL('../../etc', import.meta.url))

/** To Postgres, for reads of the read models. */
export const POOL_CONNECTIONS = 8
/** For reads of history that clients ask for: no fewer than may run at once. */
const CLIENT_CONNECTIONS = 8
/** A server that is stopped takes connections and never answers. */
const MIGRATE_WAITS = { connectionTimeoutMillis: 3000 }
const READ_WAITS = { connectionTimeoutMillis: 2000, query_timeout: 30_000 }

/** What a coordinator has whether it writes the log or follows it. */
export type CoordinatorBase = Awaited<ReturnType<typeof wireBase>>

/**
 * Everything that comes before the claim: catalogs, engine, event log (open), Postgres.
 * @throws ExitError 64 or 69 with one line when something it needs is wrong or missing
 */
export async function wireBase(life: ChildLife, needs: StartNeeds) {
  const startedAt = clock.monotonicMs()
  const { config } = life
  const nodeId = `coordinator-${process.pid}`
  const telemetry = createProcessTelemetry(config, 'coordinator', nodeId)
  const { logger } = telemetry
  const dataDir = resolve(config.dataDir)
  const secret = loadClusterSecret(dataDir, config.sharedSecret)
  const bearer = internalBearer(secret)
  let bound: Pick<ReturnType<typeof createEnginePool>, 'inspect'> | undefined
  let runtime: RuntimeSources | undefined
  const configured = loadCatalogs(resolve(config.catalogDir), connectorFactories, {
    dataDir,
    tablesDir: tablesFolder(config),
    shippedDir: SHIPPED,
    duckdbType: duckdbTypeOf,
    inspect: (question) => {
      if (!bound) throw new Error('catalogs are asked before the engine is there')
      return bound.inspect(question)
    },
  })
  const catalogs = withSystemCatalog(configured, () => {
    if (!runtime) throw new Error('system tables are read before they are there')
    return runtime
  })
  const engineUse = engineSettings(config, {
    // A stand-by may share the data folder of the coordinator it follows.
    folder: join(dataDir, config.standby ? 'coordinator-standby' : 'coordinator'),
    allowedDirectories: allowedDirectories(catalogs),
    sharers: config.workers + 1,
    translateError,
    onEvent: createEngineEvents(telemetry.meters, logger),
  })
  const engine = createEnginePool(engineUse)
  const engineStarted = engine.start()
  engineStarted.catch(() => {})
  // Its own time for an answer does not begin before it is there.
  bound = {
    inspect: async (question) => {
      await engineStarted
      return engine.inspect(question)
    },
  }

  const connection: pg.ClientConfig = { connectionString: await needs.during('database', life.database) }
  const pool = new pg.Pool({
    ...connection,
    max: POOL_CONNECTIONS,
    options: '-c search_path=m,quipu_log,public',
    ...READ_WAITS,
  })
  pool.on('error', (error) => logger.warn('log.trouble', { err: error }, 'A connection to Postgres was lost'))
  const readPool = timedRead(pool, telemetry.meters)
  // What clients ask of history waits for each other, and for nothing that this process needs itself.
  const clientPool = new pg.Pool({
    ...connection,
    max: CLIENT_CONNECTIONS,
    options: '-c search_path=m,quipu_log,public',
    ...READ_WAITS,
    statement_timeout: config.timeouts.historyReadMs,
  })
  clientPool.on('error', (error) => logger.warn('log.trouble', { err: error }, 'A connection to Postgres was lost'))
  needs.read = readPool
  const migrating = clock.monotonicMs()
  const patience: Patience = {
    // What ran before waits for what it needs; a first start says what is missing.
    waits: life.successor,
    needs,
    onWait: (what, error) =>
      logger.error('dependency.down', { dependency: what, err: error }, 'The start waits for it'),
  }
  // With the log elsewhere statements need no Postgres.
  const databaseThere = await usable('database', () => migrate({ ...connection, ...MIGRATE_WAITS }), patience, {
    without: life.successor && config.kafkaBrokers.length > 0,
  })
  const migrateSeconds = (clock.monotonicMs() - migrating) / 1000
  telemetry.meters().observe('postgresQueryDuration', { operation: 'migrate' }, migrateSeconds)
  const topic = config.kafkaBrokers.length === 0 ? undefined : config.kafkaTopic
  const logTelemetry = createEventLogTelemetry({
    meters: telemetry.meters,
    spans: telemetry.spans,
    topic,
    onTrouble: (error) => logger.warn('log.trouble', { err: error }, 'The event log is in trouble; it goes on trying'),
  })
  const projectionTrouble = (kind: string, error: unknown): void => {
    countPostgresError(telemetry.meters(), error)
    logger.warn('projection.trouble', { kind, err: error }, 'The projection is in trouble')
  }
  const wall = steadyWall(clock)
  let pagesNeededSince = (): number => clock.now()
  const log = await eventLogOf(config, connection.connectionString!, {
    ...logTelemetry.hooks,
    bornIn: epochOf,
    pagesKey: deriveKey(secret, 'result-pages'),
    dataKeys: databaseThere ? {} : { openWaitMs: 0 },
    // A clock that jumped ahead makes no page old.
    pagesNeededSince: () => new Date(Math.min(pagesNeededSince(), wall()) - config.timeouts.answersKeptMs),
  })
  await usable('log', () => log.open(), patience)

  const health = watchDependencies(log, connection, (name, is) =>
    is === 'down'
      ? logger.error('dependency.down', { dependency: name }, 'It does not answer; what needs it waits')
      : logger.info('dependency.up', { dependency: name }, 'It answers again'),
  )
  needs.follow(health)

  return {
    config,
    startedAt,
    nodeId,
    telemetry,
    dataDir,
    secret,
    bearer,
    catalogs,
    engine,
    engineUse,
    engineStarted,
    connection,
    /** Did Postgres answer at the start? A successor with the log in Kafka starts without. */
    databaseThere,
    logTelemetry,
    log,
    pool,
    health,
    read: health.failFast(tracedRead(readPool, telemetry.spans)),
    /** For what anybody may ask: few at once, and none takes long. */
    clientRead: health.failFast(tracedRead(timedRead(clientPool, telemetry.meters), telemetry.spans)),
    /** Under which others reach this process. */
    address: config.advertisedUrl ?? life.url ?? `http://${config.host}:${config.port}`,
    useRuntime: (sources: RuntimeSources) => void (runtime = sources),
    /** @param since creation of the oldest open query, milliseconds since the epoch: its pages are still needed */
    keepPagesSince: (since: () => number) => void (pagesNeededSince = since),
    createProjection: (): ProjectionRunner =>
      createProjectionRunner({
        log,
        projection: createReadModelsProjection(),
        database: connection,
        clock,
        // Nobody waits: reads of one's own writes come from memory, and a barrier ends the lingering.
        lingerMs: 100,
        onBatch(batch) {
          countProjected(telemetry.meters(), batch)
          emitProjection(telemetry.spans(), 'readmodels', batch, topic)
        },
        onTrouble: (trouble) =>
          trouble.kind === 'dead_letter'
            ? logger.error('dead_letter', aboutLetter(trouble.letter), 'An event could not be projected')
            : projectionTrouble(trouble.kind, trouble.error),
        onWait: ({ passed, milliseconds }) =>
          telemetry.meters().observe('projectionWait', { result: passed ? 'passed' : 'timeout' }, milliseconds / 1000),
      }),
    async stop() {
      await health.stop()
      await log.close()
      await pool.end()
      await clientPool.end()
      await engine.stop()
      await telemetry.stop()
    },
  }
}

interface Patience {
  readonly waits: boolean
  readonly needs: StartNeeds
  readonly onWait: (what: string, error: Error) => void
}

const LONGEST_PAUSE_MS = 1000
const nameOf: Readonly<Record<Need, string>> = { log: 'the event log', database: 'Postgres' }

/**
 * One line for what is wrong or missing at the start; where it is only missing and this process waits, tried until it
 * is there.
 * @returns false when it is missing and can be done without
 */
async function usable(
  need: Need,
  open: () => Promise<unknown>,
  { waits, needs, onWait }: Patience,
  { without = false }: { readonly without?: boolean } = {},
): Promise<boolean> {
  const what = nameOf[need]
  for (let pause = 50; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      await needs.during(need, open)
      return true
    } catch (error) {
      const wrong = error instanceof MigrationError || error instanceof MisconfiguredLog
      if (wrong || !waits)
        throw new ExitError(
          wrong ? exitCodes.configuration : exitCodes.dependency,
          `Cannot use ${what}: ${error instanceof Error ? error.message : String(error)}`,
        )
      needs.failed(need)
      if (pause === 50) onWait(what, error as Error)
      if (without) return false
      await sleep(pause)
    }
  }
}

/** Which event it is and why; the event itself is a statement's. */
function aboutLetter(letter: DeadLetter): Readonly<Record<string, unknown>> {
  const { stream, sequence, type, v } = letter.event
  return { kind: letter.kind, stream, sequence, type, v, ...(letter.kind === 'failed' ? { err: letter.error } : {}) }
}
