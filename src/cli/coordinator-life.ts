import type { RequestListener } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { anotherWrites, claimEpoch, type Claimed } from '../coordinator/recovery/claim-epoch.ts'
import { nextPlace, startEpochFollower, type WriterPlace } from '../coordinator/recovery/epoch-follower.ts'
import { createTurn, LOOK_EVERY_MS } from '../coordinator/recovery/turn.ts'
import { systemStream } from '../coordinator/system/events.ts'
import type { QueryRows } from '../events/projection.ts'
import type { ProjectionRunner } from '../events/projection-runner.ts'
import { createProjectionWatch } from '../events/projection-watch.ts'
import { beginning } from '../events/event-log.ts'
import { migrate } from '../events/postgres/migrate.ts'
import { READ_MODELS } from '../readmodels/projection.ts'
import { readLastEpochs } from '../readmodels/audit/queries.ts'
import { rebuildIfNeeded, type Rebuilt } from '../readmodels/rebuild.ts'
import { systemClock as clock } from '../shared/clock.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import type { ChildLife } from './child-life.ts'
import { wireBase, type CoordinatorBase } from './coordinator-base.ts'
import type { FollowingCoordinator } from './coordinator-follower.ts'
import { wireWriter, type CoordinatorPhase } from './coordinator-wiring.ts'
import { createStartNeeds } from './start-needs.ts'
import { wireStarting } from './starting-server.ts'
import { version } from './version.ts'

interface Won {
  readonly claimed: Claimed
  readonly projection: ProjectionRunner
  /** Were the read models there? Statements go on without them where the log lies elsewhere. */
  readonly databaseThere: boolean
  readonly rebuilt: Rebuilt | undefined
  /** How long the claim took. */
  readonly milliseconds: number
}

/**
 * Starts a coordinator: it claims the log when nobody writes it, else follows until it may. Resolves when it serves.
 * @param info the answer of `/v1/info` until then
 * @param serve takes the listener of each phase, in place of the one before
 * @param closeListener accepts no more; resolves when the answers under way are out
 * @throws ExitError 64 or 69 with one line when something it needs is wrong or missing, or another coordinator writes
 */
