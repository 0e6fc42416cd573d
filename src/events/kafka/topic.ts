import { setTimeout as sleep } from 'node:timers/promises'
import kafkajs, { type Admin, type Kafka } from 'kafkajs'
import { LogUnavailable, MisconfiguredLog } from '../event-log.ts'

export const MAX_MESSAGE_BYTES = 16 << 20

export interface TopicSettings {
  readonly topic: string
  readonly partitions: number
  /** Copies of the log; with 3, two must have a record before it counts. Defaults to as many as there are brokers, 3 at most. */
  readonly replication?: number | undefined
}

/** What the truth needs; each default of Kafka's loses or refuses something. */
function wanted(replication: number): Record<string, string> {
  return {
    'retention.ms': '-1',
    'retention.bytes': '-1',
    'cleanup.policy': 'delete',
    'max.message.bytes': String(MAX_MESSAGE_BYTES),
    'unclean.leader.election.enable': 'false',
    'min.insync.replicas': replication >= 3 ? '2' : '1',
    // One broker alone has no copy elsewhere: it must not answer before its disk has the record.
    ...(replication === 1 ? { 'flush.messages': '1' } : {}),
  }
}

/**
 * Makes the topic unless it is there, and checks that it keeps everything.
 * @throws MisconfiguredLog with one line that names the setting
 */
export async function ensureTopic(kafka: Kafka, settings: TopicSettings): Promise<void> {
  const admin = kafka.admin({ retry: { retries: 2 } })
  try {
    await admin.connect()
    await createTopic(admin, settings)
    await checkTopic(admin, settings)
  } catch (cause) {
    if (cause instanceof MisconfiguredLog) throw cause
    throw new LogUnavailable(`Kafka does not answer: ${(cause as Error).message}`, { cause })
  } finally {
    await admin.disconnect().catch(() => {})
  }
}

async function createTopic(admin: Admin, { topic, partitions, replication }: TopicSettings): Promise<void> {
  if ((await admin.listTopics()).includes(topic)) return
  const brokers = (await admin.describeCluster()).brokers.length
  const copies = replication ?? Math.min(3, brokers)
  const configEntries = Object.entries(wanted(copies)).map(([name, value]) => ({ name, value }))
  await admin
    .createTopics({
      waitForLeaders: true,
      topics: [{ topic, numPartitions: partitions, replicationFactor: copies, configEntries }],
    })
    .catch((error: Error) => {
      // Another process made it meanwhile: the check that follows looks at what it made.
      if (!/already exists/i.test(`${error.message} ${JSON.stringify(error)}`)) throw error
    })
}

/** A topic just made, or a broker just back, has no leader for a moment. */
async function whenLed<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      const retriable = error instanceof kafkajs.KafkaJSError && error.retriable
      if (!retriable || attempt >= LEADER_TRIES) throw error
      await sleep(LEADER_PAUSE_MS)
    }
  }
}

const LEADER_TRIES = 25
const LEADER_PAUSE_MS = 200

async function checkTopic(admin: Admin, { topic, partitions }: TopicSettings): Promise<void> {
  const metadata = await admin.fetchTopicMetadata({ topics: [topic] })
  const found = metadata.topics[0]!.partitions
  if (found.length !== partitions)
    throw new MisconfiguredLog(
      `Topic ${topic} has ${found.length} partitions instead of ${partitions}: streams would change place`,
    )
  const copies = Math.min(...found.map((each) => each.replicas.length))
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }],
  })
  const actual = new Map(resources[0]!.configEntries.map((entry) => [entry.configName, entry.configValue]))
  for (const [name, value] of Object.entries(wanted(copies))) {
    const is = actual.get(name)
    const ok =
      name === 'max.message.bytes' || name === 'min.insync.replicas' ? Number(is) >= Number(value) : is === value
    // A single broker may trade the flush for speed; the operator who sets it otherwise knows why.
    if (!ok && name !== 'flush.messages')
      throw new MisconfiguredLog(`Topic ${topic} has ${name}=${is}, which would lose or refuse events: set ${value}`)
  }
  const offsets = await whenLed(() => admin.fetchTopicOffsets(topic))
  for (const { partition, low } of offsets)
    if (low !== '0')
      throw new MisconfiguredLog(
        `Topic ${topic} begins at offset ${low} in partition ${partition}: its past was deleted`,
      )
}
