import { createRequire } from 'node:module'
import type { ISocketFactory, SASLOptions } from 'kafkajs'
import type { ConnectionOptions } from 'node:tls'

/*
 * kafkajs reads only through consumer groups, whose first join takes seconds; its internal Cluster and Broker can Fetch
 * directly. Only this file uses internals of the package, which is pinned to 2.2.4 for that reason.
 */

export interface ClusterOptions {
  readonly brokers: readonly string[]
  readonly clientId: string
  readonly connectionTimeout: number
  readonly requestTimeout: number
  readonly ssl?: boolean | ConnectionOptions | undefined
  readonly sasl?: SASLOptions | undefined
  readonly socketFactory?: ISocketFactory | undefined
}

export interface FetchedMessage {
  readonly offset: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  /** Milliseconds since the epoch. */
  readonly timestamp: string
  readonly headers?: Readonly<Record<string, Buffer | Buffer[] | undefined>>
}

interface FetchRequest {
  readonly replicaId: -1
  readonly isolationLevel: 0
  readonly maxWaitTime: number
  readonly minBytes: number
  readonly maxBytes: number
  readonly rackId: string
  readonly topics: {
    topic: string
    partitions: { partition: number; fetchOffset: string; maxBytes: number; currentLeaderEpoch: -1 }[]
  }[]
}

export interface Broker {
  fetch(
    request: FetchRequest,
  ): Promise<{ responses: { partitions: { partition: number; messages: FetchedMessage[] }[] }[] }>
  listOffsets(request: {
    replicaId: -1
    isolationLevel: 0
    topics: { topic: string; partitions: { partition: number; timestamp: number }[] }[]
  }): Promise<{ responses: { partitions: { partition: number; offset: string }[] }[] }>
  deleteRecords(request: {
    topics: { topic: string; partitions: { partition: number; offset: string }[] }[]
  }): Promise<unknown>
}

export interface KafkaCluster {
  connect(): Promise<void>
  disconnect(): Promise<void>
  isConnected(): boolean
  addTargetTopic(topic: string): Promise<void>
  refreshMetadata(): Promise<void>
  refreshMetadataIfNecessary(): Promise<void>
  /** Partitions by the node id of their leader. */
  findLeaderForPartitions(topic: string, partitions: number[]): Record<string, number[]>
  findBroker(options: { nodeId: string }): Promise<Broker>
}

const require = createRequire(import.meta.url)
const ClusterClass = require('kafkajs/src/cluster') as new (options: object) => KafkaCluster
const createSocketFactory = require('kafkajs/src/network/socketFactory') as () => ISocketFactory
const { createLogger, LEVELS } = require('kafkajs/src/loggers') as {
  createLogger: (options: object) => object
  LEVELS: { NOTHING: number }
}
const consoleLog = require('kafkajs/src/loggers/console') as object
const murmur2 = require('kafkajs/src/producer/partitioners/default/murmur2') as (key: string | Buffer) => number

export function createCluster(options: ClusterOptions): KafkaCluster {
  return new ClusterClass({
    ...options,
    brokers: [...options.brokers],
    socketFactory: options.socketFactory ?? createSocketFactory(),
    logger: createLogger({ level: LEVELS.NOTHING, logCreator: consoleLog }),
    authenticationTimeout: 10_000,
    reauthenticationThreshold: 10_000,
    enforceRequestTimeout: true,
    metadataMaxAge: 300_000,
    retry: { retries: 0 },
    allowAutoTopicCreation: false,
    maxInFlightRequests: null,
    isolationLevel: 0,
  })
}

/** The partition of a key, computed as Kafka's own clients do. */
export function logPartitionOf(stream: string, partitions: number): number {
  return partitions === 1 ? 0 : (murmur2(Buffer.from(stream)) & 0x7fffffff) % partitions
}