export async function startCoordinator(
  life: ChildLife,
  info: () => Record<string, unknown>,
  serve: (listener: RequestListener) => void,
  closeListener: () => Promise<void>,
): Promise<CoordinatorPhase> {
  const needs = createStartNeeds(life.config.kafkaBrokers.length === 0)
  if (life.successor) {
    const starting = wireStarting(life, needs, info)
    const serveLast = serve
    serveLast(starting.listener)
    serve = (listener) => {
      starting.handOver(listener)
      serveLast(listener)
    }
  }
  const base = await wireBase(life, needs)
  const { config, log, read, telemetry } = base
  const { logger } = telemetry
  const watch = createProjectionWatch(log, read, READ_MODELS.name)
  // Without the read models the writers before are found in the log itself.
  const from = base.databaseThere ? await watch.checkpoint() : beginning((await log.tip()).at.length)
  const epochs = startEpochFollower({
    log,
    from,
    last: base.databaseThere ? await lastPlace(read) : undefined,
    onStopped: (error) => life.fail(error),
  })
  const turn = createTurn({
    follower: epochs,
    ownAddress: base.address,
    deadWriter: life.deadWriter,
    silentMs: config.timeouts.writerSilentMs,
    jitterMs: config.timeouts.writerSilentJitterMs,
    clock,
  })
  let following: FollowingCoordinator | undefined
  let stopping = false

  /** @returns undefined when another one was first */
  async function claim(): Promise<Won | undefined> {
    // Before the claim: a log in Kafka reads streams, its own claim's too, from what was projected.
    const projection = base.createProjection()
    const { databaseThere, rebuilt } = await startOrLeave(projection)
    const start = clock.monotonicMs()
    const claimed = await claimEpoch(log, { address: base.address, version })
    if (claimed) return { claimed, projection, databaseThere, rebuilt, milliseconds: clock.monotonicMs() - start }
    await projection.stop()
    return undefined
  }

  async function startProjection(projection: ProjectionRunner): Promise<Rebuilt | undefined> {
    const rebuilt = await rebuildIfNeeded({ log, database: base.connection, clock })
    if (rebuilt) logger.info('projection.rebuilt', { ...rebuilt }, 'Read models were made anew from the event log')
    await projection.start()
    return rebuilt
  }

  /** The projection runs, or will as soon as its database is there: a log that lies elsewhere does not wait for it. */
  async function startOrLeave(projection: ProjectionRunner): Promise<Pick<Won, 'databaseThere' | 'rebuilt'>> {
    if (config.kafkaBrokers.length === 0) return { databaseThere: true, rebuilt: await startProjection(projection) }
    if (base.databaseThere && base.health.database === 'up') {
      const started = startProjection(projection)
      started.catch(() => {})
      const settled = new AbortController()
      // A server that was stopped neither answers nor refuses: its health is asked beside.
      await Promise.race([started.catch(() => whenDown(AbortSignal.timeout(NOTICED_MS))), whenDown(settled.signal)])
      settled.abort()
      if (base.health.database === 'up') return { databaseThere: true, rebuilt: await started }
      void started.catch(() => untilStarted(projection))
    } else void untilStarted(projection)
    return { databaseThere: false, rebuilt: undefined }
  }

  async function whenDown(until: AbortSignal): Promise<void> {
    while (base.health.database === 'up' && !until.aborted && !stopping) await sleep(LOOK_EVERY_MS)
  }

  /** Statements go on; history waits for its database. */
  async function untilStarted(projection: ProjectionRunner): Promise<void> {
    while (!stopping) {
      try {
        await migrate(base.connection)
        await startProjection(projection)
        return
      } catch {
        await sleep(DATABASE_AGAIN_MS)
      }
    }
  }

  async function becomeWriter(won: Won): Promise<CoordinatorPhase> {
    const { claimed, projection, databaseThere, rebuilt, milliseconds } = won
    void epochs.stop()
    const heard = following?.heard() ?? []
    const found: CoordinatorBase = { ...base, databaseThere }
    return wireWriter(life, found, projection, claimed, rebuilt, milliseconds, heard, serve, closeListener)
  }

  /** Looks again and again until it is this one's turn. */
  async function untilTurn(): Promise<void> {
    let pause = FIRST_LOOK_MS
    for (let look = await turn.look(); look !== 'claim' && !stopping; look = await turn.look()) {
      pause = look === 'behind' ? Math.min(pause * 2, LOOK_EVERY_MS) : LOOK_EVERY_MS
      await sleep(pause)
    }
  }

  let look = await turn.look()
  for (let pause = FIRST_LOOK_MS; look === 'behind'; look = await turn.look()) {
    await sleep(pause)
    pause = Math.min(pause * 2, LOOK_EVERY_MS)
  }
  if (look !== 'claim' && !life.follow) {
    if (look === 'writes') throw anotherWrites(epochs.place?.address ?? 'another address')
    await untilTurn()
  }
  if (look === 'claim' || !life.follow) {
    const won = await claim()
    if (won) return becomeWriter(won)
    if (!life.follow) throw new ExitError(exitCodes.fenced, 'Another coordinator claimed the event log first')
  }

  // Not loaded by one that writes at once: with it come the libraries of all resources.
  const { wireFollower } = await import('./coordinator-follower.ts')
  following = await wireFollower(life, { base, epochs, watch, turn })
  serve(following.listener)
  logger.info('epoch.followed', { writer: epochs.place?.address }, 'Follows the coordinator that writes the event log')
  let phase: CoordinatorPhase = following
  const promoted = (async () => {
    while (!stopping) {
      await untilTurn()
      if (stopping) return
      const won = await claim()
      if (!won) continue
      phase = await becomeWriter(won)
      following.promoted(won.claimed.epoch)
      return
    }
  })()
  promoted.catch((error: unknown) => life.fail(error))
  return {
    drain: async () => {
      stopping = true
      await promoted
      await phase.drain()
    },
    stop: async () => {
      await epochs.stop()
      await phase.stop()
    },
  }
}

const FIRST_LOOK_MS = 5
const DATABASE_AGAIN_MS = 500
/** By then a database that went away is known to be. */
const NOTICED_MS = 3000

/** Who wrote the log last, as far as the read models know. */
async function lastPlace(read: QueryRows): Promise<WriterPlace | undefined> {
  const events = await readLastEpochs(read)
  return events.reduce<WriterPlace | undefined>(
    (place, event) => nextPlace(place, { stream: systemStream, ...event }),
    undefined,
  )
}
