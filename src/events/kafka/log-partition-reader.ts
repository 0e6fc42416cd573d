import { LogUnavailable, LogWentBackwards } from '../event-log.ts'
import {
  createCluster,
  type Broker,
  type KafkaCluster,
  type ClusterOptions,
  type FetchedMessage,
} from './kafka-internals.ts'
import { kafkaErrorType } from './kafka-error.ts'

const MAX_FETCH_BYTES = 4 << 20
/** Rough size of an event: a fetch of few records should not carry megabytes. */
const BYTES_A_RECORD = 4096

/**
 * Sends direct requests to one topic. Each reader has its own connections: Kafka answers a connection in order, so a
 * long poll would delay all requests behind it.
 */
export class LogPartitionReader {
  readonly #options: ClusterOptions
  readonly #topic: string
  #cluster: KafkaCluster | undefined
  #connecting: Promise<KafkaCluster> | undefined
  readonly #leaders = new Map<number, Broker>()
  #closed = false

  constructor(options: ClusterOptions, topic: string) {
    this.#options = options
    this.#topic = topic
  }

  connect(): Promise<KafkaCluster> {
    if (this.#closed) return Promise.reject(new Error('The log was closed'))
    if (this.#cluster) return Promise.resolve(this.#cluster)
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined))
    return this.#connecting
  }

  async #connect(): Promise<KafkaCluster> {
    const cluster = createCluster(this.#options)
    try {
      await cluster.connect()
      await cluster.addTargetTopic(this.#topic)
      await cluster.refreshMetadata()
    } catch (error) {
      await cluster.disconnect().catch(() => {})
      throw error
    }
    this.#cluster = cluster
    return cluster
  }

  /** Fetches records. @param maxWaitMs how long to wait at the end of the log for more */
  async fetch(partition: number, from: bigint, limit: number, maxWaitMs: number): Promise<FetchedMessage[]> {
    const { responses } = await this.#ask(partition, (broker) =>
      broker.fetch({
        replicaId: -1,
        isolationLevel: 0,
        maxWaitTime: maxWaitMs,
        minBytes: 1,
        maxBytes: MAX_FETCH_BYTES,
        rackId: '',
        topics: [
          {
            topic: this.#topic,
            partitions: [
              {
                partition,
                fetchOffset: String(from),
                maxBytes: Math.min(MAX_FETCH_BYTES, limit * BYTES_A_RECORD),
                currentLeaderEpoch: -1,
              },
            ],
          },
        ],
      }),
    )
    const messages = responses[0]?.partitions[0]?.messages ?? []
    // Kafka returns whole batches; the first may contain records below the requested offset.
    return messages.filter((message) => BigInt(message.offset) >= from).slice(0, limit)
  }

  /** An offset of a partition. @param timestamp -1 for the end, -2 for the first offset that is still there */
  async offset(partition: number, timestamp: -1 | -2 = -1): Promise<bigint> {
    const { responses } = await this.#ask(partition, (broker) =>
      broker.listOffsets({
        replicaId: -1,
        isolationLevel: 0,
        topics: [{ topic: this.#topic, partitions: [{ partition, timestamp }] }],
      }),
    )
    const offset = responses[0]?.partitions[0]?.offset
    if (offset === undefined) throw new LogUnavailable('The broker answered without the requested offset')
    return BigInt(offset)
  }

  /** Deletes all records below an offset; earlier deletions stay. */
  async deleteBelow(partition: number, offset: bigint): Promise<void> {
    const request = { topics: [{ topic: this.#topic, partitions: [{ partition, offset: String(offset) }] }] }
    await this.#ask(partition, (broker) => broker.deleteRecords(request))
  }

  async #ask<T>(partition: number, request: (broker: Broker) => Promise<T>): Promise<T> {
    try {
      return await request(this.#leaders.get(partition) ?? (await this.#leaderOf(partition)))
    } catch (cause) {
      // After any error leaders may have moved and connections may be dead: connect anew.
      this.#leaders.clear()
      const cluster = this.#cluster
      this.#cluster = undefined
      void cluster?.disconnect().catch(() => {})
      if (kafkaErrorType(cause) === 'OFFSET_OUT_OF_RANGE')
        throw new LogWentBackwards(
          'The topic ends before an offset that was read, or begins after it: the topic was recreated',
          {
            cause,
          },
        )
      throw new LogUnavailable(`The event log does not answer: ${(cause as Error).message}`, { cause })
    }
  }

  async #leaderOf(partition: number): Promise<Broker> {
    const cluster = await this.connect()
    await cluster.refreshMetadataIfNecessary()
    const [nodeId] = Object.keys(cluster.findLeaderForPartitions(this.#topic, [partition]))
    if (nodeId === undefined) throw new Error(`Log partition ${partition} of ${this.#topic} has no leader`)
    const broker = await cluster.findBroker({ nodeId })
    this.#leaders.set(partition, broker)
    return broker
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#connecting?.catch(() => {})
    await this.#cluster?.disconnect().catch(() => {})
    this.#leaders.clear()
  }
}
