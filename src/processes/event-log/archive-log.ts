import { hash, type KeyObject } from 'node:crypto'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import { manifestText, type Archive } from '../../events/archive/archive.ts'
import { archivePeriod, dropArchived, type DropperDeps } from '../../events/archive/archiver.ts'
import { logPositionOf, type PeriodManifest } from '../../events/archive/manifest.ts'
import { LogUnavailable, type EventHistory, type LogEnd } from '../../events/event-log.ts'
import type { QueryRows } from '../../events/projection.ts'
import type { RecordDropper, RecordStore } from '../../events/record-store.ts'
import { firstNeeded, nextPeriodEnd, type ArchivePolicy } from '../../readmodels/archive/period-end.ts'
import { readRecordedPeriods } from '../../readmodels/audit/queries.ts'
import { isQueryId } from '../../shared/ids.ts'

export interface ArchiveLogDeps {
  /** This process writes the log. */
  readonly log: EventHistory & LogEnd
  readonly epoch: number
  readonly journal: SystemJournal
  /** The store of that log's records; opened. */
  readonly store: Pick<RecordStore, 'fetch' | 'start' | 'forget' | 'cipher'>
  readonly dropper: RecordDropper
  readonly archive: Archive
  /** The read models, which hold everything that the log recorded about its periods. */
  readonly query: QueryRows
  /** Periods end at anchors signed with this key. */
  readonly key: KeyObject
  /** The user who asked for it; absent if the settings did. */
  readonly by?: string
  /** Called before each period. */
  readonly isStopped?: () => boolean
}

/** The periods that one call archived, and those that it dropped from the log. */
export interface ArchivedLog {
  readonly archived: readonly PeriodManifest[]
  readonly dropped: readonly PeriodManifest[]
}

/**
 * Moves records that a policy selects from the log to its archive, period by period. Completes interrupted earlier
 * calls first.
 * @throws ArchiveDamaged when log and archive do not agree: nothing is dropped from there on
 * @throws Fenced | LogUnavailable
 */
export async function archiveLog(deps: ArchiveLogDeps, policy: ArchivePolicy): Promise<ArchivedLog> {
  const { archive, query, log, key } = deps
  if ((await archive.reread()).length === 0 && (await deps.store.start?.()))
    throw new LogUnavailable(
      `The archive at ${archive.folder} is missing: bring it back; Quipu does not begin a new one in its place`,
    )
  const dropping = await droppingOf(deps)
  const dropped = [...(await dropArchived(dropping))]
  const archived: PeriodManifest[] = []
  const needed = await firstNeeded({ log, query, key })
  while (needed && deps.isStopped?.() !== true) {
    const last = (await archive.periods()).at(-1)
    const end = last && { anchor: last.anchor.number, time: last.anchor.time, at: last.to.map(logPositionOf) }
    const anchor = await nextPeriodEnd({ log, query, key }, end, needed, policy)
    if (!anchor) break
    archived.push(await archivePeriod(dropping, anchor))
    dropped.push(...(await dropArchived(dropping)))
  }
  return { archived, dropped }
}

async function droppingOf(deps: ArchiveLogDeps): Promise<DropperDeps> {
  const { store, dropper, archive, epoch, journal, query, by } = deps
  const recorded = {
    LogArchived: new Set(await readRecordedPeriods(query, 'LogArchived')),
    LogDropped: new Set(await readRecordedPeriods(query, 'LogDropped')),
  }
  return {
    store,
    dropper,
    archive,
    epoch,
    canEnd: isQueryId,
    async announce(type, period) {
      const { number, from, to, anchor, records, events, segments, streams, heads } = period
      if (recorded[type].has(number)) return
      const range = { number, from: from.map(({ offset }) => offset), to: [...to], ...(by !== undefined && { by }) }
      if (type === 'LogDropped') await journal.record(type, range)
      else {
        const bytes = [...segments, streams, heads].reduce((sum, file) => sum + file.bytes, 0)
        const digest = hash('sha256', manifestText(period))
        await journal.record(type, { ...range, anchor: anchor.number, records, events, bytes, digest })
      }
      recorded[type].add(number)
    },
  }
}
