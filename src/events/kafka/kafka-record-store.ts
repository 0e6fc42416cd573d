import kafkajs, { type Kafka, type Producer } from 'kafkajs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ArchivedEvent } from '../archive/archived-records.ts'
import { readArchived } from '../archive/read-archived.ts'
import {
  beginning,
  Fenced,
  hasEventsOf,
  LogUnavailable,
  LogWentBackwards,
  tombstoneOf,
  Unstorable,
  type Checkpoint,
  type Recorded,
} from '../event-log.ts'
import { keyNameInText, keyNameOf, toRecorded } from '../envelope.ts'
import { formatHeader, parseHeader } from '../fold.ts'
import { LogReader } from '../log-reader.ts'
import type {
  Drop,
  LogStart,
  RecordBatch,
  RecordDropper,
  PutOutcome,
  RecordStore,
  StoredRecord,
  StoreLimits,
  StreamHead,
} from '../record-store.ts'
import type { ResultPageStore } from '../result-page-store.ts'
import { logPartitionOf, type ClusterOptions, type FetchedMessage } from './kafka-internals.ts'
import { LogPartitionReader } from './log-partition-reader.ts'
import { KafkaResultPages } from './kafka-result-pages.ts'
import { PatientProducer, SlowAnswer } from './patient-producer.ts'
import type { KafkaRequest, KeyStore, KafkaStreamReader } from './ports.ts'
import { leftBefore, offsetsOf, TopicStart, type BegunTopic, type LogArchives } from './topic-start.ts'
import { ensureTopics } from './topic.ts'
import { logNamedIn, type LogBefore } from './log-before.ts'
import { createPlainProducer, DEFAULT_TOPIC, pagesTopicOf, type KafkaOptions } from './kafka-options.ts'

const CONNECT_TIMEOUT_MS = 1500

/** After this time an answer counts as unknown; the records are searched, or sent again. */
const REQUEST_TIMEOUT_MS = 3000

const LONG_POLL_MS = 500

/** Records of one Kafka topic. Offsets are dense: no compaction, no transactions. */
export class KafkaRecordStore implements RecordStore {
  readonly endMayLag = true
  readonly checksNewStreams = false
  protected readonly topic: string
  readonly #limits: StoreLimits
  readonly #options: KafkaOptions
  readonly pages: ResultPageStore
  readonly #inTopic: KafkaResultPages | undefined
  readonly #pagesTopic: string | undefined
  readonly #streams: KafkaStreamReader
  readonly cipher: KeyStore | undefined
  readonly #kafka: Kafka
  readonly #producer: PatientProducer
  readonly #readBack: LogPartitionReader
  readonly #follower: LogPartitionReader
  /** Records that a long poll brought, by log partition, until the next fetch. */
  readonly #polled = new Map<number, StoredRecord[]>()
  readonly #polls = new Map<string, Promise<void>>()
  readonly #archives: LogArchives | undefined
  readonly #alone: <T>(logId: string, work: () => Promise<T>) => Promise<T>
  readonly #start: TopicStart
  readonly dropper: RecordDropper = {
    recordsAtOnce: Infinity,
    // Nothing to keep: the archive and the read models have the heads.
    keepHeads: async () => {},
    drop: (drop) => this.#drop(drop),
  }
  /** Null when it is certain that this log continues none. */
  #before: LogBefore | null | undefined
  #closed = false
  #prepared = false

