import { setTimeout as sleep } from 'node:timers/promises'
import { hasEventsOf, type EventReader, type LogFeed, type LogEnd } from '../../events/event-log.ts'
import { createProjectionRunner, type ProjectionRunner } from '../../events/projection-runner.ts'
import { readModelCheckpoint } from '../../readmodels/audit/compare-read-models.ts'
import { createReadModelsProjection } from '../../readmodels/projection.ts'
import { systemClock } from '../../shared/clock.ts'

/** Brings the read models up to date with the log where no coordinator does. */
export interface LoneFollower {
  /**
   * Returns when the read models hold what is in the log now. Waits first whether another process brings them there.
   */
  reach(): Promise<void>
  /** Starts the projection at once, without waiting for another process. */
  start(): Promise<void>
  stop(): Promise<void>
}

/** A running coordinator is never further behind. */
const OTHERS_MS = 1500
const POLL_MS = 50
const BARRIER_MS = 60_000

/** Makes one for a program that reads streams of a log that finds them by the read models. */
export function createLoneFollower(log: EventReader & LogFeed & LogEnd, databaseUrl: string): LoneFollower {
  const database = { connectionString: databaseUrl }
  let runner: ProjectionRunner | undefined

  async function reachedByOthers(): Promise<boolean> {
    const tip = await log.tip()
    for (const until = performance.now() + OTHERS_MS; ; await sleep(POLL_MS)) {
      const checkpoint = await readModelCheckpoint(database)
      if (checkpoint && hasEventsOf(checkpoint, tip)) return true
      if (performance.now() > until) return false
    }
  }

  async function start(): Promise<void> {
    runner ??= createProjectionRunner({
      log,
      projection: createReadModelsProjection(),
      database,
      clock: systemClock,
      lingerMs: 0,
    })
    await runner.start()
  }

  return {
    start,
    async reach() {
      if (!runner && (await reachedByOthers())) return
      await start()
      while (!(await runner!.barrier(BARRIER_MS))) await log.tip()
    },
    async stop() {
      await runner?.stop()
    },
  }
}
