import { setTimeout as sleep } from 'node:timers/promises'
import type { Kafka, Producer } from 'kafkajs'
import { LogUnavailable, LogWentBackwards } from '../event-log.ts'
import type { KeptPages, PagePlace, ResultPage, ResultPageStore } from '../result-page-store.ts'
import type { ClusterOptions } from './kafka-internals.ts'
import { LogPartitionReader } from './log-partition-reader.ts'
import { openPage, sealPage } from './page-cipher.ts'

export interface KafkaResultPagesOptions {
  readonly topic: string
  /** 32 bytes; pages sealed with another do not open. */
  readonly key: Buffer
  /** Makes a producer with connections of its own: pages do not wait behind events. */
  readonly createProducer: (kafka: Kafka) => Producer
  readonly kafka: Kafka
  readonly cluster: ClusterOptions
  readonly onTrouble?: ((error: Error) => void) | undefined
}

interface Waiting {
  readonly key: string
  readonly value: Buffer
  readonly resolve: (place: PagePlace) => void
  readonly reject: (error: Error) => void
}

const LOG_PARTITION = 0
const MAX_BATCH_BYTES = 1 << 20
const MAX_CACHED_BYTES = 16 << 20

/**
 * Result pages in a topic that forgets them after a while. Every in-sync replica has a page before its offset is told,
 * so the event that carries the offset names bytes that are there. A page whose answer was lost is sent again; nobody
 * ever asks for the first copy.
 */
export class KafkaResultPages implements ResultPageStore {
  readonly #options: KafkaResultPagesOptions
  readonly #producer: Producer
  readonly #reader: LogPartitionReader
  readonly #cached = new Map<number, Buffer>()
  #cachedBytes = 0
  #queue: Waiting[] = []
  #running: Promise<void> | undefined
  #connected: Promise<void> | undefined
  #closed = false

  constructor(options: KafkaResultPagesOptions) {
    this.#options = options
    this.#producer = options.createProducer(options.kafka)
    this.#reader = new LogPartitionReader(options.cluster, options.topic)
  }

  async keep(stream: string, pages: readonly ResultPage[]): Promise<KeptPages> {
    const places = await Promise.all(
      pages.map(({ token, bytes }) => {
        if (this.#closed) return Promise.reject(new LogUnavailable('The page store was closed'))
        return new Promise<PagePlace>((resolve, reject) => {
          const value = sealPage(this.#options.key, stream, token, bytes)
          this.#queue.push({ key: stream, value, resolve, reject })
          this.#running ??= this.#run()
        })
      }),
    )
    return { places, beside: [] }
  }

  async read(stream: string, token: number, place: PagePlace): Promise<Uint8Array | undefined> {
    const sealed = this.#cached.get(place.offset) ?? (await this.#fetch(place))
    return sealed && openPage(this.#options.key, stream, token, sealed)
  }

  /** Connects ahead, so that no statement waits for it. */
  prepare(): void {
    if (!this.#closed) this.#connect().catch((error: Error) => this.#options.onTrouble?.(error))
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#running
    await this.#connected?.catch(() => {})
    await Promise.all([this.#producer.disconnect().catch(() => {}), this.#reader.close()])
  }

  async #fetch(place: PagePlace): Promise<Buffer | undefined> {
    const from = BigInt(place.offset)
    try {
      const [message] = await this.#reader.fetch(place.partition, from, 1, 0)
      const value = message?.offset === String(from) ? (message.value ?? undefined) : undefined
      if (value) this.#remember(place.offset, value)
      return value
    } catch (error) {
      // Below what the topic still has: its time is over.
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

  /** One batch in flight; what comes meanwhile is the next. */
  async #run(): Promise<void> {
    await undefined
    while (this.#queue.length > 0) {
      const batch = this.#cut()
      const first = await this.#send(batch)
      batch.forEach(({ resolve, reject }, index) => {
        if (first === undefined) reject(new LogUnavailable('The page store was closed'))
        else resolve({ partition: LOG_PARTITION, offset: first + index })
      })
    }
    this.#running = undefined
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

  /** @returns the offset of the first; undefined once closed */
  async #send(batch: readonly Waiting[]): Promise<number | undefined> {
    const { topic, onTrouble } = this.#options
    const messages = batch.map(({ key, value }) => ({ partition: LOG_PARTITION, key, value }))
    for (let delay = 20; !this.#closed; delay = Math.min(delay * 2, 500)) {
      try {
        await this.#connect()
        const [answer] = await this.#producer.send({ topic, acks: -1, messages })
        if (answer?.baseOffset !== undefined) return Number(answer.baseOffset)
      } catch (error) {
        onTrouble?.(error as Error)
      }
      await sleep(delay)
    }
    return undefined
  }

  async #connect(): Promise<void> {
    this.#connected ??= this.#producer.connect()
    try {
      await this.#connected
    } catch (error) {
      this.#connected = undefined
      throw error
    }
  }
}
