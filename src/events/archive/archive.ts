import { readFile, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnvelope, readEnvelope, tombstoneText, toRecorded } from '../envelope.ts'
import { LogUnavailable, type Recorded } from '../event-log.ts'
import type { StoredRecord, StreamHead } from '../record-store.ts'
import { hasCode } from '../../shared/node-error.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import { ArchiveDamaged, type ArchivedRecords } from './archived-records.ts'
import { renameDurably, syncNames, writeDurably } from './durable-files.ts'
import { manifestSchema, type PeriodManifest, type Segment } from './manifest.ts'
import { packRecords, sha256Of, unpackLines, unpackRecords } from './segment.ts'
import { headsOf, mayHave, placesOf } from './stream-index.ts'

export interface ArchiveOptions {
  /** Where the archives of all logs lie; this one's folder is named by the log. */
  readonly root: string
  readonly logId: string
  /** Whether a stream ends some day: that of a query. */
  readonly ends: (stream: string) => boolean
}

const MANIFEST = 'manifest.json'
/** Unpacked segments in memory. */
const OPENED = 2

/** The periods of a log that were archived, each in a folder of its own; files are replaced whole or not at all. */
export class Archive implements ArchivedRecords {
  readonly folder: string
  readonly #ends: (stream: string) => boolean
  #periods: Promise<readonly PeriodManifest[]> | undefined
  readonly #opened = new Map<string, readonly StoredRecord[]>()
  /** Files are rewritten one after the other. */
  #rewriting: Promise<unknown> = Promise.resolve()

  constructor({ root, logId, ends }: ArchiveOptions) {
    this.folder = join(root, logId)
    this.#ends = ends
  }

  /** In order, one where the other ends. @throws ArchiveDamaged | LogUnavailable */
  periods(): Promise<readonly PeriodManifest[]> {
    if (!this.#periods) {
      this.#periods = this.#readPeriods()
      this.#periods.catch(() => (this.#periods = undefined))
    }
    return this.#periods
  }

  /** As they lie there now: another process may have archived more, or forgotten some. */
  reread(): Promise<readonly PeriodManifest[]> {
    this.#periods = undefined
    return this.periods()
  }

  folderOf({ number }: Pick<PeriodManifest, 'number'>): string {
    return join(this.folder, String(number).padStart(6, '0'))
  }

  /** Puts a period that was written into its place. */
  async publish(written: string, manifest: PeriodManifest): Promise<void> {
    await writeDurably(join(written, MANIFEST), manifestText(manifest))
    await syncNames(written)
    await renameDurably(written, this.folderOf(manifest))
    await syncNames(this.folder)
    await this.reread()
  }

  async fetch(partition: number, from: bigint, limit: number): Promise<readonly StoredRecord[]> {
    const read = async (): Promise<readonly StoredRecord[]> => {
      const found = (await this.#periodAt(partition, from)) ?? (await this.#rereadPeriodAt(partition, from))
      const segment = found && segmentAt(found, partition, from)
      if (!segment)
        throw new LogUnavailable(`Offset ${from} has left the event log, and is not in the archive at ${this.folder}`)
      const first = Number(from - BigInt(segment.from))
      return (await this.#open(found, segment)).slice(first, first + limit)
    }
    try {
      return await read()
    } catch (error) {
      // A segment that was rewritten has another name: the manifest says which.
      if (!hasCode(error, 'ENOENT')) throw this.#away(error)
      await this.reread()
      return this.#reading(read)
    }
  }

  async *readStream(stream: string, after: number, below: readonly bigint[]): AsyncIterable<Recorded> {
    const known = await this.periods()
    for (const period of reaches(known, below) ? known : await this.#rereadTo(below)) {
      if (!mayHave(period, stream, this.#ends)) continue
      const places = await this.#reading(() => placesOf(this.#indexOf(period), period, stream))
      for (const offset of places?.offsets ?? []) {
        if (offset >= below[places!.partition]!) return
        const [record] = await this.fetch(places!.partition, offset, 1)
        const envelope = parseEnvelope(record!.text)
        if (envelope.sequence > after) yield toRecorded(stream, envelope, { partition: places!.partition, offset })
      }
    }
  }

  async head(stream: string): Promise<StreamHead | undefined> {
    const last = (await this.periods()).at(-1)
    return last && (await this.heads(last)).get(stream)
  }

  /** Last events of the streams that never end, up to the end of a period. */
  heads(period: PeriodManifest): Promise<ReadonlyMap<string, StreamHead>> {
    return this.#reading(async () => {
      const bytes = await readFile(join(this.folderOf(period), period.heads.name))
      return headsOf(await unpackLines(bytes))
    })
  }

  forget(stream: string, sequences: readonly number[], below: readonly bigint[]): Promise<void> {
    const done = this.#rewriting.then(() => this.#forget(stream, new Set(sequences), below))
    this.#rewriting = done.catch(() => {})
    return done
  }

  async #forget(stream: string, gone: ReadonlySet<number>, below: readonly bigint[]): Promise<void> {
    for (const period of await this.#rereadTo(below)) {
      if (!mayHave(period, stream, this.#ends)) continue
      const places = await this.#reading(() => placesOf(this.#indexOf(period), period, stream))
      if (!places) continue
      const replaced = new Map<Segment, Segment>()
      for (const segment of period.segments) {
        const own = places.offsets.filter((offset) => segment.partition === places.partition && isIn(segment, offset))
        if (own.length === 0) continue
        const records = await this.#reading(() => this.#open(period, segment))
        const tombs = own
          .map((offset) => records[Number(offset - BigInt(segment.from))]!)
          .filter((record) => {
            const envelope = readEnvelope(record.text)
            return envelope !== undefined && gone.has(envelope.sequence) && !envelope.forgotten
          })
        if (tombs.length > 0) replaced.set(segment, await this.#bury(period, segment, { records, tombs }))
      }
      if (replaced.size > 0) await this.#replace(period, replaced)
    }
  }

  /** @throws LogUnavailable when it ends before */
  async #rereadTo(below: readonly bigint[]): Promise<readonly PeriodManifest[]> {
    const periods = await this.reread()
    if (reaches(periods, below)) return periods
    throw new LogUnavailable(`The archive at ${this.folder} has not all that has left the event log`)
  }

  /** Writes a segment anew beside the old one, with tombstones in place of some texts. */
  async #bury(
    period: PeriodManifest,
    segment: Segment,
    { records, tombs }: { readonly records: readonly StoredRecord[]; readonly tombs: readonly StoredRecord[] },
  ): Promise<Segment> {
    const buried = new Set(tombs)
    const bytes = await packRecords(
      records.map((record) => (buried.has(record) ? { ...record, text: tombstoneText(record.text) } : record)),
    )
    const sha256 = sha256Of(bytes)
    const name = `${segment.partition}-${segment.from}-${sha256.slice(0, 16)}.jsonl.gz`
    await writeDurably(join(this.folderOf(period), name), bytes)
    return { ...segment, name, bytes: bytes.length, sha256 }
  }

  /** The manifest says which file counts; the old ones go once it does. */
  async #replace(period: PeriodManifest, replaced: ReadonlyMap<Segment, Segment>): Promise<void> {
    const folder = this.folderOf(period)
    const next = { ...period, segments: period.segments.map((segment) => replaced.get(segment) ?? segment) }
    await syncNames(folder)
    await writeDurably(join(folder, `.${MANIFEST}`), manifestText(next))
    await renameDurably(join(folder, `.${MANIFEST}`), join(folder, MANIFEST))
    for (const { name, sha256 } of replaced.keys()) {
      this.#opened.delete(sha256)
      await unlink(join(folder, name))
    }
    await syncNames(folder)
    await this.reread()
  }

  #indexOf(period: PeriodManifest): string {
    return join(this.folderOf(period), period.streams.name)
  }

