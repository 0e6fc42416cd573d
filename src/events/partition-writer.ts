import { setTimeout as sleep } from 'node:timers/promises'
import { AppendReports, type AppendReportsDeps } from './append-reports.ts'
import { openSealed, type Sealed } from './envelope.ts'
import {
  Fenced,
  LogFull,
  LogUnavailable,
  LogWentBackwards,
  SequenceConflict,
  type Appended,
  type Checkpoint,
  type Event,
  type Expected,
  type EventLogError,
  type Recorded,
  type ResultPage,
  type Unstorable,
} from './event-log.ts'
import { fold as trueFold, type Fold, type IgnoredVerdict } from './fold.ts'
import type { LogReader } from './log-reader.ts'
import { cutBatch, type PendingAppend } from './pending-append.ts'
import type { RecentEvents } from './recent-events.ts'
import type {
  RecordBatch,
  OutRecord,
  LogPosition,
  PutOutcome,
  RecordStore,
  StoreLimits,
  StreamHead,
} from './record-store.ts'
import { sealAppend, type SealedAppend } from './seal-append.ts'
import { StreamHeads } from './stream-heads.ts'

export interface PartitionWriterDeps extends AppendReportsDeps {
  readonly store: RecordStore
  readonly reader: LogReader
  readonly recent: RecentEvents
  readonly limits: StoreLimits
  readonly fold?: Fold
  /** Wall clock, milliseconds. */
  readonly now: () => number
  /** Limit of the encoded events in the queue, in bytes. */
  readonly maxQueuedBytes: number
  /** The epoch in which a stream's name was made, where it is known. */
  readonly bornIn?: (stream: string) => number | undefined
  /** Whether this log continues another log: streams of that log may continue in this one. */
  readonly isContinued?: () => boolean
  /** Called when this process may no longer write, in any log partition. */
  readonly onLost: (error: Fenced | LogWentBackwards) => void
  /** Called when the log does not store records just now; the writer keeps trying. */
  readonly onTrouble: (error: Error) => void
  /** Called when a record was read that does not count. */
  readonly onIgnored?: (verdict: IgnoredVerdict) => void
}

interface AskedAppend {
  readonly stream: string
  readonly expected: Expected
  readonly events: readonly Event[]
  readonly pages: readonly ResultPage[]
}

const NO_EVENTS: StreamHead = { sequence: 0, hash: '' }

/**
 * The writer's side of one log partition. One batch is in flight; appends that arrive meanwhile form the next (group
 * commit). An append resolves when its records are folded 'valid', no matter which attempt wrote them.
 */
export class PartitionWriter {
  readonly partition: number
  protected readonly deps: PartitionWriterDeps
  /** Records at all lower offsets are folded into this. */
  protected logPosition: LogPosition = { offset: 0n, state: { epoch: 0, writer: '', number: 0, count: 0, hash: '' } }
  readonly #fold: Fold
  readonly #heads = new StreamHeads()
  #epoch = 0
  #writer = ''
  #lastTime = ''
  /** The last number of this writer that folded 'valid', and its events until their append has resolved. */
  protected validThrough = 0
  readonly #landed = new Map<number, Recorded>()
  #queue: PendingAppend[] = []
  #queuedBytes = 0
  #running: Promise<void> | undefined
  readonly #reports: AppendReports
  #start: Checkpoint | undefined
  #closed = false
  #lost: EventLogError | undefined = new Fenced('This process has not claimed the log')

  constructor(deps: PartitionWriterDeps, partition: number) {
    this.deps = deps
    this.partition = partition
    this.#reports = new AppendReports(deps, partition)
    this.#fold = deps.fold ?? trueFold
  }

  get state(): LogPosition['state'] {
    return this.logPosition.state
  }

  get folded(): LogPosition {
    return this.logPosition
  }

