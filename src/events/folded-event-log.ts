import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  beginning,
  isBelow,
  Fenced,
  LogUnavailable,
  LogWentBackwards,
  MisconfiguredLog,
  Unforgettable,
  type Appended,
  type AppendReport,
  type CommitReport,
  type Checkpoint,
  type Event,
  type Expected,
  type EventLog,
  type KeptPages,
  type OpenedLog,
  type PageOffset,
  type ReadFrom,
  type ReadUntil,
  type Recorded,
  type ResultPage,
  type Subscription,
} from './event-log.ts'
import type { ArchivedRecords } from './archive/archived-records.ts'
import { memoryOf } from './envelope.ts'
import { fold as trueFold, type Fold, type IgnoredVerdict } from './fold.ts'
import { LogReader, type ClaimData } from './log-reader.ts'
import { PartitionWriter, type PartitionWriterDeps } from './partition-writer.ts'
import { RecentEvents } from './recent-events.ts'
import type { LogPosition, RecordStore, StoreLimits } from './record-store.ts'
import { startSubscription } from './subscription.ts'

/** The stream of facts about the whole system; the event of a claim goes there. */
export const SYSTEM_STREAM = 'system'

const LOOK_AGAIN_MS = 20
/**
 * Limit of the data that one read returns, apart from the step that passes it: large events come in smaller numbers.
 */
const MAX_READ_BYTES = 32 << 20

export interface EventLogOptions {
  /** Wall clock in milliseconds. Stored times never decrease, even when this does. @default Date.now */
  readonly now?: () => number
  /**
   * The epoch in which a stream's name was made, where the name shows it. In that epoch a stream without events here is
   * new, without a request to the store.
   */
  readonly bornIn?: (stream: string) => number | undefined
  /** The archived records of a log, by the log's id; without it records that have left the log cannot be read. */
  readonly archiveOf?: (logId: string) => ArchivedRecords
  /** The logs that have an archive: a topic that lost its first records does not say which log it is. */
  readonly archivedLogs?: () => Promise<readonly string[]>
  /** Called for each failed attempt; the log continues by itself. */
  readonly onTrouble?: (error: Error) => void
  /**
   * Result pages that were made before this may be dropped, because no client can ask for them any more. Called every
   * few minutes.
   * @default 25 hours ago: no query runs longer than a day
   */
  readonly pagesNeededSince?: () => Date
  /**
   * Limit of the encoded events that wait for a log that is away; beyond it appends are refused with LogUnavailable at
   * once.
   * @default 256 MiB
   */
  readonly maxQueuedBytes?: number
  /** Called for each append once it is valid. */
  readonly onAppended?: (report: AppendReport) => void
  /** Called for each group of appends that was committed together, after `onAppended` for each of them. */
  readonly onCommitted?: (report: CommitReport) => void
  /** Called for records that do not count: a fenced writer's, copies. */
  readonly onIgnored?: (verdict: IgnoredVerdict) => void
  /** Called with the reason why an append was refused. */
  readonly onAppendRefused?: (error: Error) => void
}

/** Parts that tests replace, to show that the contract suite detects a broken one. */
export interface EventLogSeams {
  readonly fold?: Fold
  readonly createReader?: (store: RecordStore, fold?: Fold) => LogReader
  readonly createWriter?: (deps: PartitionWriterDeps, partition: number) => PartitionWriter
}

/**
 * The event log over any store of records in dense offsets. `fold` alone decides which records are valid, so the same
 * code serves Kafka and Postgres.
 */
export class FoldedEventLog implements EventLog {
  readonly #store: RecordStore
  readonly #reader: LogReader
  readonly #options: EventLogOptions
  readonly #seams: EventLogSeams
  readonly #subscriptions = new Set<Subscription>()
  #limits: StoreLimits | undefined
  #recent: RecentEvents[] = []
  #writers: PartitionWriter[] = []
  #epoch: number | undefined
  /** Whether this log continues another one, whose epochs came before. */
  #isContinued = false
  #fenced = newPromise<Fenced | LogWentBackwards>()
  #opening: Promise<OpenedLog> | undefined
  #closing: Promise<void> | undefined

