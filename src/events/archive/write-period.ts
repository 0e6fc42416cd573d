import { join } from 'node:path'
import { setImmediate as nextLoopPass } from 'node:timers/promises'
import type { ExportedAnchor } from '../audit/anchor.ts'
import { sameState, zeroState } from '../fold.ts'
import type { LogPosition, RecordStore, StoredRecord } from '../record-store.ts'
import type { Archive } from './archive.ts'
import { ArchiveDamaged } from './archived-records.ts'
import { CheckedFold } from './checked-fold.ts'
import { writeDurably } from './durable-files.ts'
import { logPositionOf, signedPositionOf, type PeriodManifest, type Segment } from './manifest.ts'
import { packLines, packRecords, sha256Of } from './segment.ts'
import { StreamIndexBuilder } from './stream-index.ts'

export interface WrittenPeriod {
  /** The folder of the copy, until it is published. */
  readonly folder: string
  readonly manifest: PeriodManifest
}

export interface PeriodDeps {
  readonly store: Pick<RecordStore, 'fetch'>
  readonly archive: Archive
  /** The anchor at the period's end. */
  readonly anchor: ExportedAnchor
  /** Whether a stream can end. */
  readonly canEnd: (stream: string) => boolean
}

/** Limits of one file; the first one reached ends it. */
const SEGMENT_RECORDS = 5000
const SEGMENT_BYTES = 4 << 20
/** Most records to read at once, so that other work of the event loop runs between. */
const RECORDS_AT_ONCE = 250

/** The position where the next period begins. */
function nextPeriodStart(periods: readonly PeriodManifest[], partitions: number): readonly LogPosition[] {
  const last = periods.at(-1)
  return last?.to.map(logPositionOf) ?? Array.from({ length: partitions }, () => ({ offset: 0n, state: zeroState }))
}

/**
 * Copies the records from the end of the last period to an anchor, and checks that they match their hashes and the
 * signature. The copy does not count until it is published.
 * @throws ArchiveDamaged when the log differs from what the anchor, or the last period, says
 * @throws LogUnavailable
 */
export async function writePeriod({ store, archive, anchor, canEnd }: PeriodDeps): Promise<WrittenPeriod> {
  const folder = await archive.beginCopy()
  try {
    return { folder, manifest: await copyInto(folder, { store, archive, anchor, canEnd }) }
  } catch (error) {
    await archive.discard(folder)
    throw error
  }
}

async function copyInto(folder: string, { store, archive, anchor, canEnd }: PeriodDeps): Promise<PeriodManifest> {
  const periods = await archive.reread()
  const number = periods.length + 1
  const from = nextPeriodStart(periods, anchor.at.length)
  const before = periods.at(-1)
  const index = new StreamIndexBuilder(from, before ? await archive.heads(before) : new Map(), canEnd)
  const segments: Segment[] = []
  let [records, events] = [0, 0]
  for (const [partition, start] of from.entries()) {
    const end = logPositionOf(anchor.at[partition]!)
    const fold = new CheckedFold(start)
    const writer = new SegmentWriter(folder, partition)
    while (fold.position.offset < end.offset) {
      const { offset } = fold.position
      const fetched = await store.fetch(partition, offset, RECORDS_AT_ONCE)
      const news = fetched.filter((record) => record.offset < end.offset)
      if (news.length === 0)
        throw new ArchiveDamaged(`The log ends before offset ${end.offset}, which an anchor signed`)
      for (const record of news) {
        const envelope = fold.take(record)
        if (envelope) index.add(record.stream, partition, record.offset, envelope)
        await writer.add(record)
        records++
      }
      await nextLoopPass()
    }
    if (!sameState(fold.position.state, end.state))
      throw new ArchiveDamaged(`The log below offset ${end.offset} differs from what anchor ${anchor.number} signed`)
    events += fold.events
    segments.push(...(await writer.end()))
  }
  const streams = await index.pack()
  const heads = await packLines([...index.heads].map(([stream, head]) => [stream, head.sequence, head.hash]))
  await writeDurably(join(folder, STREAMS), streams.bytes)
  await writeDurably(join(folder, HEADS), heads)
  return {
    format: 1,
    number,
    logId: anchor.logId,
    from: from.map(signedPositionOf),
    to: [...anchor.at],
    anchor,
    records,
    events,
    ...(index.names && { names: index.names }),
    segments,
    streams: { ...fileOf(STREAMS, streams.bytes), blocks: streams.blocks },
    heads: fileOf(HEADS, heads),
  }
}

const STREAMS = 'streams.jsonl.gz'
const HEADS = 'heads.jsonl.gz'

function fileOf(name: string, bytes: Buffer) {
  return { name, bytes: bytes.length, sha256: sha256Of(bytes) }
}

/** Writes the records of a log partition into files of limited size. */
class SegmentWriter {
  readonly #folder: string
  readonly #partition: number
  readonly #segments: Segment[] = []
  #records: StoredRecord[] = []
  #bytes = 0

  constructor(folder: string, partition: number) {
    this.#folder = folder
    this.#partition = partition
  }

  async add(record: StoredRecord): Promise<void> {
    this.#records.push(record)
    this.#bytes += record.text.length
    if (this.#records.length >= SEGMENT_RECORDS || this.#bytes >= SEGMENT_BYTES) await this.#write()
  }

  async end(): Promise<readonly Segment[]> {
    if (this.#records.length > 0) await this.#write()
    return this.#segments
  }

  async #write(): Promise<void> {
    const records = this.#records
    this.#records = []
    this.#bytes = 0
    const bytes = await packRecords(records)
    const [from, to] = [records[0]!.offset, records.at(-1)!.offset + 1n].map(String) as [string, string]
    const name = `${this.#partition}-${from}.jsonl.gz`
    await writeDurably(join(this.#folder, name), bytes)
    this.#segments.push({ ...fileOf(name, bytes), partition: this.#partition, from, to })
  }
}
