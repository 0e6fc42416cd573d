import { VISITOR_ADDRESS } from '../../coordinator/system/events.ts'
import { createSystemJournal } from '../../coordinator/system/system-journal.ts'
import type { Archive } from '../../events/archive/archive.ts'
import { archivePeriod } from '../../events/archive/archiver.ts'
import { PERIOD_RECORDS, placeOf, type PeriodManifest } from '../../events/archive/manifest.ts'
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

export interface ClosingParts {
  /** Written by nobody else. */
  readonly log: EventHistory & LogEnd
  readonly store: Pick<RecordStore, 'fetch' | 'start' | 'forget'>
  readonly archive: Archive
  /** The read models, which hold all of the log. */
  readonly query: QueryRows
  readonly key: AnchorKey
  /** Of a period, about. @default a million */
  readonly mostRecords?: bigint
}

/** After all that was written. */
const NEVER = '9999-12-31T00:00:00.000Z'

/**
 * Archives a log to its very end, by an anchor that stands in the archive alone: nothing is written behind it, and nothing
 * dropped. One that is archived whole already stays so.
 * @returns the last period
 * @throws MisconfiguredLog when a query is open
 */
export async function closeLog(parts: ClosingParts): Promise<PeriodManifest> {
  const { log, archive, query, key } = parts
  const tip = await log.tip()
  const last = (await archive.reread()).at(-1)
  if (last && last.to.every(({ offset }, partition) => BigInt(offset) === tip.at[partition]?.offset)) return last
  const { open } = await findOpenQueries(log, query)
  if (open.length > 0)
    throw new MisconfiguredLog(
      `${open.length} queries are open, ${open[0]} is the first: start the coordinator, and stop it once they have ended`,
    )
  await archiveWholePeriods(parts, tip)
  const previous = (await readLastAnchor(query, tip.logId))?.anchor
  const from = previous ? anchorCheckpoint(previous) : beginning(tip.at.length)
  const { heads, time } = await headsBetween(log, from, tip)
  const anchor = makeAnchor(tip, heads, previous, key)
  return archivePeriod({ ...parts, canEnd: isQueryId }, exportAnchor(anchor, time, key.public))
}

/** A period is held in memory: those of a long log end where anchors are, as they do while a coordinator runs. */
async function archiveWholePeriods(
  { mostRecords = PERIOD_RECORDS, ...parts }: ClosingParts,
  { at }: Checkpoint,
): Promise<void> {
  const { log, archive, query, key } = parts
  const needed = at.map(({ offset }) => offset)
  const policy = { before: NEVER, keepRecords: undefined, mostRecords, leastRecords: 0n, leastMs: 0 }
  for (;;) {
    const last = (await archive.periods()).at(-1)
    const end = last && { anchor: last.anchor.number, time: last.anchor.time, at: last.to.map(placeOf) }
    const left = at.reduce((sum, { offset }, partition) => sum + offset - (end?.at[partition]?.offset ?? 0n), 0n)
    if (left <= mostRecords) return
    const anchor = await nextPeriodEnd({ log, query, key: key.public }, end, needed, policy)
    if (!anchor) return
    await archivePeriod({ ...parts, canEnd: isQueryId }, anchor)
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

export interface ContinueParts {
  /** Opened, and new. */
  readonly log: EventLog
  /** Of the log before: it is archived up to there. */
  readonly last: PeriodManifest
  readonly query: QueryRows
  readonly by: string
}

/**
 * Begins a log with an event that names the end of another one. Epochs and the streams that never end go on where they stood,
 * read models keep what they have. It may be cut off anywhere and be called again.
 * @returns whether it was not so already
 * @throws MisconfiguredLog when the log has something else | Fenced | LogUnavailable
 */
export async function continueLog({ log, last, query, by }: ContinueParts): Promise<boolean> {
  const there = await continuedFrom(log)
  if (there?.logId === last.logId && there.anchorHash === anchorHash(last.anchor)) return false
  const { events } = await log.read(beginning((await log.tip()).at.length), 50)
  // Claims of calls that were cut off.
  if (there || !events.every(isVisit)) throw new MisconfiguredLog('The log to go on with has events already')
  const { partitions } = await log.open()
  await forgetPlace(query, partitions)
  const epoch = Math.max(...last.to.map((place) => place.epoch))
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

/** The read models have nothing of the log that begins; what they have stays. */
async function forgetPlace(query: QueryRows, partitions: number): Promise<void> {
  await query(
    `update checkpoints set checkpoint = $1, events = 0, revision = revision + 1, updated_at = now() where name = $2`,
    [checkpointToJson(beginning(partitions)), READ_MODELS.name],
  )
}