  constructor(store: RecordStore, options: EventLogOptions = {}, seams: EventLogSeams = {}) {
    this.#store = store
    this.#options = options
    this.#seams = seams
    this.#reader = seams.createReader?.(store, seams.fold) ?? new LogReader(store, seams.fold)
  }

  get fenced(): Promise<Fenced | LogWentBackwards> {
    return this.#fenced.promise
  }

  open(): Promise<OpenedLog> {
    this.#opening ??= this.#open()
    return this.#opening
  }

  async #open(): Promise<OpenedLog> {
    try {
      const limits = await this.#store.open()
      const first = await this.#reader.firstClaim()
      if (first && first.partitions !== limits.partitions)
        throw new MisconfiguredLog(
          `The event log was begun with ${first.partitions} log partitions and now has ${limits.partitions}: streams would move to other partitions`,
        )
      this.#limits = limits
      this.#isContinued = (first?.epoch ?? 1) > 1
      this.#recent = Array.from({ length: limits.partitions }, () => new RecentEvents())
      const { fold = trueFold, createWriter = (parts, partition) => new PartitionWriter(parts, partition) } =
        this.#seams
      this.#writers = this.#recent.map((recent, partition) =>
        createWriter(
          {
            store: this.#store,
            reader: this.#reader,
            recent,
            limits,
            fold,
            now: this.#options.now ?? Date.now,
            maxQueuedBytes: this.#options.maxQueuedBytes ?? 256 << 20,
            bornIn: (stream) => this.#options.bornIn?.(stream),
            isContinued: () => this.#isContinued,
            onLost: (error) => this.#lose(error),
            onTrouble: (error) => this.#options.onTrouble?.(error),
            onAppended: (report) => this.#options.onAppended?.(report),
            onCommitted: (report) => this.#options.onCommitted?.(report),
            onIgnored: (verdict) => this.#options.onIgnored?.(verdict),
          },
          partition,
        ),
      )
      return { logId: first?.logId ?? '', partitions: limits.partitions, maxEventBytes: limits.maxEventBytes }
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }

  async claim({
    above = 0,
    ...as
  }: {
    readonly address: string
    readonly version: string
    readonly above?: number
  }): Promise<number> {
    const { partitions } = this.#opened()
    if (this.#epoch !== undefined) throw new Error('This process already holds the log')
    await this.#patiently(async () => {
      const from = await this.#store.foldStart()
      // A projection of another log, or of another past, must not give this writer its streams.
      const start = from && (await this.#reader.begin(from))
      await Promise.all(this.#writers.map((writer) => writer.catchUp(start)))
    })
    const [first, ...others] = this.#writers
    const epoch = Math.max(first!.state.epoch, above) + 1
    await this.#patiently(async () => this.#store.cipher?.prepare(epoch))
    const writer = randomUUID()
    const logId = (await this.#patiently(() => this.#reader.logId())) || randomUUID()
    const claim: Omit<ClaimData, 'time'> = { epoch, writer, partitions, logId, ...as }
    const textOf = (time: string): string => JSON.stringify({ ...claim, time })
    // The compare-and-set happens in log partition 0; only its winner claims the others.
    await first!.claim(epoch, writer, textOf)
    await Promise.all(others.map((each) => each.claim(epoch, writer, textOf)))
    this.#fenced = newPromise()
    this.#epoch = epoch
    for (const each of this.#writers) this.#store.prepareFor(each.folded.offset)
    await this.#announce(claim)
    return epoch
  }

  /** Repeats work until the log answers: a claim, like an append, waits for a log that is away. */
  async #patiently<T>(work: () => Promise<T>): Promise<T> {
    for (let delay = 20; ; delay = Math.min(delay * 2, 500)) {
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof LogUnavailable) || this.#closing) throw error
        this.#options.onTrouble?.(error)
        await sleep(delay)
      }
    }
  }

  /**
   * Appends EpochStarted, this writer's first event. The claim record itself is no event, so projections do not see it.
   */
  async #announce(claim: Omit<ClaimData, 'time'>): Promise<void> {
    const writer = this.#writers[this.#store.partitionOf(SYSTEM_STREAM)]!
    const time = new Date((this.#options.now ?? Date.now)()).toISOString()
    const event: Event = { type: 'EpochStarted', v: 1, time, data: claim }
    await writer.append(SYSTEM_STREAM, await writer.headOf(SYSTEM_STREAM), [event], [])
  }

  append(
    stream: string,
    expected: Expected,
    events: readonly Event[],
    pages: readonly ResultPage[] = [],
  ): Promise<Appended> {
    if (this.#epoch === undefined) return Promise.reject(new Fenced('This process does not hold the log'))
    const appended = this.#writers[this.#store.partitionOf(stream)]!.append(stream, expected, events, pages)
    if (this.#options.onAppendRefused) appended.catch(this.#options.onAppendRefused)
    return appended
  }

  async read(from: ReadFrom, limit: number, until?: ReadUntil): Promise<{ events: Recorded[]; next: Checkpoint }> {
    this.#opened()
    const begun = await this.#reader.begin(from)
    const at: LogPosition[] = [...begun.at]
    const events: Recorded[] = []
    let bytes = 0
    for (let partition = 0; partition < at.length; partition++) {
      while (events.length < limit && bytes < MAX_READ_BYTES) {
        const position = at[partition]!
        const room = limit - events.length
        const left = until ? (until.at[partition]?.offset ?? 0n) - position.offset : undefined
        if (left !== undefined && left <= 0n) break
        const news = await this.#newsAfter(partition, position, room, left)
        if (news.position.offset === position.offset) break
        at[partition] = news.position
        this.#noticePosition(partition, news.position)
        bytes += news.events.reduce((sum, event) => sum + memoryOf(event), 0)
        events.push(...news.events)
      }
    }
    const logId = begun.logId || (await this.#reader.logId())
    return { events, next: this.#reader.trust({ logId, at }) }
  }

  /** Reads new records of a log partition. @param left most records to read, because a bound follows */
  async #newsAfter(
    partition: number,
    position: LogPosition,
    room: number,
    left: bigint | undefined,
  ): Promise<{ readonly events: readonly Recorded[]; readonly position: LogPosition }> {
    const recent = this.#recent[partition]?.after(position, room)
    if (recent && (left === undefined || recent.position.offset - position.offset <= left)) return recent
    const most = Math.min(room, 2000)
    return this.#reader.step(partition, position, left === undefined || left > BigInt(most) ? most : Number(left))
  }

  async *readStream(stream: string, after = 0, until?: ReadUntil): AsyncIterable<Recorded> {
    const events = this.#store.readStream(stream, after, await this.tip())
    if (!until) return yield* events
    for await (const event of events) {
      if (!isBelow(event.position, until)) return
      yield event
    }
  }

  keepPages(stream: string, pages: readonly ResultPage[]): Promise<KeptPages> {
    return this.#store.pages.keep(stream, pages)
  }

  readPage(stream: string, token: number, position?: PageOffset): Promise<Uint8Array | undefined> {
    return this.#store.pages.read(stream, token, position)
  }

  async forgettable(stream: string): Promise<readonly Recorded[]> {
    const { cipher } = this.#store
    // Events that were encrypted with the earlier key can only be in flight; the loop waits for them, so it leaves none
    // out.
    cipher?.retire(stream)
    for (let sealed = Infinity; ; await sleep(LOOK_AGAIN_MS)) {
      // Looked up again each time: a refused append is not waited for, and after a fencing nothing is.
      sealed = cipher ? Math.min(sealed, await this.#headOf(stream)) : 0
      const events: Recorded[] = []
      for await (const event of this.readStream(stream)) events.push(event)
      if ((events.at(-1)?.sequence ?? 0) >= sealed) {
        if (cipher?.encrypts(stream)) refuseInTheClear(await this.#ofThisLog(events))
        return events
      }
    }
  }

  /** Events of this log only. Earlier ones are in the archive of the log before, which can be rewritten. */
  async #ofThisLog(events: readonly Recorded[]): Promise<readonly Recorded[]> {
    const before = (await this.#store.epochBefore?.()) ?? 0
    return events.filter(({ epoch }) => epoch > before)
  }

  /** Sequence of a stream's last event, queued ones included. @throws Fenced */
  async #headOf(stream: string): Promise<number> {
    if (this.#epoch === undefined) throw new Fenced('This process does not hold the log')
    return this.#writers[this.#store.partitionOf(stream)]!.headOf(stream)
  }

  async forget(stream: string, sequences: readonly number[]): Promise<void> {
    if (this.#epoch === undefined) throw new Fenced('This process does not hold the log')
    await this.#store.forget(stream, sequences, this.#epoch)
    const gone = new Set(sequences)
    const { cipher } = this.#store
    for (const recent of this.#recent)
      recent.forget(
        stream,
        ({ sequence, key }) => gone.has(sequence) || (key !== undefined && cipher?.isForgotten(key) === true),
      )
  }

  async start(): Promise<Checkpoint> {
    const { partitions } = this.#opened()
    return (await this.#store.start?.()) ?? beginning(partitions)
  }

  subscribe(
    from: ReadFrom,
    on: (batch: readonly Recorded[], next: Checkpoint) => Promise<void>,
    mostEvents?: number,
  ): Subscription {
    this.#opened()
    const subscription = startSubscription(
      {
        store: this.#store,
        reader: this.#reader,
        recent: this.#recent,
        isWriter: () => this.#epoch !== undefined,
        onPosition: (partition, position) => this.#noticePosition(partition, position),
        onTrouble: (error) => this.#options.onTrouble?.(error),
        mostEvents,
      },
      from,
      on,
    )
    this.#subscriptions.add(subscription)
    subscription.done.then(
      () => this.#subscriptions.delete(subscription),
      () => this.#subscriptions.delete(subscription),
    )
    return subscription
  }

  async tip(): Promise<Checkpoint> {
    const { partitions } = this.#opened()
    const at = await Promise.all(
      Array.from({ length: partitions }, async (_, partition): Promise<LogPosition> => {
        const offset = await this.#store.end(partition)
        const folded = this.#writers[partition]!.folded
        // The writer of this process has already folded these records.
        if (folded.offset === offset) return folded
        const position = { offset, state: await this.#reader.stateAt(partition, offset) }
        this.#noticePosition(partition, position)
        return position
      }),
    )
    return this.#reader.trust({ logId: await this.#reader.logId(), at })
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      await Promise.all([...this.#subscriptions].map((subscription) => subscription.stop()))
      this.#epoch = undefined
      await Promise.all(this.#writers.map((writer) => writer.close()))
      await this.#store.close()
    })()
    return this.#closing
  }

  #opened(): StoreLimits {
    if (!this.#limits) throw new Error('The event log is not open')
    return this.#limits
  }

  #noticePosition(partition: number, position: LogPosition): void {
    if (this.#epoch !== undefined && position.state.epoch > this.#epoch)
      this.#writers[partition]!.noticeEpoch(position.state.epoch)
  }

  #lose(error: Fenced | LogWentBackwards): void {
    if (this.#epoch === undefined) return
    this.#epoch = undefined
    for (const writer of this.#writers) writer.stop(error)
    this.#fenced.resolve(error)
  }
}

function refuseInTheClear(events: readonly Recorded[]): void {
  const bare = events.find((event) => event.key === undefined && !event.forgotten)
  if (bare)
    throw new Unforgettable(
      `Event ${bare.stream}/${bare.sequence} was written before data was encrypted, and records of this log cannot be rewritten`,
    )
}

function newPromise<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((settle) => (resolve = settle))
  return { promise, resolve }
}
