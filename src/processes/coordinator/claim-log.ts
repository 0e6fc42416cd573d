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

/** The log is this process's to write. */
export interface ClaimResult {
  readonly claimed: Claimed
  readonly projection: ProjectionRunner
  /** Are the read models there? Statements go on without them where the log lies elsewhere. */
  readonly databaseThere: boolean
  readonly rebuilt: Rebuilt | undefined
  /** How long the claim took, milliseconds. */
  readonly claimMillis: number
  /** Why the log could be claimed. */
  readonly freedBy: FreedBy
  /** The projection is started no more. */
  readonly giveUpStarting: () => void
}

const DATABASE_AGAIN_MS = 500
/** By then a database that went away is known to be. */
const NOTICED_MS = 3000

/**
 * Claims the log. The projection is started before: a log in Kafka reads streams, its own claim's too, from what was
 * projected. Where the log lies elsewhere than the read models, it does not wait for their database.
 * @returns undefined when another one was first
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
  // To start the projection takes a while, in which another one may have claimed.
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

/** The projection runs, or will as soon as its database is there. */
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
    // A server that was stopped neither answers nor refuses: its health is asked beside.
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
  // What an earlier version filled serves on; the coordinator that writes makes it anew.
  await adoptOlderTables(connection)
  const rebuilt = await rebuildIfNeeded({
    log,
    logsBefore: () => logsBefore(log, archivesOf(config)),
    database: connection,
    clock,
  })
  if (rebuilt)
    telemetry.logger.info('projection.rebuilt', { ...rebuilt }, 'Read models were made anew from the event log')
  await projection.start()
  return rebuilt
}

async function untilDown({ health }: CoordinatorBase, until: AbortSignal): Promise<void> {
  while (health.database === 'up' && !until.aborted) await sleep(LOOK_EVERY_MS)
}

/** Statements go on; history waits for its database. */
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
