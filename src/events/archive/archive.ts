import { mkdir, mkdtemp, readFile, readdir, rename, rm, stat, statfs, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { exportedKey, isSignedBy } from '../audit/anchor.ts'
import { parseEnvelope, readEnvelope, tombstoneText, type StoredEnvelope } from '../envelope.ts'
import { LogUnavailable } from '../event-log.ts'
import type { LogPosition, StoredRecord, StreamHead } from '../record-store.ts'
import { hasCode } from '../../shared/node-error.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import { ArchiveDamaged, type ArchivedEvent, type ArchivedRecords, type SequencesByStream } from './archived-records.ts'
import { renameDurably, syncNames, writeDurably } from './durable-files.ts'
import { manifestSchema, logPositionOf, type PeriodManifest, type Segment } from './manifest.ts'
import { packRecords, sha256Of, unpackLines, unpackRecords } from './segment.ts'
import { headsOf, mayHave, positionsOf, type StreamPositions } from './stream-index.ts'

export interface ArchiveOptions {
  /** Holds the archives of all logs; the folder of this one is named by the log's id. */
  readonly root: string
  readonly logId: string
  /** Whether a stream can end: streams of queries do. */
  readonly canEnd: (stream: string) => boolean
  /** Bytes that must be free on the disk before another period is copied. @default 512 MiB */
  readonly roomBytes?: number
}

const ROOM_BYTES = 512 << 20
const MANIFEST = 'manifest.json'
/** Prefixes of folders that are not yet periods, and of folders that are being deleted. */
const COPY = '.period-'
const GONE = '.gone-'
/** Unpacked segments to keep in memory. */
const OPENED = 2

/** The archived periods of a log, each in a folder of its own; a file is replaced as a whole or not at all. */
export class Archive implements ArchivedRecords {
  readonly folder: string
  readonly #canEnd: (stream: string) => boolean
  readonly #roomBytes: number
  #periods: Promise<readonly PeriodManifest[]> | undefined
  readonly #opened = new Map<string, readonly StoredRecord[]>()
  /** The period that this process copies, and what was forgotten meanwhile: the copy may already contain it. */
  #copy: { readonly folder: string; readonly forgotten: SequencesByStream[] } | undefined
  /** Ends when the last queued rewrite ends: files are rewritten one after the other. */
  #rewriting: Promise<unknown> = Promise.resolve()

  constructor({ root, logId, canEnd, roomBytes = ROOM_BYTES }: ArchiveOptions) {
    this.#roomBytes = roomBytes
    this.folder = join(root, logId)
    this.#canEnd = canEnd
  }

  /** The periods in order; each begins where the one before ends. @throws ArchiveDamaged | LogUnavailable */
  periods(): Promise<readonly PeriodManifest[]> {
    if (!this.#periods) {
      this.#periods = this.#readPeriods()
      this.#periods.catch(() => (this.#periods = undefined))
    }
    return this.#periods
  }

  /** Reads the periods again: another process may have archived more, or forgotten some data. */
  reread(): Promise<readonly PeriodManifest[]> {
    this.#periods = undefined
    return this.periods()
  }

  folderOf({ number }: Pick<PeriodManifest, 'number'>): string {
    return join(this.folder, String(number).padStart(6, '0'))
  }

  /**
   * Makes a folder for the next period. It counts once it is published; until then forgotten data is removed from it
   * too. Only the log's writer archives, so copies of other processes are leftovers and are deleted.
   */
  beginCopy(): Promise<string> {
    return this.#queued(async () => {
      await mkdir(this.folder, { recursive: true, mode: 0o700 })
      this.#copy = undefined
      await this.#removeLeft()
      await this.#mustHaveRoom()
      const folder = await mkdtemp(join(this.folder, COPY))
      this.#copy = { folder, forgotten: [] }
      return folder
    })
  }

  /** Refuses a full disk: results or the log itself may need the same disk. */
  async #mustHaveRoom(): Promise<void> {
    const { bavail, bsize } = await statfs(this.folder)
    if (bavail * bsize < this.#roomBytes)
      throw new LogUnavailable(
        `The disk of the archive at ${this.folder} has ${Math.round((bavail * bsize) / (1 << 20))} MiB left: nothing more is archived`,
      )
  }

  /** Deletes a copy that is not published. */
  async discard(copy: string): Promise<void> {
    if (this.#copy?.folder === copy) this.#copy = undefined
    await rm(copy, { recursive: true, force: true })
  }

  /**
   * Moves a written period to its final folder.
   * @returns the manifest, without the data that was forgotten since it was copied
   */
  publish(copy: string, manifest: PeriodManifest): Promise<PeriodManifest> {
    return this.#queued(async () => {
      let written = manifest
      for (const forgotten of this.#copy?.folder === copy ? this.#copy.forgotten : []) {
        const replaced = await this.#bury(copy, written, forgotten)
        for (const { name } of replaced.keys()) await unlink(join(copy, name))
        written = withSegments(written, replaced)
      }
      await writeDurably(join(copy, MANIFEST), manifestText(written))
      await syncNames(copy)
      await renameDurably(copy, this.folderOf(written))
      this.#copy = undefined
      await this.reread()
      return written
    })
  }

  async fetch(partition: number, from: bigint, limit: number): Promise<readonly StoredRecord[]> {
    const read = async (): Promise<readonly StoredRecord[]> => {
      const found = (await this.#periodAt(partition, from)) ?? (await this.#rereadPeriodAt(partition, from))
      const segment = found && segmentAt(found, partition, from)
      if (!segment)
        throw new LogUnavailable(
          `Offset ${from} is no longer in the event log, and not in the archive at ${this.folder}`,
        )
      const first = Number(from - BigInt(segment.from))
      return (await this.#open(this.folderOf(found), segment)).slice(first, first + limit)
    }
    try {
      return await read()
    } catch (error) {
      // A rewritten segment has another name, which the manifest gives.
      if (!hasCode(error, 'ENOENT')) throw this.#away(error)
      await this.reread()
      return this.#reading(read)
    }
  }

  async *readStream(stream: string, after: number, below: readonly bigint[]): AsyncIterable<ArchivedEvent> {
    const known = await this.periods()
    for (const period of reaches(known, below) ? known : await this.#rereadTo(below)) {
      if (!mayHave(period, stream, this.#canEnd)) continue
      const positions = await this.#positionsIn(period, stream)
      for (const offset of positions?.offsets ?? []) {
        if (offset >= below[positions!.partition]!) return
        const { partition } = positions!
        const envelope = await this.#envelopeAt(partition, offset)
        if (envelope.sequence > after) yield { envelope, position: { partition, offset } }
      }
    }
  }

  async head(stream: string): Promise<StreamHead | undefined> {
    const periods = await this.periods()
    const last = periods.at(-1)
    if (!this.#canEnd(stream)) return last && (await this.heads(last)).get(stream)
    for (const period of periods.toReversed()) {
      if (!mayHave(period, stream, this.#canEnd)) continue
      const positions = await this.#positionsIn(period, stream)
      const offset = positions?.offsets.at(-1)
      if (offset !== undefined) return this.#envelopeAt(positions!.partition, offset)
    }
    return undefined
  }

  async endFrom(partition: number, offset: bigint): Promise<LogPosition | undefined> {
    const find = (periods: readonly PeriodManifest[]): PeriodManifest | undefined =>
      periods.find(({ anchor }) => BigInt(anchor.at[partition]?.offset ?? -1) >= offset)
    const anchor = (find(await this.periods()) ?? find(await this.reread()))?.anchor
    return anchor && isSignedBy(anchor, exportedKey(anchor)) ? logPositionOf(anchor.at[partition]!) : undefined
  }

  /** The last events of the streams that never end, up to the end of a period. */
  heads(period: PeriodManifest): Promise<ReadonlyMap<string, StreamHead>> {
    return this.#reading(async () => {
      const bytes = await readFile(join(this.folderOf(period), period.heads.name))
      return headsOf(await unpackLines(bytes))
    })
  }

  forget(events: SequencesByStream, below: readonly bigint[]): Promise<SequencesByStream> {
    return this.#queued(async () => {
      await this.#removeLeft()
      this.#copy?.forgotten.push(events)
      const found = new Map([...events.keys()].map((stream) => [stream, new Set<number>()]))
      for (const period of await this.#rereadTo(below)) {
        const own = new Map([...events].filter(([stream]) => mayHave(period, stream, this.#canEnd)))
        if (own.size === 0) continue
        const replaced = await this.#bury(this.folderOf(period), period, own, found)
        if (replaced.size > 0) await this.#replace(period, replaced)
        await this.#removeReplaced(period)
      }
      return found
    })
  }

  #positionsIn(
    period: PeriodManifest,
    stream: string,
    folder = this.folderOf(period),
  ): Promise<StreamPositions | undefined> {
    return this.#reading(() => positionsOf(join(folder, period.streams.name), period, stream))
  }

  async #envelopeAt(partition: number, offset: bigint): Promise<StoredEnvelope> {
    const [record] = await this.fetch(partition, offset, 1)
    return parseEnvelope(record!.text)
  }

  #queued<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#rewriting.then(work)
    this.#rewriting = done.catch(() => {})
    return done
  }

  /** Reads the periods again. @throws LogUnavailable when they end before these offsets */
  async #rereadTo(below: readonly bigint[]): Promise<readonly PeriodManifest[]> {
    const periods = await this.reread()
    if (reaches(periods, below)) return periods
    throw new LogUnavailable(`The archive at ${this.folder} lacks records that were deleted from the event log`)
  }

  /** Deletes copies that were never finished. Renames them first: then no process can publish half of one. */
  async #removeLeft(): Promise<void> {
    for (const name of await this.#names()) {
      const path = join(this.folder, name)
      if (name.startsWith(COPY) && path !== this.#copy?.folder) {
        const gone = join(this.folder, name.replace(COPY, GONE))
        await rename(path, gone)
        await rm(gone, { recursive: true, force: true })
      } else if (name.startsWith(GONE)) await rm(path, { recursive: true, force: true })
    }
  }

  /**
   * Writes the segments that contain forgotten events anew, beside the old ones, with tombstones for their data.
   * @param found receives by stream the sequences of the events that are there, forgotten now or before
   */
  async #bury(
    folder: string,
    period: PeriodManifest,
    events: SequencesByStream,
    found: ReadonlyMap<string, Set<number>> = new Map(),
  ): Promise<ReadonlyMap<Segment, Segment>> {
    const streamsIn = new Map<Segment, Map<bigint, string>>()
    for (const stream of events.keys()) {
      const positions = await this.#positionsIn(period, stream, folder)
      for (const offset of positions?.offsets ?? []) {
        const segment = segmentAt(period, positions!.partition, offset)
        if (!segment) continue
        const byOffset = streamsIn.get(segment) ?? new Map<bigint, string>()
        streamsIn.set(segment, byOffset.set(offset, stream))
      }
    }
    const replaced = new Map<Segment, Segment>()
    for (const [segment, byOffset] of streamsIn) {
      const records = await this.#reading(() => this.#open(folder, segment))
      const buried = new Set<StoredRecord>()
      for (const [offset, stream] of byOffset) {
        const record = records[Number(offset - BigInt(segment.from))]!
        const envelope = readEnvelope(record.text)
        if (!envelope || !events.get(stream)!.has(envelope.sequence)) continue
        found.get(stream)?.add(envelope.sequence)
        if (!envelope.forgotten) buried.add(record)
      }
      if (buried.size === 0) continue
      const bytes = await packRecords(
        records.map((record) => (buried.has(record) ? { ...record, text: tombstoneText(record.text) } : record)),
      )
      const sha256 = sha256Of(bytes)
      const name = `${segment.partition}-${segment.from}-${sha256.slice(0, 16)}.jsonl.gz`
      await writeDurably(join(folder, name), bytes)
      this.#opened.delete(segment.sha256)
      replaced.set(segment, { ...segment, name, bytes: bytes.length, sha256 })
    }
    return replaced
  }

  /** Replaces a period's manifest, which says which files count. */
  async #replace(period: PeriodManifest, replaced: ReadonlyMap<Segment, Segment>): Promise<void> {
    const folder = this.folderOf(period)
    await syncNames(folder)
    await writeDurably(join(folder, `.${MANIFEST}`), manifestText(withSegments(period, replaced)))
    const now = (await this.reread())[period.number - 1]
    if (!now || manifestText(now) !== manifestText(period))
      throw new LogUnavailable(`The archive at ${this.folder} is being rewritten by another process`)
    await renameDurably(join(folder, `.${MANIFEST}`), join(folder, MANIFEST))
  }

  /** Names of a period's replaced segments that a killed process left behind. Younger files may be about to count. */
  async replacedIn({ number }: Pick<PeriodManifest, 'number'>): Promise<readonly string[]> {
    return this.#reading(async () => {
      const period = (await this.reread())[number - 1]!
      const folder = this.folderOf(period)
      const { mtimeMs } = await stat(join(folder, MANIFEST))
      const count = new Set([MANIFEST, period.streams.name, period.heads.name])
      for (const { name } of period.segments) count.add(name)
      const replaced: string[] = []
      for (const name of await readdir(folder))
        if (!count.has(name) && (await stat(join(folder, name))).mtimeMs <= mtimeMs) replaced.push(name)
      return replaced
    })
  }

  async #removeReplaced(period: PeriodManifest): Promise<void> {
    const names = await this.replacedIn(period)
    for (const name of names) await unlink(join(this.folderOf(period), name))
    if (names.length > 0) await syncNames(this.folderOf(period))
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

  async #open(folder: string, segment: Segment): Promise<readonly StoredRecord[]> {
    // The key is the digest: a repair of the archive may have replaced the file under the same name.
    const { name, sha256 } = segment
    const path = join(folder, name)
    const known = this.#opened.get(sha256)
    // Another process may have forgotten data of this segment: its file is then gone.
    if (known) await stat(path)
    const opened = known ?? (await unpackRecords(await readFile(path)))
    // Moves the entry to the end, so that the least recently used one is dropped.
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

  /** Wraps an error of the disk or of a packed file as LogUnavailable. */
  #away(error: unknown): Error {
    if (error instanceof QuipuError) return error
    const { message } = error as Error
    return new LogUnavailable(`The archive at ${this.folder} cannot be read: ${message}`, { cause: error })
  }

  /** Names in the folder; none when it does not exist. */
  #names(): Promise<readonly string[]> {
    return readdir(this.folder).catch((error: Error) => {
      if (hasCode(error, 'ENOENT')) return []
      throw this.#away(error)
    })
  }

  async #readPeriods(): Promise<readonly PeriodManifest[]> {
    const names = await this.#names()
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

/** The text of a manifest file, which names a period's files and their digests. */
export function manifestText(manifest: PeriodManifest): string {
  return `${JSON.stringify(manifest)}\n`
}

function withSegments(period: PeriodManifest, replaced: ReadonlyMap<Segment, Segment>): PeriodManifest {
  return { ...period, segments: period.segments.map((segment) => replaced.get(segment) ?? segment) }
}

/** Reads a manifest. @throws ArchiveDamaged */
function manifestOf(path: string, text: string): PeriodManifest {
  try {
    return manifestSchema.parse(JSON.parse(text))
  } catch (cause) {
    throw new ArchiveDamaged(`${path} is not a manifest of a period`, { cause })
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