  async #periodAt(partition: number, offset: bigint): Promise<PeriodManifest | undefined> {
    const periods = await this.periods()
    let [low, high] = [0, periods.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (BigInt(periods[middle]!.to[partition]?.offset ?? 0) <= offset) low = middle + 1
      else high = middle
    }
    return periods[low]
  }

  async #rereadPeriodAt(partition: number, offset: bigint): Promise<PeriodManifest | undefined> {
    await this.reread()
    return this.#periodAt(partition, offset)
  }

  async #open(period: PeriodManifest, segment: Segment): Promise<readonly StoredRecord[]> {
    // By its digest: whoever mends an archive may have put another file into the place of one.
    const { name, sha256 } = segment
    const opened = this.#opened.get(sha256) ?? (await unpackRecords(await readFile(join(this.folderOf(period), name))))
    // The one used last is the last to go.
    this.#opened.delete(sha256)
    this.#opened.set(sha256, opened)
    if (this.#opened.size > OPENED) this.#opened.delete(this.#opened.keys().next().value!)
    return opened
  }

  async #reading<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read()
    } catch (error) {
      throw this.#away(error)
    }
  }

  /** What a disk or a packed file does not give is away. */
  #away(error: unknown): Error {
    if (error instanceof QuipuError) return error
    const { message } = error as Error
    return new LogUnavailable(`The archive at ${this.folder} cannot be read: ${message}`, { cause: error })
  }

  async #readPeriods(): Promise<readonly PeriodManifest[]> {
    const names = await readdir(this.folder).catch((error: Error) => {
      if (hasCode(error, 'ENOENT')) return []
      throw this.#away(error)
    })
    const manifests: PeriodManifest[] = []
    for (const name of names.filter((one) => /^\d{6,}$/.test(one))) {
      const path = join(this.folder, name, MANIFEST)
      const text = await this.#reading(() => readFile(path, 'utf8'))
      manifests.push(manifestOf(path, text))
    }
    manifests.sort((a, b) => a.number - b.number)
    for (const [index, { number }] of manifests.entries())
      if (number !== index + 1) throw new ArchiveDamaged(`The archive at ${this.folder} has no period ${index + 1}`)
    return manifests
  }
}

/** What names a period's files and their digests, as it lies in its folder. */
export function manifestText(manifest: PeriodManifest): string {
  return `${JSON.stringify(manifest)}\n`
}

/** @throws ArchiveDamaged */
function manifestOf(path: string, text: string): PeriodManifest {
  try {
    return manifestSchema.parse(JSON.parse(text))
  } catch (cause) {
    throw new ArchiveDamaged(`${path} is no manifest of a period`, { cause })
  }
}

function reaches(periods: readonly PeriodManifest[], below: readonly bigint[]): boolean {
  const last = periods.at(-1)
  return below.every((offset, partition) => BigInt(last?.to[partition]?.offset ?? 0) >= offset)
}

function isIn(segment: Segment, offset: bigint): boolean {
  return offset >= BigInt(segment.from) && offset < BigInt(segment.to)
}

function segmentAt({ segments }: PeriodManifest, partition: number, offset: bigint): Segment | undefined {
  return segments.find((segment) => segment.partition === partition && isIn(segment, offset))
}
