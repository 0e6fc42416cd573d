import kafkajs, { type Kafka, type SASLOptions } from 'kafkajs'
import type { ConnectionOptions } from 'node:tls'
import { Unstorable } from '../event-log.ts'
import { PatientProducer } from './patient-producer.ts'
import { makePublicTopic } from './topic.ts'

export interface PublicTopicOptions {
  readonly brokers: readonly string[]
  readonly topic: string
  /** How long messages stay, milliseconds; applies only when this process makes the topic. */
  readonly retentionMs: number
  readonly ssl?: boolean | ConnectionOptions | undefined
  readonly sasl?: SASLOptions | undefined
}

interface KeyedText {
  readonly key: string
  readonly text: string
}

const CONNECT_TIMEOUT_MS = 3_000
const CONTENT_TYPE = 'application/cloudevents+json; charset=utf-8'

/** A topic that other systems read: messages are placed by their keys as Kafka's own clients do, and stay in order. */
export class PublicTopic {
  readonly #options: PublicTopicOptions
  readonly #producer: PatientProducer
  #made = false

  constructor(options: PublicTopicOptions) {
    this.#options = options
    this.#producer = new PatientProducer(
      (requestTimeout) => this.#kafka(requestTimeout),
      (kafka) =>
        kafka.producer({
          createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
          allowAutoTopicCreation: false,
          idempotent: false,
          retry: { retries: 0 },
        }),
    )
  }

  /**
   * Sends messages; makes the topic first. Either all count as taken, apart from those that Kafka refuses for good, or
   * none does.
   */
  async deliver(
    messages: readonly KeyedText[],
  ): Promise<{ readonly taken: number; readonly refused: readonly string[]; readonly trouble?: string }> {
    try {
      if (!this.#made) await makePublicTopic(this.#kafka(CONNECT_TIMEOUT_MS), this.#options)
      this.#made = true
      return { taken: messages.length, refused: await this.#send(messages) }
    } catch (error) {
      // The topic may have been deleted: look for it again next time.
      this.#made = false
      return { taken: 0, refused: [], trouble: (error as Error).message }
    }
  }

  /** Sends messages. @returns the reasons of refusals: a message that is too large does not affect the others */
  async #send(messages: readonly KeyedText[]): Promise<readonly string[]> {
    const { topic } = this.#options
    try {
      await this.#producer.send(
        topic,
        messages.map(({ key, text }) => ({ key, value: text, headers: { 'content-type': CONTENT_TYPE } })),
      )
      return []
    } catch (error) {
      if (!(error instanceof Unstorable)) throw error
      if (messages.length === 1) return [error.message]
      const middle = messages.length >> 1
      return [...(await this.#send(messages.slice(0, middle))), ...(await this.#send(messages.slice(middle)))]
    }
  }

  close(): Promise<void> {
    return this.#producer.disconnect()
  }

  #kafka(requestTimeout: number): Kafka {
    const { brokers, ssl, sasl } = this.#options
    return new kafkajs.Kafka({
      clientId: 'quipu-public',
      brokers: [...brokers],
      logLevel: kafkajs.logLevel.NOTHING,
      connectionTimeout: CONNECT_TIMEOUT_MS,
      requestTimeout,
      retry: { retries: 0 },
      ...(ssl === undefined ? {} : { ssl }),
      ...(sasl === undefined ? {} : { sasl }),
    })
  }
}
