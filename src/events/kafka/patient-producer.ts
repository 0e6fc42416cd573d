import type { Kafka, Message, Producer } from 'kafkajs'
import { LogUnavailable, Unstorable } from '../event-log.ts'
import { kafkaErrorType } from './kafka-error.ts'

/** How long to wait for an answer, milliseconds: as long as the bytes need, and longer after a missing answer. */
const WAITS_MS = [3_000, 30_000, 300_000] as const
/** Bytes that a slow link carries in a millisecond. */
const BYTES_A_MS = 1000

/** Errors by which a broker says that it will never take a batch, and has stored nothing of it. */
const NEVER_TAKEN: ReadonlySet<string> = new Set([
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_RECORD',
  'INVALID_TIMESTAMP',
  'UNSUPPORTED_FOR_MESSAGE_FORMAT',
])

/** The answer did not come in time: the records may have landed, or may still land. The next attempt has more time. */
export class SlowAnswer extends LogUnavailable {}

/**
 * Writes to one topic, one request at a time. Large batches over a slow link, or to a slow disk, succeed in the end.
 */
export class PatientProducer {
  readonly #kafkaOf: (requestTimeoutMs: number) => Kafka
  readonly #createProducer: (kafka: Kafka) => Producer
  readonly #producers = new Map<number, { readonly producer: Producer; connected: Promise<void> | undefined }>()
  #waitMs: number = WAITS_MS[0]

  constructor(kafkaOf: (requestTimeoutMs: number) => Kafka, createProducer: (kafka: Kafka) => Producer) {
    this.#kafkaOf = kafkaOf
    this.#createProducer = createProducer
  }

  /** Connects ahead of the first message. */
  async connect(): Promise<void> {
    await this.#connected(WAITS_MS[0])
  }

  /**
   * Makes one attempt.
   * @returns the offset of the first message
   * @throws Unstorable no message is in the topic, and no repetition changes that
   * @throws SlowAnswer and others when that is unknown
   */
  async send(topic: string, messages: Message[]): Promise<bigint> {
    const bytes = messages.reduce((sum, { value }) => sum + (value?.length ?? 0), 0)
    const needed = Math.max(this.#waitMs, WAITS_MS[0] + bytes / BYTES_A_MS)
    const waitMs = WAITS_MS.find((wait) => wait >= needed) ?? WAITS_MS.at(-1)!
    const producer = await this.#connected(waitMs)
    const sentAt = performance.now()
    try {
      const [answer] = await producer.send({ topic, acks: -1, timeout: waitMs, messages })
      if (answer?.baseOffset === undefined) throw new LogUnavailable('The broker answered without an offset')
      // A slow broker stays slow for a while.
      this.#waitMs = Math.max(WAITS_MS[0], Math.min(this.#waitMs, 2 * (performance.now() - sentAt)))
      return BigInt(answer.baseOffset)
    } catch (error) {
      const type = kafkaErrorType(error)
      if (type !== undefined && NEVER_TAKEN.has(type))
        throw new Unstorable(`Kafka refuses these records: ${type}`, { cause: error })
      // Half the time, because two timers may differ; an error that comes earlier is not a timeout.
      if (performance.now() - sentAt < waitMs / 2) throw error
      this.#waitMs = Math.min(2 * waitMs, WAITS_MS.at(-1)!)
      throw new SlowAnswer(`Kafka did not answer in time: ${(error as Error).message}`, { cause: error })
    }
  }

  async disconnect(): Promise<void> {
    await Promise.all(
      [...this.#producers.values()].map(async ({ producer, connected }) => {
        await connected?.catch(() => {})
        await producer.disconnect().catch(() => {})
      }),
    )
  }

  async #connected(waitMs: number): Promise<Producer> {
    let one = this.#producers.get(waitMs)
    if (!one) {
      one = { producer: this.#createProducer(this.#kafkaOf(waitMs)), connected: undefined }
      this.#producers.set(waitMs, one)
    }
    // kafkajs reconnects by itself once it was connected.
    one.connected ??= one.producer.connect()
    try {
      await one.connected
    } catch (error) {
      one.connected = undefined
      throw error
    }
    return one.producer
  }
}
