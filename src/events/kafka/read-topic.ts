import kafkajs, { type SASLOptions } from 'kafkajs'
import type { ConnectionOptions } from 'node:tls'
import { LogPartitionReader } from './log-partition-reader.ts'

export interface ReadTopicOptions {
  readonly brokers: readonly string[]
  readonly topic: string
  readonly ssl?: boolean | ConnectionOptions | undefined
  readonly sasl?: SASLOptions | undefined
}

export interface TopicMessage {
  readonly text: string
  /** When the message was sent, milliseconds since the epoch. */
  readonly timeMs: number
}

const TIMEOUT_MS = 10_000
const WAIT_MS = 100
const MESSAGES = 1000

/**
 * Reads all messages of a topic up to its end at the call, without a consumer group. A topic that does not exist has
 * none.
 * @throws LogUnavailable when a broker does not answer
 */
export async function* readTopic(options: ReadTopicOptions): AsyncGenerator<TopicMessage> {
  const partitions = await partitionsOf(options)
  const { brokers, topic, ssl, sasl } = options
  const reader = new LogPartitionReader(
    { brokers, clientId: 'quipu-search', connectionTimeout: TIMEOUT_MS, requestTimeout: TIMEOUT_MS, ssl, sasl },
    topic,
  )
  try {
    for (const partition of partitions) {
      const end = await reader.offset(partition)
      for (let next = await reader.offset(partition, -2); next < end;) {
        const messages = await reader.fetch(partition, next, MESSAGES, WAIT_MS)
        for (const { value, timestamp } of messages)
          if (value) yield { text: value.toString('utf8'), timeMs: Number(timestamp) }
        // Compaction may have removed the last messages.
        if (messages.length === 0) break
        next = BigInt(messages.at(-1)!.offset) + 1n
      }
    }
  } finally {
    await reader.close()
  }
}

/** How long a topic keeps messages, milliseconds; undefined when it keeps them without a limit. */
export async function retentionOf(options: ReadTopicOptions): Promise<number | undefined> {
  return withAdmin(options, async (admin) => {
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [
        {
          type: kafkajs.ConfigResourceTypes.TOPIC,
          name: options.topic,
          configNames: ['retention.ms', 'cleanup.policy'],
        },
      ],
    })
    const valueOf = (name: string): string | undefined =>
      resources[0]?.configEntries.find(({ configName }) => configName === name)?.configValue
    const retention = Number(valueOf('retention.ms') ?? -1)
    return retention < 0 || valueOf('cleanup.policy') === 'compact' ? undefined : retention
  })
}

async function partitionsOf(options: ReadTopicOptions): Promise<readonly number[]> {
  return withAdmin(options, async (admin) => {
    if (!(await admin.listTopics()).includes(options.topic)) return []
    const { topics } = await admin.fetchTopicMetadata({ topics: [options.topic] })
    return topics[0]?.partitions.map(({ partitionId }) => partitionId) ?? []
  })
}

async function withAdmin<T>(
  { brokers, ssl, sasl }: ReadTopicOptions,
  work: (admin: kafkajs.Admin) => Promise<T>,
): Promise<T> {
  const kafka = new kafkajs.Kafka({
    clientId: 'quipu-search',
    brokers: [...brokers],
    logLevel: kafkajs.logLevel.NOTHING,
    connectionTimeout: TIMEOUT_MS,
    requestTimeout: TIMEOUT_MS,
    ...(ssl === undefined ? {} : { ssl }),
    ...(sasl === undefined ? {} : { sasl }),
  })
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}
