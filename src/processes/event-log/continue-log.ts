import { VISITOR_ADDRESS } from '../../coordinator/system/events.ts'
import { createSystemJournal } from '../../coordinator/system/system-journal.ts'
import type { Archive } from '../../events/archive/archive.ts'
import { archivePeriod } from '../../events/archive/archiver.ts'
import { PERIOD_RECORDS, logPositionOf, type PeriodManifest } from '../../events/archive/manifest.ts'
import {
  anchorCheckpoint,
  anchorHash,
  exportAnchor,
  makeAnchor,
  type AnchorKey,
  type Head,
} from '../../events/audit/anchor.ts'
import {
  beginning,
  checkpointToJson,
  MisconfiguredLog,
  type Checkpoint,
  type EventHistory,
  type EventLog,
  type EventReader,
  type LogEnd,
} from '../../events/event-log.ts'
import type { QueryRows } from '../../events/projection.ts'
import type { RecordStore } from '../../events/record-store.ts'
import { nextPeriodEnd } from '../../readmodels/archive/period-end.ts'
import { READ_MODELS } from '../../readmodels/projection.ts'
import { readLastAnchor } from '../../readmodels/audit/queries.ts'
import { findOpenQueries } from '../../readmodels/queries/open-queries.ts'
import { systemClock } from '../../shared/clock.ts'
import { isQueryId } from '../../shared/ids.ts'
import { version } from '../../shared/version.ts'
import { continuedFrom, isVisit } from './logs-before.ts'

export interface ClosingDeps {
  /** No other process writes this log. */
  readonly log: EventHistory & LogEnd
  readonly store: Pick<RecordStore, 'fetch' | 'start' | 'forget'>
  readonly archive: Archive
  /** The read models, which hold the whole log. */
  readonly query: QueryRows
  readonly key: AnchorKey
  /** Size of a period, approximately. @default a million */
  readonly mostRecords?: bigint
}

/** Later than every record. */
const NEVER = '9999-12-31T00:00:00.000Z'

/**
 * Archives a log to its very end. The last anchor is only in the archive: nothing is written to the log after it, and
 * nothing is dropped. Does nothing if the log is already archived completely.
 * @returns the last period
 * @throws MisconfiguredLog when a query is open
 */
export async function closeLog(deps: ClosingDeps): Promise<PeriodManifest> {
  const { log, archive, query, key } = deps
  const tip = await log.tip()
  const last = (await archive.reread()).at(-1)
  if (last && last.to.every(({ offset }, partition) => BigInt(offset) === tip.at[partition]?.offset)) return last
  const { open } = await findOpenQueries(log, query)
  if (open.length > 0)
    throw new MisconfiguredLog(
      `${open.length} queries are still open, the first is ${open[0]}: start the coordinator, and stop it after they have ended`,
    )
  await archiveWholePeriods(deps, tip)
  const previous = (await readLastAnchor(query, tip.logId))?.anchor
  const from = previous ? anchorCheckpoint(previous) : beginning(tip.at.length)
  const { heads, time } = await headsBetween(log, from, tip)
  const anchor = makeAnchor(tip, heads, previous, key)
  return archivePeriod({ ...deps, canEnd: isQueryId }, exportAnchor(anchor, time, key.public))
}

/** A period is held in memory. A long log is therefore cut at anchors, as a running coordinator does. */
async function archiveWholePeriods(
  { mostRecords = PERIOD_RECORDS, ...deps }: ClosingDeps,
  { at }: Checkpoint,
): Promise<void> {
  const { log, archive, query, key } = deps
  const needed = at.map(({ offset }) => offset)
  const policy = { before: NEVER, keepRecords: undefined, mostRecords, leastRecords: 0n, leastMs: 0 }
  for (;;) {
    const last = (await archive.periods()).at(-1)
    const end = last && { anchor: last.anchor.number, time: last.anchor.time, at: last.to.map(logPositionOf) }
    const left = at.reduce((sum, { offset }, partition) => sum + offset - (end?.at[partition]?.offset ?? 0n), 0n)
    if (left <= mostRecords) return
    const anchor = await nextPeriodEnd({ log, query, key: key.public }, end, needed, policy)
    if (!anchor) return
    await archivePeriod({ ...deps, canEnd: isQueryId }, anchor)
  }
}

async function headsBetween(
  log: EventReader,
  from: Checkpoint,
  tip: Checkpoint,
): Promise<{ readonly heads: ReadonlyMap<string, Head>; readonly time: string }> {
  const heads = new Map<string, Head>()
  let time = ''
  for (let at = from; ;) {
    const { events, next } = await log.read(at, 2000, tip)
    if (events.length === 0) return { heads, time }
    for (const { stream, sequence, hash } of events) heads.set(stream, { sequence, hash })
    time = events.at(-1)!.time
    at = next
  }
}

export interface ContinueDeps {
  /** Opened, and new. */
  readonly log: EventLog
  /** The last period of the previous log, which is archived up to there. */
  readonly last: PeriodManifest
  readonly query: QueryRows
  readonly by: string
}

/**
 * Begins a log with an event that names the end of another log. Epochs and the streams that never end continue their
 * numbers, and the read models keep their content. The call may be interrupted at any point and repeated.
 * @returns whether it did anything
 * @throws MisconfiguredLog when the log has other events | Fenced | LogUnavailable
 */
export async function continueLog({ log, last, query, by }: ContinueDeps): Promise<boolean> {
  const there = await continuedFrom(log)
  if (there?.logId === last.logId && there.anchorHash === anchorHash(last.anchor)) return false
  const { events } = await log.read(beginning((await log.tip()).at.length), 50)
  // Claims of interrupted calls.
  if (there || !events.every(isVisit)) throw new MisconfiguredLog('The new log already has events')
  const { partitions } = await log.open()
  await forgetPosition(query, partitions)
  const epoch = Math.max(...last.to.map((position) => position.epoch))
  await log.claim({ address: VISITOR_ADDRESS, version, above: epoch })
  const [records, counted] = last.to.reduce(([all, valid], to) => [all + Number(to.offset), valid + to.count], [0, 0])
  await createSystemJournal(log, systemClock).record('LogContinued', {
    logId: last.logId,
    periods: last.number,
    anchor: last.anchor.number,
    anchorHash: anchorHash(last.anchor),
    key: last.anchor.key,
    records,
    events: counted,
    epoch,
    by,
  })
  return true
}

/** Resets the checkpoint: the read models have nothing of the new log. Their content stays. */
async function forgetPosition(query: QueryRows, partitions: number): Promise<void> {
  await query(
    `update checkpoints set checkpoint = $1, events = 0, revision = revision + 1, updated_at = now() where name = $2`,
    [checkpointToJson(beginning(partitions)), READ_MODELS.name],
  )
}
