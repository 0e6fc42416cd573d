import { setTimeout as sleep } from 'node:timers/promises'
import { beginning, checkpointFromJson, type Checkpoint, type EventReader, type LogEnd } from './event-log.ts'
import type { ProjectionLag, QueryRows } from './projection.ts'
import type { ProjectionRunner } from './projection-runner.ts'
import { eventsBelow } from './projection-store.ts'

/** How far the read models are, for a process that only reads them while another process writes them. */
export interface ProjectionWatch extends Pick<ProjectionRunner, 'barrier' | 'lag'> {
  /** The checkpoint in the database. */
  checkpoint(): Promise<Checkpoint>
}

interface Progress {
  readonly checkpoint: Checkpoint
  /** Milliseconds since the checkpoint moved. */
  readonly ageMillis: number
}

const POLL_MS = 25

/**
 * Makes a watch.
 * @param read rows of the read models, which are first in the search path
 * @param name of the projection
 */
export function createProjectionWatch(log: LogEnd & EventReader, read: QueryRows, name: string): ProjectionWatch {
  let asked: Promise<Progress> | undefined

  /** Callers share a running query. */
  function progress(): Promise<Progress> {
    return (asked ??= (async () => {
      const [row] = await read(
        `select checkpoint, extract(epoch from now() - updated_at) * 1000 as age from checkpoints
         where name = $1 order by version desc limit 1`,
        [name],
      )
      return row
        ? { checkpoint: checkpointFromJson(String(row['checkpoint'])), ageMillis: Number(row['age']) }
        : { checkpoint: beginning(), ageMillis: 0 }
    })().finally(() => (asked = undefined)))
  }

  return {
    checkpoint: async () => (await progress()).checkpoint,
    async barrier(timeoutMs) {
      const until = performance.now() + timeoutMs
      try {
        const tip = await Promise.race([log.tip(), sleep(timeoutMs, undefined, { ref: false })])
        if (!tip) return false
        while (!holds((await progress()).checkpoint, tip)) {
          if (performance.now() >= until) return false
          await sleep(POLL_MS)
        }
        return true
      } catch {
        return false
      }
    },
    async lag(): Promise<ProjectionLag> {
      const [tip, { checkpoint, ageMillis }] = await Promise.all([log.tip(), progress()])
      const events = Math.max(0, eventsBelow(tip) - eventsBelow(checkpoint))
      if (events === 0) return { events, oldestMillis: 0 }
      // The lag is the age of the oldest event that is not projected. The checkpoint may be days older than this event.
      const oldest = await log.read(checkpoint, 1).then(
        (read) => read.events[0]?.time,
        () => undefined,
      )
      const age = oldest === undefined ? ageMillis : Date.now() - Date.parse(oldest)
      return { events, oldestMillis: Math.max(0, Math.round(age)) }
    },
  }
}

/** Compares counts, not offsets: the log may end with records that do not count, and those are never projected. */
function holds(reached: Checkpoint, tip: Checkpoint): boolean {
  return tip.at.every((position, partition) => (reached.at[partition]?.state.count ?? 0) >= position.state.count)
}
