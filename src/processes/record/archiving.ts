import type pg from 'pg'
import type { Config } from '../../config/load-config.ts'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import { ArchiveDamaged } from '../../events/archive/archived-records.ts'
import { EventLogError, type EventHistory, type LogEnd } from '../../events/event-log.ts'
import type { QueryRows } from '../../events/projection.ts'
import type { ArchivePolicy } from '../../readmodels/archive/period-end.ts'
import { loadAnchorKey } from '../../security/anchor-key.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Meters } from '../../telemetry/meters.ts'
import { anchorPaths } from '../event-log/anchor-paths.ts'
import { archiveLog } from '../event-log/archive-log.ts'
import { archivesOf } from '../event-log/archives-of.ts'
import { recordStoreOf } from '../event-log/event-log-of.ts'
import { archivePolicyOf } from './archive-policy.ts'

export interface ArchivingDeps {
  readonly config: Config
  readonly connection: pg.ClientConfig
  /** This process writes the log. */
  readonly log: EventHistory & LogEnd
  readonly epoch: number
  readonly journal: SystemJournal
  readonly query: QueryRows
  /** Resolves when the read models hold everything that was recorded before this epoch. */
  readonly caughtUp: Promise<void>
  readonly clock: Clock
  readonly logger: Logger
  readonly meters: () => Meters
}

/** Moves records that the settings select from the log to its archive, as long as this process writes the log. */
export interface Archiving {
  /** Interrupts a running round. The next writer continues it. */
  stop(): void
}

const ROUND_MS = 15_000

export function startArchiving(deps: ArchivingDeps): Archiving {
  const { config, clock, logger, meters } = deps
  const policyOf = archivePolicyOf(config)
  let stopped = false
  let timer: NodeJS.Timeout | undefined

  async function round(policy: ArchivePolicy): Promise<void> {
    const store = await recordStoreOf(config, deps.connection.connectionString!, { withKeys: true })
    try {
      await store.open()
      const { dropper } = store
      if (!dropper) return
      const { logId } = await deps.log.tip()
      const { dropped } = await archiveLog(
        {
          ...deps,
          store,
          dropper,
          archive: archivesOf(config)(logId),
          key: loadAnchorKey(anchorPaths(config).key).public,
          isStopped: () => stopped,
        },
        policy,
      )
      if (dropped.length === 0) return
      const records = dropped.reduce((sum, period) => sum + period.records, 0)
      meters().count('archivedRecords', {}, records)
      logger.info(
        'archive.done',
        { records, periods: dropped.length },
        'Records moved from the event log to its archive',
      )
    } finally {
      await store.close()
    }
  }

  async function run(policy: ArchivePolicy): Promise<void> {
    try {
      await round(policy)
      meters().count('archiveRounds', { result: 'done' })
    } catch (error) {
      if (stopped) return
      meters().count('archiveRounds', { result: 'failed' })
      const known = error instanceof EventLogError || error instanceof ArchiveDamaged
      logger.error(
        'archive.trouble',
        { err: error },
        known
          ? 'The event log could not be archived; no record was deleted, and the coordinator tries again'
          : 'Archiving failed',
      )
    }
  }

  async function goOn(): Promise<void> {
    if (!policyOf || stopped) return
    await run(policyOf(clock.now()))
    if (!stopped) timer = setTimeout(() => void goOn(), roundMs).unref()
  }

  const roundMs = Math.max(1000, Math.min(ROUND_MS, config.timeouts.archiveAfterMs ?? ROUND_MS))
  // If the read models never catch up, this process has lost the log.
  deps.caughtUp.then(goOn).catch(() => {})
  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
