import { setTimeout as sleep } from 'node:timers/promises'
import { LogUnavailable, LogWentBackwards, NotTaken, TooLarge } from '../event-log.ts'
import type { KeptPages, PageOffset, ResultPage, ResultPageStore } from '../result-page-store.ts'
import type { ClusterOptions } from './kafka-internals.ts'
import { LogPartitionReader } from './log-partition-reader.ts'
import { openPage, sealPage } from './page-cipher.ts'
import type { PatientProducer } from './patient-producer.ts'
import { MAX_PAGE_BYTES } from './topic.ts'

export interface KafkaResultPagesOptions {
  readonly topic: string
  /** 32 bytes; pages that were sealed with another key cannot be opened. */
  readonly key: Buffer
  readonly producer: PatientProducer
  readonly cluster: ClusterOptions
  readonly onTrouble?: ((error: Error) => void) | undefined
}

interface Waiting {
  readonly key: string
  readonly value: Buffer
  readonly resolve: (at: PageOffset) => void
  readonly reject: (error: Error) => void
}

const LOG_PARTITION = 0
const MAX_BATCH_BYTES = 1 << 20
/** Limit of a single page: leaves room for its key and Kafka's overhead. */
const MAX_VALUE_BYTES = MAX_PAGE_BYTES - 1024
const MAX_CACHED_BYTES = 16 << 20

/**
 * Result pages in a topic that deletes them after a while. Every in-sync replica has a page before its offset is
 * returned, so an event that carries the offset names existing bytes. A page whose answer was lost is sent again; no
 * event names the first copy.
 */
export class KafkaResultPages implements ResultPageStore {
  readonly #options: KafkaResultPagesOptions
  readonly #reader: LogPartitionReader
  readonly #cached = new Map<number, Buffer>()
  #cachedBytes = 0
  #queue: Waiting[] = []
  #running: Promise<void> | undefined
  #closed = false

  constructor(options: KafkaResultPagesOptions) {
    this.#options = options
    this.#reader = new LogPartitionReader(options.cluster, options.topic)
  }

  async keep(stream: string, pages: readonly ResultPage[]): Promise<KeptPages> {
    const offsets = await Promise.all(
      pages.map(({ token, bytes }) => {
        if (this.#closed) return Promise.reject(new LogUnavailable('The page store was closed'))
        return new Promise<PageOffset>((resolve, reject) => {
          const value = sealPage(this.#options.key, stream, token, bytes)
          if (value.length > MAX_VALUE_BYTES) throw new TooLarge(value.length, MAX_VALUE_BYTES)
          this.#queue.push({ key: stream, value, resolve, reject })
          this.#running ??= this.#run()
        })
      }),
    )
    return { offsets, beside: [] }
  }

  async read(stream: string, token: number, at: PageOffset): Promise<Uint8Array | undefined> {
    const sealed = this.#cached.get(at.offset) ?? (await this.#fetch(at))
    return sealed && openPage(this.#options.key, stream, token, sealed)
  }

  /** Connects ahead, so that no statement waits for a connection. */
  prepare(): void {
    if (!this.#closed) this.#options.producer.connect().catch((error: Error) => this.#options.onTrouble?.(error))
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#running
    await Promise.all([this.#options.producer.disconnect(), this.#reader.close()])
  }

  async #fetch(at: PageOffset): Promise<Buffer | undefined> {
    const from = BigInt(at.offset)
    try {
      const [message] = await this.#reader.fetch(at.partition, from, 1, 0)
      const value = message?.offset === String(from) ? (message.value ?? undefined) : undefined
      if (value) this.#remember(at.offset, value)
      return value
    } catch (error) {
      // The offset is below the start of the topic: the page was deleted.
      if (error instanceof LogWentBackwards) return undefined
      throw error
    }
  }

  #remember(offset: number, value: Buffer): void {
    this.#cached.set(offset, value)
    this.#cachedBytes += value.length
    for (const [oldest, { length }] of this.#cached) {
      if (this.#cachedBytes <= MAX_CACHED_BYTES) return
      this.#cached.delete(oldest)
      this.#cachedBytes -= length
    }
  }

  /** Sends one batch at a time; pages that arrive meanwhile form the next batch. */
  async #run(): Promise<void> {
    await undefined
    while (this.#queue.length > 0) {
      await this.#put(this.#cut())
    }
    this.#running = undefined
  }

  /** Sends a batch. When Kafka never takes one of its pages, sends each alone, so that only that page fails. */
  async #put(batch: readonly Waiting[]): Promise<void> {
    try {
      const first = await this.#send(batch)
      batch.forEach(({ resolve }, index) => resolve({ partition: LOG_PARTITION, offset: first + index }))
    } catch (error) {
      if (batch.length > 1 && error instanceof NotTaken) for (const one of batch) await this.#put([one])
      else for (const { reject } of batch) reject(error as Error)
    }
  }

  #cut(): Waiting[] {
    let bytes = 0
    let count = 0
    for (const { value } of this.#queue) {
      if (count > 0 && bytes + value.length > MAX_BATCH_BYTES) break
      bytes += value.length
      count++
    }
    return this.#queue.splice(0, count)
  }

  /**
   * Sends a batch until Kafka takes it.
   * @returns the offset of the first page
   * @throws Unstorable | LogUnavailable once the store is closed
   */
  async #send(batch: readonly Waiting[]): Promise<number> {
    const { topic, producer, onTrouble } = this.#options
    const messages = batch.map(({ key, value }) => ({ partition: LOG_PARTITION, key, value }))
    for (let delay = 20; !this.#closed; delay = Math.min(delay * 2, 500)) {
      try {
        return Number(await producer.send(topic, messages))
      } catch (error) {
        if (error instanceof NotTaken) throw error
        onTrouble?.(error as Error)
      }
      await sleep(delay)
    }
    throw new LogUnavailable('The page store was closed')
  }
}