  /** Begins to fold at the position from which heads can be looked up, or at the end. */
  async catchUp(start: Checkpoint | undefined): Promise<void> {
    await this.#idle()
    this.#heads.clear()
    this.#landed.clear()
    const { store, reader } = this.deps
    const from = start?.at[this.partition]
    this.#start = start
    this.#heads.knownFrom = from?.offset ?? 0n
    const cold = await reader.coldPosition(this.partition, from?.offset ?? (await store.end(this.partition)))
    this.logPosition = from ?? cold.position
    if (cold.lastTime > this.#lastTime) this.#lastTime = cold.lastTime
    await this.#readOn()
  }

  /**
   * Writes the claim at the log's end, until this claim or another one is there.
   * @param textOf makes the text of the claim record, anew at each attempt
   */
  async claim(epoch: number, writer: string, textOf: (time: string) => string): Promise<void> {
    this.#epoch = epoch
    this.#writer = writer
    this.validThrough = 0
    for (let delay = 0; !this.isMine();) {
      const { epoch: current } = this.logPosition.state
      if (current >= epoch) throw new Fenced(`Epoch ${current} was claimed by another writer`)
      const before = this.logPosition.offset
      const time = this.#nextTime(new Date(this.deps.now()).toISOString())
      const record: OutRecord = { number: 0, stream: '', sequence: 0, time, text: textOf(time), hash: '' }
      await this.#attempt('epoch', [record], [], [])
      delay = await this.#pause(before, delay)
    }
    this.#lost = undefined
  }

  /** Sequence of a stream's last event, queued ones included. */
  async headOf(stream: string): Promise<number> {
    if (!this.#heads.get(stream)) await new Promise<void>((resolve, reject) => this.#learnHead(stream, resolve, reject))
    return this.#heads.get(stream)?.sequence ?? 0
  }

  /** Appends to one stream resolve in the order of the calls. */
  append(
    stream: string,
    expected: Expected,
    events: readonly Event[],
    pages: readonly ResultPage[],
  ): Promise<Appended> {
    return new Promise((resolve, reject) => this.#begin({ stream, expected, events, pages }, { resolve, reject }))
  }

  /**
   * Queues an append once the head of its stream is known. `caller` is settled directly. With a promise in between, it
   * would be settled after the callers of later appends in the same batch.
   */
  #begin(asked: AskedAppend, caller: Pick<PendingAppend, 'resolve' | 'reject'>): void {
    const { stream, expected } = asked
    if (this.#lost) return caller.reject(this.#lost)
    // Only new streams are refused. Streams that have begun bound what follows, and a running query must be able to
    // record its end.
    if (expected === 0 && this.#queuedBytes > this.deps.maxQueuedBytes)
      return caller.reject(new LogFull('Too many events already wait for the event log'))
    const known = this.#heads.get(stream) ?? (expected === 0 && this.#isNew(stream) ? NO_EVENTS : undefined)
    const assumedNew = !known && expected === 0 && this.deps.store.checksNewStreams
    if (this.#learning.has(stream) || (!known && !assumedNew))
      return this.#learnHead(stream, () => this.#begin(asked, caller), caller.reject)
    const { limits, now, store } = this.deps
    const head = known ?? NO_EVENTS
    let sealed: SealedAppend
    try {
      sealed = sealAppend(
        { ...asked, expected: expected === 'end' ? head.sequence : expected },
        { head, epoch: this.#epoch, notBefore: this.#lastTime, limits, now, cipher: store.cipher },
      )
    } catch (error) {
      return caller.reject(error as Error)
    }
    this.#queue.push({ assumedNew, ...sealed, firstNumber: 0, queuedAt: performance.now(), sentAt: 0, ...caller })
    this.#queuedBytes += sealed.held
    const last = sealed.sealed.at(-1)!.envelope
    this.#lastTime = last.time
    this.#heads.queued(stream, { sequence: last.sequence, hash: last.hash })
    this.#run()
  }

  /** Whether it is certain, without asking the store, that a stream without a head here has no events. */
  #isNew(stream: string): boolean {
    const foldedWhole =
      this.#start?.at.every((logPosition) => logPosition.offset === 0n) && this.#heads.knownFrom === 0n
    return (foldedWhole === true && this.deps.isContinued?.() !== true) || this.deps.bornIn?.(stream) === this.#epoch
  }

  /**
   * Handles an epoch that a reader of this process saw. If another writer holds it, settles what is in flight and steps
   * down.
   */
  noticeEpoch(epoch: number): void {
    if (this.#lost || epoch <= this.#epoch || this.#running) return
    this.#running = this.#guard(async () => {
      await this.#readOn()
      if (!this.isMine()) throw this.#fencedNow()
    })
  }

  /** Rejects appends that are not settled; the caller does not learn whether they landed. */
  stop(error: EventLogError): void {
    this.#lost ??= error
    for (const append of this.#queue.splice(0)) append.reject(error)
    this.#queuedBytes = 0
  }

  async close(): Promise<void> {
    this.#closed = true
    this.stop(new LogUnavailable('The log was closed'))
    await this.#idle()
  }

  /** Whether this writer holds the log. Checked before every send, not only after errors. */
  protected isMine(): boolean {
    const { state } = this.logPosition
    return state.epoch === this.#epoch && state.writer === this.#writer
  }

  protected firstNumberOfBatch(): number {
    return this.logPosition.state.number + 1
  }

  /** The record number of an append; the same at every attempt, because a number belongs to its event for ever. */
  protected numberOf(append: PendingAppend): number {
    return append.firstNumber
  }

  /**
   * Handles the store's answer that the records landed at `at`. Offsets are dense, so `at` shows whether other records
   * came before.
   */
  protected async onLanded(at: bigint, batch: RecordBatch): Promise<void> {
    if (at === this.logPosition.offset) this.foldOwn(batch)
    else if (at > this.logPosition.offset) await this.#readOn(at + BigInt(batch.records.length))
    else
      throw new LogWentBackwards(
        `Records landed at offset ${at} of log partition ${this.partition}, but offset ${this.logPosition.offset} was already read: the log was recreated or restored`,
      )
  }

  protected foldOwn(batch: RecordBatch): void {
    const records = batch.records.map((record, index) => ({
      offset: this.logPosition.offset + BigInt(index),
      header: { kind: batch.kind, epoch: batch.epoch, writer: batch.writer, number: record.number, seen: batch.seen },
      record,
    }))
    const from = this.logPosition
    let { state } = from
    const events: Recorded[] = []
    for (const { offset, header, record } of records) {
      const folded = this.#fold(state, { header, hash: record.hash })
      state = folded.state
      if (folded.verdict !== 'valid') continue
      const sealed = this.#sealedOf.get(record)
      if (!sealed) continue
      const position = { partition: this.partition, offset }
      const event = openSealed(record.stream, sealed, position)
      events.push(event)
      this.#noteValid(record.number, event)
    }
    // Only the last event of each append: events of a stream follow one another.
    for (const [index, event] of events.entries())
      if (events[index + 1]?.stream !== event.stream) this.#heads.folded(event.stream, event, event.position.offset)
    this.#advance(from, { offset: from.offset + BigInt(records.length), state }, events)
  }

  readonly #sealedOf = new WeakMap<OutRecord, Sealed>()

  #nextTime(time: string): string {
    if (time > this.#lastTime) this.#lastTime = time
    return this.#lastTime
  }

  /** Callers that wait for a stream's head, in order of arrival: appends to a stream must not overtake one another. */
  readonly #learning = new Map<string, { readonly onHead: () => void; readonly failed: (error: Error) => void }[]>()

  #learnHead(stream: string, onHead: () => void, failed: (error: Error) => void): void {
    const others = this.#learning.get(stream)
    if (others) {
      others.push({ onHead, failed })
      return
    }
    const waiting = [{ onHead, failed }]
    this.#learning.set(stream, waiting)
    this.#headInStore(stream).then(
      (head) => {
        this.#heads.remember(stream, head)
        this.#learning.delete(stream)
        for (const each of waiting) each.onHead()
      },
      (error: Error) => {
        this.#learning.delete(stream)
        for (const each of waiting) each.failed(error)
      },
    )
  }

  #headInStore(stream: string): Promise<StreamHead> {
    const at = Array.from({ length: this.deps.limits.partitions }, (_, partition) => ({
      offset: partition === this.partition ? this.#heads.knownFrom : 0n,
      state: this.logPosition.state,
    }))
    return this.deps.store.head(stream, { logId: this.#start?.logId ?? '', at })
  }

  #run(): void {
    if (this.#running) return
    this.#running = this.#guard(async () => {
      // Waiting for one microtask gathers appends that are made together.
      await undefined
      while (this.#queue.length > 0 && !this.#lost) {
        const batch = cutBatch(this.#queue)
        this.#queuedBytes =
          this.#queue.length === 0 ? 0 : batch.reduce((left, each) => left - each.held, this.#queuedBytes)
        await this.commit(batch)
      }
    })
  }

  async #guard(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      const lost = error as Error
      this.stop(lost as EventLogError)
      if (lost instanceof Fenced || lost instanceof LogWentBackwards) this.deps.onLost(lost)
      else this.deps.onTrouble(lost)
    } finally {
      this.#running = undefined
      // An append may have come after the last check of the queue.
      if (this.#queue.length > 0 && !this.#lost) this.#run()
    }
  }

  async #idle(): Promise<void> {
    while (this.#running) await this.#running
  }

  protected async commit(batch: PendingAppend[]): Promise<void> {
    let number = this.firstNumberOfBatch()
    const sentAt = performance.now()
    for (const append of batch) {
      append.firstNumber = number
      append.sentAt = sentAt
      number += append.sealed.length
    }
    let pending = batch
    // Most appends to send at once. It shrinks while a batch takes the store too long, or contains an append that it
    // never takes.
    let most = batch.length
    try {
      for (let delay = 0; pending.length > 0;) {
        if (this.#lost) throw this.#lost
        if (!this.isMine()) throw this.#fencedNow()
        const before = this.logPosition.offset
        const sent = pending.slice(0, most)
        const outcome = await this.#send(sent)
        pending = this.#settle(pending)
        if (pending.length === 0) break
        if (before !== this.logPosition.offset) most *= 2
        else if (outcome.kind === 'refused') pending = await this.#refuseTaken(pending)
        else if (outcome.kind === 'impossible' && sent.length === 1)
          pending = this.#refuseUnstorable(pending, outcome.error)
        if (outcome.kind === 'impossible' || (outcome.kind === 'unknown' && outcome.slow))
          most = Math.max(1, Math.floor(sent.length / 2))
        delay = outcome.kind === 'impossible' ? 0 : await this.#pause(before, delay)
      }
      this.#landed.clear()
      // All records were valid, but another claim follows them in the log.
      if (!this.isMine()) throw this.#fencedNow()
    } catch (error) {
      for (const append of pending) append.reject(error as Error)
      throw error
    }
  }

  #send(pending: readonly PendingAppend[]): Promise<PutOutcome> {
    const records: OutRecord[] = []
    for (const append of pending) {
      let number = this.numberOf(append)
      for (const sealed of append.sealed) {
        const { sequence, time, hash } = sealed.envelope
        const record = { number: number++, stream: append.stream, sequence, time, text: sealed.text, hash }
        this.#sealedOf.set(record, sealed)
        records.push(record)
      }
    }
    const pages = pending.some((append) => append.pages.length > 0) ? pending.flatMap((append) => append.pages) : []
    const newStreams = pending.filter((append) => append.assumedNew).map((append) => append.stream)
    return this.#attempt('event', records, pages, newStreams)
  }

  async #attempt(
    kind: RecordBatch['kind'],
    records: readonly OutRecord[],
    pages: RecordBatch['pages'],
    newStreams: readonly string[],
  ): Promise<PutOutcome> {
    const batch: RecordBatch = {
      partition: this.partition,
      kind,
      epoch: this.#epoch,
      writer: this.#writer,
      seen: this.logPosition,
      records,
      pages,
      newStreams,
    }
    this.#reports.attempted()
    const outcome = await this.deps.store.put(batch)
    this.#reports.answered()
    if (outcome.kind === 'landed') await this.onLanded(outcome.at, batch)
    else {
      if (outcome.kind !== 'refused') this.deps.onTrouble(outcome.error)
      await this.#readOn()
    }
    return outcome
  }

  #settle(pending: readonly PendingAppend[]): PendingAppend[] {
    const settled: Recorded[] = []
    const left = pending.filter((append) => {
      const last = append.firstNumber + append.sealed.length - 1
      if (last > this.validThrough) return true
      const events = append.sealed.map((_, index) => this.#landed.get(append.firstNumber + index)!)
      this.#heads.settled(append.stream)
      append.resolve({ ...events.at(-1)!.position, events })
      this.#reports.appended(append, events)
      settled.push(events.at(-1)!)
      return false
    })
    if (settled.length > 0) this.#reports.committed(pending, settled)
    return left
  }

  /**
   * Handles a refusal without new records in the log: a stream that was believed new exists, or the log ends below what
   * was read.
   */
  async #refuseTaken(pending: readonly PendingAppend[]): Promise<PendingAppend[]> {
    const taken = new Map<string, number>()
    for (const append of pending.filter((each) => each.assumedNew)) {
      const head = await this.deps.store.head(append.stream, { logId: '', at: [] })
      append.assumedNew = false
      if (head.sequence > 0) taken.set(append.stream, head.sequence)
    }
    if (taken.size === 0) return [...pending]
    for (const stream of taken.keys()) this.#heads.forget(stream)
    return this.#withoutStreams(pending, taken)
  }

