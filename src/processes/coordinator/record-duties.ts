import type { Claimed } from '../../coordinator/recovery/claim-epoch.ts'
import { diskSpaceOf } from '../../execution/worker/disk-space.ts'
import type { Rebuilt } from '../../readmodels/rebuild.ts'
import { deriveKey } from '../../security/cluster-secret.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import { archivesOf } from '../event-log/archives-of.ts'
import { logsBefore } from '../event-log/logs-before.ts'
import { startArchivingQueries, type ArchivingQueries } from '../record/archiving-queries.ts'
import { startArchiving, type Archiving } from '../record/archiving.ts'
import { startAuditing, type Auditing } from '../record/auditing.ts'
import { startPublishing } from '../record/publishing.ts'
import { startUpgrading, type Upgrading } from './upgrading.ts'
import type { CoordinatorBase } from './wire-base.ts'

export interface DutyDeps {
  readonly base: CoordinatorBase
  /** The epoch, claimed just now. */
  readonly claimed: Pick<Claimed, 'epoch'>
  /** Read models that were rebuilt before the claim. */
  readonly rebuilt: Rebuilt | undefined
}

/** The duties of a writer for the record, besides its answers to clients. */
export interface RecordDuties {
  readonly auditing: Auditing
  readonly publishing: ReturnType<typeof startPublishing>
  readonly archivingQueries: ArchivingQueries
  /** Begins no further step of archives and upgrades. May be called twice. */
  pause(): void
}

/**
 * Starts the duties of a writer for the record: audit, publishing, archives, upgrade of the log.
 * @param begin the position of the log at the claim
 * @param caughtUp resolves when the read models have all events up to the claim
 */
export function startRecordDuties(
  deps: DutyDeps,
  begin: Parameters<typeof startPublishing>[1],
  caughtUp: Promise<void>,
): RecordDuties {
  const auditing = auditingOf(deps, caughtUp)
  const publishing = startPublishing(deps.base, begin)
  const archiving = archivingOf(deps, auditing.journal, caughtUp)
  const archivingQueries = archivingQueriesOf(deps, begin.logId, caughtUp)
  const upgrading = upgradingOf(deps, auditing.journal, caughtUp)
  return {
    auditing,
    publishing,
    archivingQueries,
    pause() {
      upgrading.stop()
      archiving.stop()
      archivingQueries.stop()
    },
  }
}

function auditingOf({ base, rebuilt }: DutyDeps, caughtUp: Promise<void>): Auditing {
  const { log, config, localCatalogs: catalogs, secret, ownRead: read, telemetry } = base
  return startAuditing({
    files: base.access.fileVersions(),
    log,
    caughtUp,
    clock,
    config,
    catalogs,
    digestKey: deriveKey(secret, 'catalog-digest'),
    anchorMacKey: deriveKey(secret, 'anchor-keys'),
    read,
    rebuilt,
    logger: telemetry.logger,
  })
}

function archivingOf({ base, claimed }: DutyDeps, journal: Auditing['journal'], caughtUp: Promise<void>): Archiving {
  const { config, connection, log, ownRead: read, telemetry } = base
  const { logger, meters } = telemetry
  const { epoch } = claimed
  return startArchiving({ config, connection, log, epoch, journal, query: read, caughtUp, clock, logger, meters })
}

function upgradingOf({ base }: DutyDeps, journal: Auditing['journal'], caughtUp: Promise<void>): Upgrading {
  const { config, connection, log, telemetry } = base
  const before = (): ReturnType<typeof logsBefore> => logsBefore(log, archivesOf(config))
  return startUpgrading({ log, logsBefore: before, connection, journal, caughtUp, clock, logger: telemetry.logger })
}

function archivingQueriesOf({ base }: DutyDeps, logId: string, caughtUp: Promise<void>): ArchivingQueries {
  const { config, connection, archiveOf, log, telemetry } = base
  const { logger, meters } = telemetry
  const files = archiveOf(logId)
  const logBegins = async (): Promise<string | undefined> => (await log.read(await log.start(), 1)).events[0]?.time
  const freeBytes = async (folder: string): Promise<number> => (await diskSpaceOf(folder)).freeBytes
  return startArchivingQueries({
    config,
    connection,
    files,
    ...(config.kafkaBrokers.length > 0 && { logBegins }),
    caughtUp,
    freeBytes,
    clock,
    logger,
    meters,
  })
}