  /**
   * Makes the store; does not connect.
   * @param parts `pagesOfOld` has the pages of events that name no position, which an earlier version wrote; without
   *   `keys` data is written unencrypted, and encrypted data cannot be read
   */
  constructor(
    options: KafkaOptions,
    parts: {
      readonly pagesOfOld: Pick<ResultPageStore, 'read'>
      readonly streams: KafkaStreamReader
      readonly keys?: KeyStore | undefined
      readonly archives?: LogArchives | undefined
      /** Runs work while no other process runs it: only one process at a time rewrites a log's archive. */
      readonly alone?: (<T>(logId: string, work: () => Promise<T>) => Promise<T>) | undefined
    },
  ) {
    this.#options = options
    this.cipher = parts.keys
    this.#streams = parts.streams
    this.topic = options.topic ?? DEFAULT_TOPIC
    this.#limits = { partitions: options.partitions ?? 1, maxEventBytes: 8 << 20, maxAppendBytes: 15 << 20 }
    const { brokers, ssl, sasl, socketFactory } = options
    const kafkaOf = (requestTimeout: number): Kafka =>
      new kafkajs.Kafka({
        clientId: 'quipu-event-log',
        brokers: [...brokers],
        logLevel: kafkajs.logLevel.NOTHING,
        connectionTimeout: CONNECT_TIMEOUT_MS,
        requestTimeout,
        retry: { retries: 0 },
        ...(ssl === undefined ? {} : { ssl }),
        ...(sasl === undefined ? {} : { sasl }),
        ...(socketFactory === undefined ? {} : { socketFactory }),
      })
    this.#kafka = kafkaOf(REQUEST_TIMEOUT_MS)
    this.#producer = new PatientProducer(kafkaOf, (kafka) => this.createProducer(kafka))
    const cluster: ClusterOptions = {
      brokers,
      clientId: 'quipu-event-log',
      connectionTimeout: CONNECT_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      ssl,
      sasl,
      socketFactory,
    }
    this.#readBack = new LogPartitionReader(cluster, this.topic)
    this.#follower = new LogPartitionReader(cluster, this.topic)
    this.#archives = parts.archives
    this.#alone = parts.alone ?? ((_, work) => work())
    this.#start = new TopicStart({
      topic: this.topic,
      partitions: this.#limits.partitions,
      archives: parts.archives,
      lowOf: (partition) => this.#readBack.offset(partition, -2),
      fetch: (partition, from, limit) => this.#fetchKept(partition, from, limit),
    })
    const { pages } = options
    this.#pagesTopic = pages && (pages.topic ?? pagesTopicOf(this.topic))
    this.#inTopic =
      pages &&
      new KafkaResultPages({
        topic: this.#pagesTopic!,
        key: pages.key,
        // The pages have their own connections, so that they do not wait behind events.
        producer: new PatientProducer(kafkaOf, createPlainProducer),
        cluster: { ...cluster, clientId: 'quipu-result-pages' },
        onTrouble: options.onTrouble,
      })
    const inTopic = this.#inTopic
    const here = (): KafkaResultPages => {
      if (!inTopic) throw new Error('This event log was opened without its result pages')
      return inTopic
    }
    this.pages = {
      keep: (stream, made) => here().keep(stream, made),
      read: (stream, token, offset) =>
        offset ? here().read(stream, token, offset) : parts.pagesOfOld.read(stream, token, undefined),
    }
  }

  /** Record numbers do the work of an idempotent producer. */
  protected createProducer(kafka: Kafka): Producer {
    return createPlainProducer(kafka)
  }

  async open(): Promise<StoreLimits> {
    const { partitions } = this.#limits
    const { replication } = this.#options
    await ensureTopics(this.#kafka, [
      { topic: this.topic, holds: 'events', partitions, replication },
      ...(this.#pagesTopic === undefined
        ? []
        : [{ topic: this.#pagesTopic, holds: 'result pages', partitions: 1, replication } as const]),
    ])
    await this.#start.find()
    await this.cipher?.open()
    return this.#limits
  }

  async put(batch: RecordBatch): Promise<PutOutcome> {
    try {
      return await this.send(batch)
    } catch (error) {
      if (error instanceof Unstorable) return { kind: 'impossible', error }
      return { kind: 'unknown', error: error as Error, ...(error instanceof SlowAnswer ? { slow: true } : {}) }
    }
  }

  protected async send(batch: RecordBatch): Promise<PutOutcome> {
    const { kind, epoch, writer, seen, partition } = batch
    const messages = batch.records.map((record) => ({
      partition,
      key: record.stream,
      value: record.text,
      headers: { quipu: formatHeader({ kind, epoch, writer, number: record.number, seen }) },
    }))
    return { kind: 'landed', at: await this.#timed('Produce', () => this.#producer.send(this.topic, messages)) }
  }

  async #timed<T>(api: KafkaRequest['api'], request: () => Promise<T>): Promise<T> {
    const { onRequest } = this.#options
    if (!onRequest) return request()
    const start = performance.now()
    const report = (error?: unknown): void =>
      onRequest({ api, milliseconds: performance.now() - start, ...(error === undefined ? {} : { error }) })
    try {
      const answer = await request()
      report()
      return answer
    } catch (error) {
      report(error)
      throw error
    }
  }

  async fetch(partition: number, from: bigint, limit: number): Promise<StoredRecord[]> {
    const polled = this.#polled.get(partition)
    if (polled?.[0]?.offset === from && polled.length <= limit) {
      await this.#learnKeys(polled)
      this.#polled.delete(partition)
      return polled
    }
    const records = await this.#fetchAnywhere(partition, from, limit)
    await this.#learnKeys(records)
    return records
  }

  async #fetchAnywhere(partition: number, from: bigint, limit: number): Promise<StoredRecord[]> {
    const archive = leftBefore(this.#start.known, partition, from)
    if (archive) return [...(await archive.fetch(partition, from, limit))]
    try {
      return await this.#fetchKept(partition, from, limit)
    } catch (error) {
      // The records may have moved to the archive since this process looked.
      const left = error instanceof LogWentBackwards ? leftBefore(await this.#start.find(), partition, from) : undefined
      if (!left) throw error
      return [...(await left.fetch(partition, from, limit))]
    }
  }

  async #fetchKept(partition: number, from: bigint, limit: number): Promise<StoredRecord[]> {
    const messages = await this.#timed('Fetch', () => this.#readBack.fetch(partition, from, limit, 0))
    return messages.map(toStoredRecord)
  }

  start(): Promise<LogStart | undefined> {
    return this.#start.find()
  }

  async #drop({ partition, to, epoch }: Drop): Promise<void> {
    await this.#refuseFenced(epoch)
    await this.#readBack.deleteBelow(partition, to.offset)
    await this.#start.find()
  }

  /**
   * Checks for a later claim before a deletion, because Kafka does not check the writer of a deletion. Archived and
   * compared records are there for the next writer too.
   */
  async #refuseFenced(epoch: number): Promise<void> {
    const end = await this.end(0)
    const from = end > RECORDS_LOOKED_AT ? end - RECORDS_LOOKED_AT : 0n
    for (let offset = from; offset < end;) {
      const records = await this.#fetchAnywhere(0, offset, Number(end - offset))
      if (records.length === 0) break
      const isLater = records.some(({ header }) => header && Math.max(header.epoch, header.seen.state.epoch) > epoch)
      if (isLater) throw new Fenced('Another writer has claimed the log: that writer archives by itself')
      offset = records.at(-1)!.offset + 1n
    }
  }

  /** Loads the keys of records, so that folding them never waits: each key is then here, or known to be missing. */
  async #learnKeys(records: readonly StoredRecord[]): Promise<void> {
    if (!this.cipher) return
    const names = new Set(
      records.map(({ header, text }) => (header?.kind === 'event' ? keyNameInText(text) : undefined)),
    )
    await this.cipher.loadKeys([...names].filter((name) => name !== undefined))
  }

  end(partition: number): Promise<bigint> {
    return this.#readBack.offset(partition)
  }

  async awaitMore(offsets: readonly bigint[], signal: AbortSignal): Promise<void> {
    const over = new AbortController()
    const aborted = new Promise<void>((resolve) =>
      signal.addEventListener('abort', () => resolve(), { once: true, signal: over.signal }),
    )
    const polls = offsets.map((offset, partition) => this.#poll(partition, offset))
    const polled = Promise.race(polls).catch(() => sleep(LONG_POLL_MS, undefined, { ref: false }))
    await Promise.race([polled, aborted])
    over.abort()
  }

  /**
   * Polls for new records. Subscribers at the end share one long poll: on one connection Kafka would answer the second
   * after the first.
   */
  #poll(partition: number, offset: bigint): Promise<void> {
    const key = `${partition}/${offset}`
    const running = this.#polls.get(key)
    if (running) return running
    const poll = this.#follower
      .fetch(partition, offset, 2000, LONG_POLL_MS)
      .then((messages) => {
        if (messages.length > 0) this.#polled.set(partition, messages.map(toStoredRecord))
      })
      .finally(() => this.#polls.delete(key))
    poll.catch(() => {})
    this.#polls.set(key, poll)
    return poll
  }

  partitionOf(stream: string): number {
    return logPartitionOf(stream, this.#limits.partitions)
  }

  /**
   * Where a writer begins to fold. The projection answers for streams that the writer has not folded, so the writer
   * begins at its checkpoint. Without its database the writer folds the whole topic: a stream that is not in it is new,
   * or archived.
   */
  async foldStart(): Promise<Checkpoint> {
    const checkpoint = await this.#streams.checkpoint().catch((error: unknown) => {
      if (error instanceof LogUnavailable) return undefined
      throw error
    })
    return checkpoint ?? (await this.start()) ?? beginning(this.#limits.partitions)
  }

  async head(stream: string, atLeast: Checkpoint): Promise<StreamHead> {
    return this.#retry(async () => {
      const begun = this.#start.known
      const partition = this.partitionOf(stream)
      const foldedFrom = atLeast.at[partition]?.offset
      const isFolded = foldedFrom !== undefined && foldedFrom <= (begun?.at[partition]!.offset ?? 0n)
      const archived = isFolded ? await begun?.archive.head(stream) : undefined
      if (archived) return archived
      const before = isFolded ? await this.#logBefore() : undefined
      if (before || (isFolded && begun)) return (await before?.archive.head(stream)) ?? NO_EVENTS
      for (;;) {
        const { head, checkpoint } = await this.#streams.head(stream)
        if (hasEventsOf(checkpoint ?? beginning(this.#limits.partitions), atLeast)) return head
        await this.#streams.reached(atLeast)
      }
    })
  }

  async *readStream(stream: string, after: number, tip: Checkpoint): AsyncIterable<Recorded> {
    await this.#streams.reached(tip)
    const epochBefore = (await this.epochBefore()) ?? 0
    let isFirst = true
    for await (const event of this.#streams.read(stream, after)) {
      if (isFirst && event.sequence !== after + 1) yield* this.#readArchived(stream, after, event.sequence)
      isFirst = false
      // The projection may already be beyond the tip. Positions in the earlier log cannot be compared with this one.
      if (event.epoch > epochBefore && event.position.offset >= tip.at[event.position.partition]!.offset) continue
      // The projection may not yet have read that an event was forgotten.
      const gone = event.key !== undefined && this.cipher?.isForgotten(event.key) === true
      yield gone ? tombstoneOf(event) : event
    }
    if (isFirst) yield* this.#readArchived(stream, after, undefined)
  }

  /** Events of a stream that the read models no longer have. */
  async *#readArchived(stream: string, after: number, before: number | undefined): AsyncIterable<Recorded> {
    const archived = this.#archivedEvents(stream, after)
    yield* readArchived(archived, { stream, after, before }, async ({ envelope, position }) => {
      const key = keyNameOf(envelope.enc)
      if (key !== undefined) await this.cipher?.loadKeys([key])
      return toRecorded(stream, envelope, position, this.cipher)
    })
  }

  /** Events from the archive of the earlier log, and from the archive of this one. */
  async *#archivedEvents(stream: string, after: number): AsyncIterable<ArchivedEvent> {
    const logBefore = await this.#logBefore()
    if (logBefore) yield* logBefore.archive.readStream(stream, after, [])
    const begun = await this.#start.find()
    if (begun) yield* begun.archive.readStream(stream, after, offsetsOf(begun))
  }

  prepareFor(): void {
    if (this.#prepared) return
    this.#prepared = true
    this.#inTopic?.prepare()
  }

  /**
   * Forgets events. Records stay as they are; their keys are deleted, and without its key the data is lost. The archive
   * loses the data too.
   */
  async forget(stream: string, sequences: readonly number[], epoch: number): Promise<void> {
    await this.cipher?.forget(await this.#streams.keysOf(stream, sequences))
    const before = await this.#logBefore()
    if (before) await this.#forgetBefore(before, { stream, sequences, epoch })
    const start = (await this.#start.find()) ?? (await this.#whole())
    if (!start) return
    const { archive, logId } = start
    await this.#alone(logId, async () => {
      await this.#refuseFenced(epoch)
      const names = new Set<string>()
      // The read models may have dropped these events already.
      for await (const { envelope } of archive.readStream(stream, 0, offsetsOf(start))) {
        const name = sequences.includes(envelope.sequence) ? keyNameOf(envelope.enc) : undefined
        if (name !== undefined) names.add(name)
      }
      await this.cipher?.forget(names)
      await archive.forget(new Map([[stream, new Set(sequences)]]), offsetsOf(start))
    })
  }

  async #forgetBefore(
    { logId, archive }: LogBefore,
    {
      stream,
      sequences,
      epoch,
    }: { readonly stream: string; readonly sequences: readonly number[]; readonly epoch: number },
  ): Promise<void> {
    await this.#alone(logId, async () => {
      await this.#refuseFenced(epoch)
      await archive.forget(new Map([[stream, new Set(sequences)]]), [])
    })
  }

  async epochBefore(): Promise<number | undefined> {
    return (await this.#logBefore())?.epoch
  }

  /**
   * The log that this one continues. In that case the first events say so, and the first claim has an epoch above 1.
   */
  async #logBefore(): Promise<LogBefore | undefined> {
    if (this.#before !== undefined) return this.#before ?? undefined
    const records = await this.#fetchAnywhere(0, 0n, FIRST_RECORDS)
    const first = records.find(({ header }) => header?.kind === 'epoch')
    if (!first) return undefined
    const continued = first.header!.epoch > 1 ? logNamedIn(records) : undefined
    // The event that says so may be written in a moment.
    if (first.header!.epoch > 1 && !continued) return undefined
    this.#before = continued && this.#archives ? { ...continued, archive: this.#archives.of(continued.logId) } : null
    return this.#before ?? undefined
  }

  /** The archive of a topic that nothing has left: parts of it may be archived all the same. */
  async #whole(): Promise<BegunTopic | undefined> {
    if (!this.#archives) return undefined
    const logId = await new LogReader(this).logId()
    return logId === ''
      ? undefined
      : { ...beginning(this.#limits.partitions), logId, archive: this.#archives.of(logId) }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.cipher?.close()
    await Promise.all([
      this.#producer.disconnect(),
      this.#readBack.close(),
      this.#follower.close(),
      this.#inTopic?.close(),
    ])
  }

  /** Repeats until it succeeds: appends and claims wait for the projection's database as they wait for the log. */
  async #retry<T>(ask: () => Promise<T>): Promise<T> {
    for (let delay = 20; ; delay = Math.min(delay * 2, 500)) {
      try {
        return await ask()
      } catch (error) {
        if (!(error instanceof LogUnavailable) || this.#closed) throw error
        await sleep(delay)
      }
    }
  }
}

const NO_EVENTS: StreamHead = { sequence: 0, hash: '' }

/** Records at a log's beginning that are searched for the event that names the earlier log. */
const FIRST_RECORDS = 100

/** The newest records at the log's end that are searched for a later epoch. */
const RECORDS_LOOKED_AT = 50n

function toStoredRecord(message: FetchedMessage): StoredRecord {
  const header = message.headers?.['quipu']
  return {
    offset: BigInt(message.offset),
    header: Buffer.isBuffer(header) ? parseHeader(header.toString()) : undefined,
    stream: message.key?.toString() ?? '',
    text: message.value?.toString() ?? '',
  }
}
