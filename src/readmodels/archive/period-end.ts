import type { KeyObject } from 'node:crypto'
import { exportAnchor, fingerprint, isSignedBy, type ExportedAnchor } from '../../events/audit/anchor.ts'
import { checkpointFromJson, type Checkpoint, type EventHistory, type LogEnd } from '../../events/event-log.ts'
import type { QueryRows } from '../../events/projection.ts'
import { readAnchorsAfter } from '../audit/queries.ts'
import { READ_MODELS } from '../projection.ts'
import { findOpenQueries } from '../queries/open-queries.ts'

export interface PeriodEndParts {
  readonly log: EventHistory & LogEnd
  /** The read models, which hold what the log had a while ago. */
  readonly query: QueryRows
  /** Whose anchors end periods. */
  readonly key: KeyObject
}

/** Which records are to be archived: those that are old enough, and those that are too many. */
export interface ArchivePolicy {
  /** Those written before, ISO UTC. */
  readonly before: string | undefined
  /** Those behind which the log has so many more. */
  readonly keepRecords: bigint | undefined
  /** Of a period, about. */
  readonly mostRecords: bigint
  /** A period is made when it has so many, or when its anchors lie so far apart; the first one in any case. */
  readonly leastRecords: bigint
  readonly leastMs: number
}

/** Where the last period ends. */
export interface PeriodsEnd {
  readonly anchor: number
  /** Of that anchor, ISO UTC. */
  readonly time: string
  readonly at: Checkpoint['at']
}

const ANCHORS_AT_ONCE = 500
/** What a period makes of records itself: that it was archived, that it was dropped, anchors of that, perhaps a claim. */
const OF_ARCHIVING = 20n
const STREAMS_AT_ONCE = 1000

/**
 * By log partition the first offset that must stay: no open query has events below, and the read models have all below.
 * @returns undefined while the read models are empty
 */
export async function firstNeeded({ log, query }: PeriodEndParts): Promise<readonly bigint[] | undefined> {
  const rows = await query('select checkpoint from checkpoints where name = $1 and version = $2', [
    READ_MODELS.name,
    READ_MODELS.version,
  ])
  const text = rows[0]?.['checkpoint']
  if (typeof text !== 'string') return undefined
  const needed = checkpointFromJson(text).at.map(({ offset }) => offset)
  const keep = (partition: number, offset: bigint): void => {
    if (offset < (needed[partition] ?? 0n)) needed[partition] = offset
  }
  const { open } = await findOpenQueries(log, query)
  for (let from = 0; from < open.length; from += STREAMS_AT_ONCE) {
    const found = await query(
      'select "partition", min("position") as "first" from query_events where stream = any($1) group by 1',
      [open.slice(from, from + STREAMS_AT_ONCE)],
    )
    for (const row of found) keep(Number(row['partition']), BigInt(String(row['first'])))
  }
  return needed
}

/**
 * The anchor at which the next period ends: the last one that leaves the period at the size asked for, where there is one,
 * of those that were made in time and below which nothing is needed.
 * @param periodsEnd where the last period ends; undefined: nothing is archived yet
 * @param needed as of `firstNeeded`
 */
export async function nextPeriodEnd(
  { log, query, key }: PeriodEndParts,
  periodsEnd: PeriodsEnd | undefined,
  needed: readonly bigint[],
  policy: ArchivePolicy,
): Promise<ExportedAnchor | undefined> {
  const { before, keepRecords, mostRecords } = policy
  const from = periodsEnd?.at ?? []
  const { at: tip, logId } = await log.tip()
  let chosen: ExportedAnchor | undefined
  let size = 0n
  const worth = (): ExportedAnchor | undefined => {
    const since = periodsEnd ? Date.parse(periodsEnd.time) : -Infinity
    if (!chosen || size >= policy.leastRecords || !periodsEnd) return chosen
    const isLate = Date.parse(chosen.time) - since >= policy.leastMs
    return isLate && size > OF_ARCHIVING ? chosen : undefined
  }
  for (let number = periodsEnd?.anchor ?? 0; ;) {
    const anchors = await readAnchorsAfter(query, { logId, number }, ANCHORS_AT_ONCE)
    for (const { anchor, time } of anchors) {
      const records = distance(from, anchor.at)
      const isNeeded = anchor.at.some(({ offset }, partition) => BigInt(offset) > (needed[partition] ?? 0n))
      const isOld = before !== undefined && time < before
      const isTooMuch = keepRecords !== undefined && distance(anchor.at, tip) >= keepRecords
      if (isNeeded || !(isOld || isTooMuch) || (chosen && records > mostRecords)) return worth()
      // Those of another coordinator's key are signed by nobody who is believed here.
      if (records > 0n && anchor.key === fingerprint(key) && isSignedBy(anchor, key)) {
        chosen = exportAnchor(anchor, time, key)
        size = records
      }
    }
    if (anchors.length < ANCHORS_AT_ONCE) return worth()
    number = anchors.at(-1)!.anchor.number
  }
}

/** Records between two places, over all log partitions. */
function distance(
  from: readonly { readonly offset: bigint | string }[],
  to: readonly { readonly offset: bigint | string }[],
): bigint {
  return to.reduce((sum, { offset }, partition) => sum + BigInt(offset) - BigInt(from[partition]?.offset ?? 0), 0n)
}
