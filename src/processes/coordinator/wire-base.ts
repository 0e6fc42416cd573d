import { resolve } from 'node:path'
import type pg from 'pg'
import { createClusterStates } from '../../coordinator/clusters/cluster-states.ts'
import { migrate } from '../../events/postgres/migrate.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import { internalBearer, loadClusterSecret } from '../../security/cluster-secret.ts'
import { schemeOf } from '../../config/load-config.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import type { ArchivedFiles } from '../../readmodels/history/read-archive.ts'
import { refuseHalfContinued } from '../event-log/logs-before.ts'
import { queryArchiveOf, type OpenQueryArchive } from '../event-log/query-archive-of.ts'
import type { ChildLife } from '../child-life.ts'
import { createProcessTelemetry } from '../telemetry/process-telemetry.ts'
import { openPools } from './database-pools.ts'
import { createOutageLines } from '../health/outage-lines.ts'
import { watchDependencies } from '../health/dependency-health.ts'
import type { StartNeeds } from './start-needs.ts'
import { untilUsable, type Patience } from './until-usable.ts'
import type { Access } from './wire-access.ts'
import { wireEngine } from './wire-engine.ts'
import { topicOf, wireEventLog } from './wire-event-log.ts'
import { wireProjection } from './wire-projection.ts'
import { createServerTrust } from '../../shared/server-trust.ts'
import { parseNodeId } from '../../shared/ids.ts'

/** A stopped server accepts connections and never answers. */
const MIGRATE_WAITS = { connectionTimeoutMillis: 3000 }

/** The parts that a coordinator has whether it writes the log or follows it. */
export type CoordinatorBase = Awaited<ReturnType<typeof wireBase>>

/**
 * Makes everything that comes before the claim: catalogs, engine, event log (open), Postgres.
 * @throws ExitError 64 or 69 with one line when a dependency is wrong or missing
 */
export async function wireBase(life: ChildLife, needs: StartNeeds, access: Access) {
  const startedAt = clock.monotonicMs()
  const { config } = life
  const nodeId = parseNodeId(`coordinator-${process.pid}`)
  const telemetry = createProcessTelemetry(config, 'coordinator', nodeId)
  const { logger } = telemetry
  access.observe(telemetry)
  const dataDir = resolve(config.dataDir)
  const secret = loadClusterSecret(dataDir, config.sharedSecret)
  const wired = wireEngine(life, telemetry)
  const connection: pg.ClientConfig = { connectionString: await needs.during('database', life.database) }
  const pools = openPools(connection, config, telemetry)
  needs.read = pools.pollRead
  const outageLines = createOutageLines(logger, clock)
  const patience: Patience = {
    waits: life.successor || life.follow,
    needs,
    onWait: (need, error) => outageLines(need, 'down', error.message),
    onThere: (need) => outageLines(need, 'up'),
  }
  const topic = topicOf(config)
  const migrating = clock.monotonicMs()
  // If the log is elsewhere, statements need no Postgres.
  const databaseThere = await untilUsable('database', () => migrate({ ...connection, ...MIGRATE_WAITS }), patience, {
    without: life.successor && topic !== undefined,
  })
  const migrateSeconds = (clock.monotonicMs() - migrating) / 1000
  telemetry.meters().observe('postgresQueryDuration', { operation: 'migrate' }, migrateSeconds)
  const { log, logTelemetry, keepPagesSince } = await wireEventLog({
    config,
    secret,
    connection,
    databaseThere,
    telemetry,
  })
  const openLog = async (): Promise<void> => {
    await log.open()
    if (config.kafkaBrokers.length > 0) await refuseHalfContinued(log)
  }
  await untilUsable('log', openLog, patience)
  let archive: OpenQueryArchive | undefined
  const health = watchDependencies(log, connection, (need, is) => outageLines(need, is))
  needs.follow(health)
  access.open(health.failFast(pools.logInRead))

  return {
    config,
    startedAt,
    nodeId,
    telemetry,
    /** How long the start waits for its dependencies. */
    patience,
    dataDir,
    secret,
    access,
    bearer: internalBearer(secret),
    trust: createServerTrust(config, life.identity.last?.cert),
    ...wired,
    connection,
    /** Whether Postgres answered at the start. A successor with the log in Kafka starts without it. */
    databaseThere,
    log,
    logTelemetry,
    keepPagesSince,
    /** The clusters as the log has them, in every role. */
    clusterStates: createClusterStates(),
    pool: pools.pool,
    health,
    ownRead: health.failFast(pools.ownRead),
    pollRead: health.failFast(pools.pollRead),
    clientRead: health.failFast(pools.clientRead),
    statementRead: health.failFast(pools.statementRead),
    history: health.failFastMoments(pools.history),
    /** The archived files of a log, which has its id by then. */
    archiveOf: (logId: string): ArchivedFiles => (archive ??= queryArchiveOf(config, logId)),
    /** The address under which others reach this process. */
    address: config.advertisedUrl ?? life.url ?? `${schemeOf(config)}://${config.host}:${config.port}`,
    createProjection: (): ProjectionRunner => wireProjection({ log, connection, telemetry, topic }),
    async stop() {
      await access.stop()
      await health.stop()
      await log.close()
      await pools.end()
      await archive?.close()
      await wired.engine.stop()
      await telemetry.stop()
    },
  }
}
