import type { Config } from '../../config/load-config.ts'
import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import { startAnchorer, type Anchorer } from '../../coordinator/system/anchorer.ts'
import type { FileVersion } from '../../coordinator/system/file-record.ts'
import { createRefusalLog, type WrittenRefusals } from '../../coordinator/system/refusal-log.ts'
import { createSystemJournal, type SystemJournal } from '../../coordinator/system/system-journal.ts'
import {
  createKeyRegistrar,
  type IntroducedKey,
  type KeyIntroduction,
  type KeyRegistrar,
} from '../../coordinator/system/key-introductions.ts'
import { exportAnchor, fingerprint, isSignedBy } from '../../events/audit/anchor.ts'
import type { EventAppender, LogFeed, LogEnd } from '../../events/event-log.ts'
import type { QueryRows } from '../../events/projection.ts'
import { readAnchorKeys, readAnchorsAfter, readLastAnchor } from '../../readmodels/audit/queries.ts'
import type { Rebuilt } from '../../readmodels/rebuild.ts'
import { loadAnchorKey } from '../../security/anchor-key.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { createAnchorExport } from '../event-log/anchor-export.ts'
import { anchorPaths } from '../event-log/anchor-paths.ts'
import { configurationLoaded } from './configuration-loaded.ts'

export interface AuditingDeps {
  /** The log, claimed by this process. */
  readonly log: EventAppender & LogFeed & LogEnd
  /** Resolves when the read models hold everything that was in the log at the start. */
  readonly caughtUp: Promise<void>
  readonly clock: Clock
  readonly config: Config
  readonly catalogs: Catalogs
  /** The access files in force. */
  readonly files: readonly FileVersion[]
  readonly digestKey: Buffer
  /** Key by which coordinators of one cluster prove their anchor keys to each other. */
  readonly anchorMacKey: Buffer
  readonly read: QueryRows
  /** Read models that were rebuilt before the claim. */
  readonly rebuilt: Rebuilt | undefined
  readonly logger: Logger
}

/** The reports of this coordinator about itself, in the log and elsewhere. */
export interface Auditing {
  readonly journal: SystemJournal
  readonly refusals: WrittenRefusals
  /**
   * Takes the anchor key of a following coordinator.
   * @returns the key of this coordinator; undefined if the other coordinator has not proved that it belongs to the
   * cluster
   */
  introduceKey(introduction: KeyIntroduction): Promise<IntroducedKey | undefined>
  /** Called while the log can still be written. */
  stop(): Promise<void>
}

/** An unavailable log must not hold up a drain. */
const STOP_WAIT_MS = 2000

export function startAuditing(deps: AuditingDeps): Auditing {
  const { log, clock, logger, rebuilt } = deps
  const journal = createSystemJournal(log, clock)
  const refusals = createRefusalLog(journal, clock)
  const recording = journal.record('ConfigurationLoaded', configurationLoaded(deps, deps.digestKey))
  // If the log is lost to another writer, that writer records its own configuration.
  recording.catch(() => {})
  if (rebuilt) {
    const { events, milliseconds, deadLetters } = rebuilt
    journal.record('ProjectionRebuilt', { events, milliseconds, deadLetters }).catch(() => {})
  }
  const registering = startRegistrar(deps, journal)
  registering.catch((error: unknown) =>
    logger.error('anchor.trouble', { err: error }, 'The anchor key could not be recorded: audits may not know it'),
  )
  const anchoring = startAnchoring(deps, journal)
  anchoring.catch((error: unknown) =>
    logger.error(
      'anchor.trouble',
      { err: error },
      'The event log is not anchored: audits cannot detect a rewritten log',
    ),
  )
  let stopping: Promise<void> | undefined
  return {
    journal,
    refusals,
    introduceKey: async (introduction) => (await registering).introduce(introduction),
    stop: () =>
      (stopping ??= Promise.race([
        (async () => {
          await refusals.stop()
          await anchoring.then(
            (running) => running.stop(),
            () => {},
          )
        })(),
        new Promise<void>((resolve) => setTimeout(resolve, STOP_WAIT_MS).unref()),
      ])),
  }
}

async function startRegistrar(
  { log, caughtUp, config, read, anchorMacKey }: AuditingDeps,
  journal: SystemJournal,
): Promise<KeyRegistrar> {
  const key = loadAnchorKey(anchorPaths(config).key)
  await caughtUp
  const { logId } = await log.tip()
  const recorded = await readAnchorKeys(read, logId)
  const registrar = createKeyRegistrar({ key, logId, macKey: anchorMacKey, journal, recorded })
  await registrar.recordOwn()
  return registrar
}

async function startAnchoring(
  { log, caughtUp, config, read, logger }: AuditingDeps,
  journal: SystemJournal,
): Promise<Pick<Anchorer, 'stop'>> {
  const paths = anchorPaths(config)
  const key = loadAnchorKey(paths.key)
  const exported = createAnchorExport({
    file: paths.file,
    webhook: config.anchorWebhook,
    onTrouble: (error) =>
      logger.warn('anchor.trouble', { err: error }, 'An anchor could not be exported; the coordinator tries again'),
  })
  await caughtUp
  const { logId, at } = await log.tip()
  const last = await readLastAnchor(read, logId)
  // Anchors that are valid but not in the file, because the process ended in between.
  for (let number = await exported.lastNumber(); number < (last?.anchor.number ?? 0);) {
    const missing = await readAnchorsAfter(read, { logId, number }, 500)
    if (missing.length === 0) break
    for (const { anchor, time } of missing)
      // Anchors signed with another coordinator's key are in that coordinator's file.
      if (anchor.key === fingerprint(key.public) && isSignedBy(anchor, key.public))
        exported.take(exportAnchor(anchor, time, key.public))
    number = missing.at(-1)!.anchor.number
  }
  const anchorer = startAnchorer({
    log,
    partitions: at.length,
    journal,
    key,
    previous: last?.anchor,
    everyMs: config.timeouts.anchorMs,
    everyEvents: config.limits.anchorEvents,
    onAnchored: exported.take,
    onEnd: (error) => logger.error('anchor.trouble', { err: error }, 'The event log is no longer anchored'),
  })
  return {
    async stop() {
      await anchorer.stop()
      await exported.stop()
    },
  }
}