  /**
   * Handles an append that the store will never take: the first one, which was sent alone. It fails, and with it the
   * appends to the same stream behind it.
   */
  #refuseUnstorable([first, ...others]: readonly PendingAppend[], error: Unstorable): PendingAppend[] {
    const { stream, sealed, assumedNew } = first!
    const { sequence, prevhash } = sealed[0]!.envelope
    // The store has not said whether this stream exists.
    if (assumedNew) this.#heads.forget(stream)
    else this.#heads.back(stream, { sequence: sequence - 1, hash: prevhash })
    first!.reject(error)
    return this.#withoutStreams(others, new Map([[stream, sequence - 1]]))
  }

  /**
   * Rejects queued appends to streams whose last sequence is different.
   * @param actual the last sequence of each stream
   */
  #withoutStreams(pending: readonly PendingAppend[], actual: ReadonlyMap<string, number>): PendingAppend[] {
    const conflicts = (append: PendingAppend): boolean => {
      const sequence = actual.get(append.stream)
      if (sequence === undefined) return false
      append.reject(new SequenceConflict(append.stream, append.sealed[0]!.envelope.sequence - 1, sequence))
      return true
    }
    // Later appends in the queue were built on the refused ones.
    this.#queue = this.#queue.filter((append) => !conflicts(append))
    const rest = pending.filter((append) => !conflicts(append))
    let number = this.firstNumberOfBatch()
    for (const append of rest) {
      // None of these numbers can be in the log or arrive late: every batch that used them also contained a record,
      // before them, that the store refuses in every copy.
      append.firstNumber = number
      number += append.sealed.length
    }
    return rest
  }

  /** Reads and folds to the end, or to a target that is known to exist. */
  async #readOn(target?: bigint): Promise<void> {
    const { store, reader } = this.deps
    for (let delay = 20; ; delay = Math.min(delay * 2, 500)) {
      try {
        const end = target ?? (await store.end(this.partition))
        if (end < this.logPosition.offset) {
          if (store.endMayLag) return
          throw new LogWentBackwards(
            `The log ends at offset ${end}, but offset ${this.logPosition.offset} was already read: the log was recreated or restored`,
          )
        }
        while (this.logPosition.offset < end) {
          const from = this.logPosition
          const records = await store.fetch(this.partition, from.offset, 1000)
          if (records.length === 0) break
          const folded = reader.foldRecords(this.partition, from, records, (verdict, record, event) => {
            // The earlier writer has already reported the records before this claim.
            if (verdict !== 'valid' && verdict !== 'epoch' && !this.#lost) this.deps.onIgnored?.(verdict)
            if (verdict !== 'valid' || !event) return
            this.#heads.folded(event.stream, event, record.offset)
            const { header } = record
            if (header?.epoch === this.#epoch && header.writer === this.#writer) this.#noteValid(header.number, event)
          })
          if (folded.lastTime > this.#lastTime) this.#lastTime = folded.lastTime
          this.#advance(from, folded.position, folded.events)
        }
        if (this.logPosition.offset >= end) return
      } catch (error) {
        if (!(error instanceof LogUnavailable)) throw error
        this.deps.onTrouble(error)
      }
      if (this.#closed) throw new LogUnavailable('The log was closed')
      await sleep(delay)
    }
  }

  #noteValid(number: number, event: Recorded): void {
    this.validThrough = number
    this.#landed.set(number, event)
  }

  #advance(from: LogPosition, to: LogPosition, events: readonly Recorded[]): void {
    this.logPosition = to
    this.deps.recent.add(from, to, events)
    if (this.#lost === undefined) this.deps.store.prepareFor(to.offset)
  }

  /** Waits only when the last attempt did not move the log. */
  async #pause(before: bigint, delay: number): Promise<number> {
    if (this.logPosition.offset !== before) return 0
    await sleep(Math.max(delay, 20))
    return Math.min(Math.max(delay, 20) * 2, 500)
  }

  #fencedNow(): Fenced {
    return new Fenced(`Epoch ${this.logPosition.state.epoch} replaced epoch ${this.#epoch} of this process`)
  }
}
