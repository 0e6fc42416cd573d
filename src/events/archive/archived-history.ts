import { type Checkpoint, type EventReader, type LogEnd, type ReadFrom, type Recorded } from '../event-log.ts'
import { LogReader } from '../log-reader.ts'
import type { LogPosition, RecordStore } from '../record-store.ts'
import type { Archive } from './archive.ts'
import { logPositionOf, type PeriodManifest } from './manifest.ts'

/** The records of a log that is completely archived. */
export type ArchivedStore = Pick<RecordStore, 'fetch' | 'end' | 'endMayLag'>

/** Makes a store that reads from an archive. @param last period of the log */
export function archivedStore(archive: Archive, last: PeriodManifest): ArchivedStore {
  const endOffsets = last.to.map((position) => logPositionOf(position).offset)
  return {
    endMayLag: false,
    end: async (partition) => endOffsets[partition]!,
    async fetch(partition, from, limit) {
      const left = Number(endOffsets[partition]! - from)
      return left <= 0 ? [] : [...(await archive.fetch(partition, from, Math.min(limit, left)))]
    },
  }
}

/** All events of a log that is completely archived. */
export class ArchivedHistory implements EventReader, LogEnd {
  readonly #reader: LogReader
  readonly #tip: Checkpoint

  constructor(archive: Archive, last: PeriodManifest) {
    this.#reader = new LogReader(archivedStore(archive, last))
    this.#tip = { logId: last.logId, at: last.to.map(logPositionOf) }
  }

  async tip(): Promise<Checkpoint> {
    return this.#tip
  }

  async read(from: ReadFrom, limit: number): Promise<{ events: Recorded[]; next: Checkpoint }> {
    const { at: begun } = await this.#reader.begin(from)
    const at: LogPosition[] = [...begun]
    const events: Recorded[] = []
    for (let partition = 0; partition < at.length && events.length < limit;) {
      const position = at[partition]!
      const news = await this.#reader.step(partition, position, limit - events.length)
      at[partition] = news.position
      events.push(...news.events)
      if (news.position.offset === position.offset) partition++
    }
    return { events, next: this.#reader.trust({ logId: this.#tip.logId, at }) }
  }
}
