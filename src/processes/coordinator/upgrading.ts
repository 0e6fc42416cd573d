import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import type { EventReader, LogEnd } from '../../events/event-log.ts'
import { mendRefused } from '../../readmodels/mend-query.ts'
import { hasOlderTables } from '../../readmodels/older-tables.ts'
import { rebuildReadModels } from '../../readmodels/rebuild.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Logger } from '../../telemetry/logger.ts'

export interface UpgradingDeps {
  /** This process writes the log. */
  readonly log: EventReader & LogEnd
  readonly logsBefore: () => Promise<readonly (EventReader & LogEnd)[]>
  readonly connection: pg.ClientConfig
  readonly journal: Pick<SystemJournal, 'record'>
  /** Resolves when the projection has caught up. */
  readonly caughtUp: Promise<void>
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Builds read models of this version beside those of an earlier version, which stay in use meanwhile, and then switches
 * to them.
 */
export interface Upgrading {
  /** Stops. Incomplete tables are dropped: the next writer begins again. */
  stop(): void
}

/** Small batches, with a pause after each read, so that statements can run in between. */
const EVENTS_AT_ONCE = 500
const REST_MS = 5
const AGAIN_MS = 30_000

export function startUpgrading(deps: UpgradingDeps): Upgrading {
  const { connection, journal, clock, logger } = deps
  const stopping = new AbortController()

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        if (!(await hasOlderTables(connection))) return await mendLetters()
        logger.info(
          'projection.rebuilding',
          {},
          'The read models are rebuilt for this version; the earlier ones serve until then',
        )
        const rebuilt = await rebuildReadModels({
          log: resting(deps.log, stopping.signal),
          before: await deps.logsBefore(),
          database: connection,
          clock,
          batch: EVENTS_AT_ONCE,
        })
        logger.info('projection.rebuilt', { ...rebuilt }, 'The read models were rebuilt from the event log')
        const { events, milliseconds, deadLetters } = rebuilt
        await journal.record('ProjectionRebuilt', { events, milliseconds, deadLetters })
        return
      } catch (error) {
        if (stopping.signal.aborted) return
        logger.warn(
          'projection.trouble',
          { err: error },
          'The read models could not be rebuilt for this version; the coordinator tries again',
        )
        await sleep(AGAIN_MS, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
      }
    }
  }

  async function mendLetters(): Promise<void> {
    const mended = await mendRefused(connection, stopping.signal)
    if (mended.deadLetters === 0) return
    logger.info(
      'projection.rebuilt',
      { ...mended },
      'Queries with events that an older version could not read were completed',
    )
    await journal.record('ProjectionRebuilt', { events: mended.events, milliseconds: 0, deadLetters: 0 })
  }

  // If the read models never catch up, this process has lost the log.
  deps.caughtUp.then(run).catch(() => {})
  return { stop: () => stopping.abort() }
}

function resting(log: EventReader & LogEnd, stopping: AbortSignal): EventReader & LogEnd {
  return {
    tip: () => log.tip(),
    async read(...args) {
      await sleep(REST_MS, undefined, { signal: stopping })
      return log.read(...args)
    },
  }
}
