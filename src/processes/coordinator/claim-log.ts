import { setTimeout as sleep } from 'node:timers/promises'
import { claimEpoch, type Claimed } from '../../coordinator/recovery/claim-epoch.ts'
import { lookCaughtUp } from '../../coordinator/recovery/wait-to-claim.ts'
import type { FreedBy, WriterLiveness } from '../../coordinator/recovery/writer-liveness.ts'
import { LOOK_EVERY_MS } from '../../coordinator/recovery/writer-pulse.ts'
import { migrate } from '../../events/postgres/migrate.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import { adoptOlderTables } from '../../readmodels/older-tables.ts'
import { rebuildIfNeeded, type Rebuilt } from '../../readmodels/rebuild.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import { version } from '../../shared/version.ts'
import { archivesOf } from '../event-log/archives-of.ts'
import { logsBefore } from '../event-log/logs-before.ts'
import type { CoordinatorBase } from './wire-base.ts'

/** The result of a successful claim: this process may write the log. */
export interface ClaimResult {
  readonly claimed: Claimed
  readonly projection: ProjectionRunner
  /** Whether the read models are there. If the log is elsewhere, statements run without them. */
  readonly databaseThere: boolean
  readonly rebuilt: Rebuilt | undefined
  /** How long the claim took, milliseconds. */
  readonly claimMillis: number
  /** Why the log could be claimed. */
  readonly freedBy: FreedBy
  /** Stops the attempts to start the projection. */
  readonly giveUpStarting: () => void
}

const DATABASE_AGAIN_MS = 500
/** After this time, a database that went away is known to be away. */
const NOTICED_MS = 3000

/**
 * Claims the log. Starts the projection first: a log in Kafka needs the projected data to read streams, even for its
 * own claim. If the log is not in the read models' database, it does not wait for that database.
 * @returns undefined if another coordinator was first
 */
export async function claimLog(
  base: CoordinatorBase,
  liveness: WriterLiveness,
  stopping: AbortSignal,
): Promise<ClaimResult | undefined> {
  const projection = base.createProjection()
  const starting = new AbortController()
  const giveUpStarting = (): void => starting.abort()
  const until = AbortSignal.any([stopping, starting.signal])
  const { databaseThere, rebuilt } = await startOrLeave(base, projection, until)
  const start = clock.monotonicMs()
  // Starting the projection takes a while. Another coordinator may have claimed meanwhile.
  const found = await lookCaughtUp(liveness, stopping)
  const freedBy = liveness.freedBy()
  const claimed = found === 'claim' ? await claimEpoch(base.log, { address: base.address, version }) : undefined
  if (claimed) {
    const claimMillis = clock.monotonicMs() - start
    return { claimed, projection, databaseThere, rebuilt, claimMillis, freedBy, giveUpStarting }
  }
  giveUpStarting()
  await projection.stop()
  return undefined
}

/** Starts the projection, now or as soon as its database is there. */
async function startOrLeave(
  base: CoordinatorBase,
  projection: ProjectionRunner,
  stopping: AbortSignal,
): Promise<Pick<ClaimResult, 'databaseThere' | 'rebuilt'>> {
  const { health, config } = base
  if (config.kafkaBrokers.length === 0) return { databaseThere: true, rebuilt: await startProjection(base, projection) }
  if (base.databaseThere && health.database === 'up') {
    const started = startProjection(base, projection)
    started.catch(() => {})
    const settled = new AbortController()
    const whenDown = (until: AbortSignal): Promise<void> => untilDown(base, AbortSignal.any([until, stopping]))
    // A stopped server neither answers nor refuses, so its health is watched at the same time.
    await Promise.race([started.catch(() => whenDown(AbortSignal.timeout(NOTICED_MS))), whenDown(settled.signal)])
    settled.abort()
    if (health.database === 'up') return { databaseThere: true, rebuilt: await started }
    void started.catch(() => untilStarted(base, projection, stopping))
  } else void untilStarted(base, projection, stopping)
  return { databaseThere: false, rebuilt: undefined }
}

async function startProjection(
  { log, connection, telemetry, config }: CoordinatorBase,
  projection: ProjectionRunner,
): Promise<Rebuilt | undefined> {
  // Tables that an earlier version filled stay in use. The writer rebuilds them.
  await adoptOlderTables(connection)
  const rebuilt = await rebuildIfNeeded({
    log,
    logsBefore: () => logsBefore(log, archivesOf(config)),
    database: connection,
    clock,
  })
  if (rebuilt)
    telemetry.logger.info('projection.rebuilt', { ...rebuilt }, 'The read models were rebuilt from the event log')
  await projection.start()
  return rebuilt
}

async function untilDown({ health }: CoordinatorBase, until: AbortSignal): Promise<void> {
  while (health.database === 'up' && !until.aborted) await sleep(LOOK_EVERY_MS)
}

/** Retries until the projection has started. Meanwhile statements run; history waits for its database. */
async function untilStarted(base: CoordinatorBase, projection: ProjectionRunner, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    try {
      await migrate(base.connection)
      await startProjection(base, projection)
      return
    } catch {
      await sleep(DATABASE_AGAIN_MS)
    }
  }
}
