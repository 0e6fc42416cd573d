import type { KeyObject } from 'node:crypto'
import { exportAnchor, fingerprint, isSignedBy, type ExportedAnchor } from '../../events/audit/anchor.ts'
import { checkpointFromJson, type Checkpoint, type EventHistory, type LogEnd } from '../../events/event-log.ts'
import type { QueryRows } from '../../events/projection.ts'
import { readAnchorsAfter } from '../audit/queries.ts'
import { READ_MODELS } from '../projection.ts'
import { findOpenQueries } from '../queries/open-queries.ts'

export interface PeriodEndDeps {
  readonly log: EventHistory & LogEnd
  /** Reads the read models, which lag behind the log a little. */
  readonly query: QueryRows
  /** The key whose anchors end periods. */
  readonly key: KeyObject
}

/** Decides which records to archive: those that are old enough, and those beyond a number. */
export interface ArchivePolicy {
  /** Records written before this are archived, ISO UTC. */
  readonly before: string | undefined
  /** Records are archived when at least this number of records follow them in the log. */
  readonly keepRecords: bigint | undefined
  /** Approximate limit of a period. */
  readonly mostRecords: bigint
  /**
   * A period is made when it has at least so many records, or when the time between its anchors is at least so long.
   * The first period is always made.
   */
  readonly leastRecords: bigint
  readonly leastMs: number
}

/** The end of the last period. */
export interface PeriodsEnd {
  readonly anchor: number
  /** Time of that anchor, ISO UTC. */
  readonly time: string
  readonly at: Checkpoint['at']
}

const ANCHORS_AT_ONCE = 500
/**
 * Records that archiving a period adds to the log: events that it was archived and dropped, their anchors, perhaps a
 * claim.
 */
const OF_ARCHIVING = 20n
const STREAMS_AT_ONCE = 1000

/**
 * By log partition, the first offset that must stay in the log. No open query has events below it, and the read models
 * have all events below it.
 * @returns undefined while the read models are empty
 */
export async function firstNeeded({ log, query }: PeriodEndDeps): Promise<readonly bigint[] | undefined> {
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
 * Finds the anchor at which the next period ends. It is the last one that keeps the period within the wanted size,
 * among the anchors that are due by the policy and have no needed record below them.
 * @param periodsEnd the end of the last period; undefined: nothing is archived yet
 * @param needed as returned by `firstNeeded`
 */
export async function nextPeriodEnd(
  { log, query, key }: PeriodEndDeps,
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
      // Anchors of another coordinator's key are skipped: this process does not believe that key.
      if (records > 0n && anchor.key === fingerprint(key) && isSignedBy(anchor, key)) {
        chosen = exportAnchor(anchor, time, key)
        size = records
      }
    }
    if (anchors.length < ANCHORS_AT_ONCE) return worth()
    number = anchors.at(-1)!.anchor.number
  }
}

/** Number of records between two positions, over all log partitions. */
function distance(
  from: readonly { readonly offset: bigint | string }[],
  to: readonly { readonly offset: bigint | string }[],
): bigint {
  return to.reduce((sum, { offset }, partition) => sum + BigInt(offset) - BigInt(from[partition]?.offset ?? 0), 0n)
}
