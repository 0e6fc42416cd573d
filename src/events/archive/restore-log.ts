import { setImmediate as nextLoopPass } from 'node:timers/promises'
import type { KeyObject } from 'node:crypto'
import { believes } from '../audit/anchor.ts'
import { LogUnavailable } from '../event-log.ts'
import { sameState, zeroState } from '../fold.ts'
import type { LogPosition, RecordStore, StoredRecord, StreamHead } from '../record-store.ts'
import type { Archive } from './archive.ts'
import { ArchiveDamaged } from './archived-records.ts'
import { checkArchived } from './archiver.ts'
import { CheckedFold } from './checked-fold.ts'
import { logPositionOf, type PeriodManifest } from './manifest.ts'

/** Receives records of an archive to make a log of them again. */
export interface RestoreTarget {
  /**
   * Begins an empty log.
   * @param from by log partition: the position where the log is to begin
   * @param heads last events before that position, of streams that never end
   * @throws LogUnavailable; ExitError when there is a log already
   */
  begin(logId: string, from: readonly LogPosition[], heads: ReadonlyMap<string, StreamHead>): Promise<void>
  /** Writes the next records of a log partition. @throws LogUnavailable | ArchiveDamaged */
  put(partition: number, records: readonly StoredRecord[]): Promise<void>
  /** Makes the new log count: all records are written and match what was signed. @throws LogUnavailable */
  finish(): Promise<void>
}

export interface RestoreOptions {
  readonly archive: Archive
  /** Numbers of the first and the last period. */
  readonly first: number
  readonly last: number
  /** Whether a stream can end. */
  readonly canEnd: (stream: string) => boolean
  /** Keys whose signatures are believed; undefined: an anchor must be signed by the key that it names. */
  readonly keys: readonly KeyObject[] | undefined
  readonly target: RestoreTarget
}

const RECORDS_AT_ONCE = 500

/**
 * Makes a log of the records of archived periods. Reads each period's files back as an audit does, and checks that the
 * records fold to the state that the period's anchor signed.
 * @returns the periods
 * @throws ArchiveDamaged | LogUnavailable
 */
export async function restoreLog(options: RestoreOptions): Promise<readonly PeriodManifest[]> {
  const { archive, first, last, canEnd, keys, target } = options
  const all = await archive.reread()
  const periods = all.slice(first - 1, last)
  if (periods.length !== last - first + 1 || periods.length === 0)
    throw new ArchiveDamaged(
      `The archive at ${archive.folder} has ${all.length} periods, but not periods ${first} to ${last}`,
    )
  const isBelieved = believes(keys)
  const before = all[first - 2]
  await target.begin(
    periods[0]!.logId,
    periods[0]!.from.map(logPositionOf),
    before ? await archive.heads(before) : new Map<string, StreamHead>(),
  )
  for (const period of periods)
    await putPeriod(archive, await checkArchived(archive, period, { canEnd, isBelieved }), target)
  await target.finish()
  return periods
}

/**
 * Copies a whole log to another store: first its archived records, then those in the store, each checked.
 * @param store no process writes to it meanwhile
 * @returns the number of records
 * @throws ArchiveDamaged | LogUnavailable
 */
export async function copyLog(store: Pick<RecordStore, 'end' | 'fetch'>, target: RestoreTarget): Promise<bigint> {
  const end = await store.end(0)
  const beginning: LogPosition = { offset: 0n, state: zeroState }
  await target.begin('', [beginning], new Map<string, StreamHead>())
  const fold = new CheckedFold(beginning)
  while (fold.position.offset < end) {
    const records = await store.fetch(0, fold.position.offset, RECORDS_AT_ONCE)
    for (const record of records) fold.take(record)
    if (records.length === 0) throw new LogUnavailable(`The log has no record at offset ${fold.position.offset}`)
    await target.put(0, records)
    await nextLoopPass()
  }
  await target.finish()
  return fold.position.offset
}

async function putPeriod(archive: Archive, period: PeriodManifest, target: RestoreTarget): Promise<void> {
  for (const [partition, from] of period.from.entries()) {
    const fold = new CheckedFold(logPositionOf(from))
    const end = logPositionOf(period.to[partition]!)
    while (fold.position.offset < end.offset) {
      const fetched = await archive.fetch(partition, fold.position.offset, RECORDS_AT_ONCE)
      const records = fetched.filter(({ offset }) => offset < end.offset)
      for (const record of records) fold.take(record)
      await target.put(partition, records)
      await nextLoopPass()
    }
    if (!sameState(fold.position.state, end.state))
      throw new ArchiveDamaged(`Period ${period.number} differs from what anchor ${period.anchor.number} signed`)
  }
}
