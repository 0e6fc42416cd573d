import type { ArchivedRecords } from '../archive/archived-records.ts'
import { readEnvelope } from '../envelope.ts'
import { MisconfiguredLog } from '../event-log.ts'
import { fold, sameState, zeroState } from '../fold.ts'
import type { LogPosition, LogStart, StoredRecord } from '../record-store.ts'

/** The archives that a process can reach, by the id of their log. */
export interface LogArchives {
  of(logId: string): ArchivedRecords
  /** Ids of the logs that have an archive. @throws LogUnavailable */
  logs(): Promise<readonly string[]>
}

export interface TopicStartDeps {
  readonly topic: string
  readonly partitions: number
  /** Absent: a log must be complete, or it is refused. */
  readonly archives: LogArchives | undefined
  /** The first offset that the broker still has. */
  readonly lowOf: (partition: number) => Promise<bigint>
  /** Reads from the topic only, not from the archive. */
  readonly fetch: (partition: number, from: bigint, limit: number) => Promise<readonly StoredRecord[]>
}

/** A log whose first records have left its topic, and the archive that has them. */
export interface BegunTopic extends LogStart {
  readonly archive: ArchivedRecords
}

/** More records than a batch has: the record after a batch shows what its writer had seen. */
const COMPARED_RECORDS = 2000

/**
 * Finds where a topic begins after its first records were deleted. Kafka keeps only an offset, and after a crash
 * perhaps an earlier one. So the beginning is the end of an archived period, which an anchor signed; all earlier
 * records are read from the archive.
 */
export class TopicStart {
  readonly #deps: TopicStartDeps
  #seen = ''
  #begun: BegunTopic | undefined

  constructor(deps: TopicStartDeps) {
    this.#deps = deps
  }

  /** The result of the last `find`. */
  get known(): BegunTopic | undefined {
    return this.#begun
  }

  /**
   * Looks where the topic begins.
   * @returns undefined while the topic is complete
   * @throws MisconfiguredLog when its first records are gone, and no archive has them
   */
  async find(): Promise<BegunTopic | undefined> {
    const { partitions, lowOf } = this.#deps
    const lows = await Promise.all(Array.from({ length: partitions }, (_, partition) => lowOf(partition)))
    const seen = lows.join(' ')
    if (seen === this.#seen) return this.#begun
    this.#begun = lows.every((low) => low === 0n) ? undefined : await this.#find(lows)
    this.#seen = seen
    return this.#begun
  }

  async #find(lows: readonly bigint[]): Promise<BegunTopic> {
    const { topic, archives } = this.#deps
    for (const logId of (await archives?.logs()) ?? []) {
      const archive = archives!.of(logId)
      const at = await this.#endPositionsIn(archive, lows)
      if (at) return { logId, at, archive }
    }
    const partition = lows.findIndex((low) => low > 0n)
    throw new MisconfiguredLog(
      `Topic ${topic} begins at offset ${lows[partition]} in partition ${partition}: earlier records were deleted, and no archive in archiveFolder has them`,
    )
  }

  async #endPositionsIn(
    archive: ArchivedRecords,
    lows: readonly bigint[],
  ): Promise<readonly LogPosition[] | undefined> {
    const at: LogPosition[] = []
    for (const [partition, low] of lows.entries()) {
      const position = low === 0n ? { offset: 0n, state: zeroState } : await archive.endFrom(partition, low)
      if (!position) return undefined
      const records = low === 0n ? [] : await this.#deps.fetch(partition, position.offset, COMPARED_RECORDS)
      // An archived period always has a record behind it: its own anchor.
      if (low > 0n && (records.length === 0 || !follow(position, records))) return undefined
      at.push(position)
    }
    return at
  }
}

/** Whether the states that the writers of records had seen match a position. Needs no data keys. */
function follow(position: LogPosition, records: readonly StoredRecord[]): boolean {
  const states = [position.state]
  for (const { header, text } of records) {
    const envelope = header?.kind === 'event' ? readEnvelope(text) : undefined
    const { verdict, state } = fold(states.at(-1)!, { header, hash: envelope?.hash ?? '' })
    if (header && (verdict === 'valid' || verdict === 'epoch') && header.seen.offset >= position.offset) {
      const known = states[Number(header.seen.offset - position.offset)]
      if (!known || !sameState(known, header.seen.state)) return false
    }
    states.push(state)
  }
  return true
}

/** The archive that has an offset which has left the topic; undefined while the topic has it. */
export function leftBefore(
  begun: BegunTopic | undefined,
  partition: number,
  offset: bigint,
): ArchivedRecords | undefined {
  return begun && offset < begun.at[partition]!.offset ? begun.archive : undefined
}

/** The first offset of each partition that the topic still has. */
export function offsetsOf({ at }: BegunTopic): readonly bigint[] {
  return at.map(({ offset }) => offset)
}
