import kafkajs, { type ISocketFactory, type Kafka, type Producer, type SASLOptions } from 'kafkajs'
import type { ConnectionOptions } from 'node:tls'
import type { KafkaRequest } from './ports.ts'

export interface KafkaOptions {
  readonly brokers: readonly string[]
  /** @default 'quipu.events.v1' */
  readonly topic?: string
  /** Fixed when the log begins. One partition is enough for one writer, and gives a total order. @default 1 */
  readonly partitions?: number
  /** @default the number of brokers, 3 at most */
  readonly replication?: number
  readonly ssl?: boolean | ConnectionOptions
  readonly sasl?: SASLOptions
  /** Where small result pages are stored. Absent when this process only reads events. */
  readonly pages?: {
    /** @default that of `pagesTopicOf` */
    readonly topic?: string
    /** Encrypts the pages; 32 bytes. */
    readonly key: Buffer
  }
  /** Makes the connections; tests use it to disturb them. */
  readonly socketFactory?: ISocketFactory
  /** Called for each page that could not be stored at the first attempt. */
  readonly onTrouble?: ((error: Error) => void) | undefined
  /** Called for each request that writes or reads back; not for long polls, which wait for news. */
  readonly onRequest?: (request: KafkaRequest) => void
}

export const DEFAULT_TOPIC = 'quipu.events.v1'

/** The topic of result pages that belongs to a topic of events. */
export function pagesTopicOf(eventsTopic: string): string {
  return eventsTopic === DEFAULT_TOPIC ? 'quipu.result-pages' : `${eventsTopic}.result-pages`
}

/** Not idempotent: kafkajs's idempotent producer acknowledges records that it never writes. */
export function createPlainProducer(kafka: Kafka): Producer {
  return kafka.producer({
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    allowAutoTopicCreation: false,
    idempotent: false,
    retry: { retries: 0 },
  })
}
