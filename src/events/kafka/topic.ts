import { setTimeout as sleep } from 'node:timers/promises'
import kafkajs, { type Admin, type Kafka } from 'kafkajs'
import { LogUnavailable, MisconfiguredLog } from '../event-log.ts'
import { isKafkaRetriable, saysOnly } from './kafka-error.ts'

const MAX_MESSAGE_BYTES = 16 << 20

/**
 * Limit of a page's JSON and the encryption's overhead: the largest is a coordinator-only result of one very wide row.
 */
export const MAX_PAGE_BYTES = 20 << 20

export interface TopicSettings {
  readonly topic: string
  readonly holds: 'events' | 'result pages'
  readonly partitions: number
  /**
   * Copies of the log; with 3, two brokers must have a record before it counts. Defaults to the number of brokers, 3 at
   * most.
   */
  readonly replication?: number | undefined
}

/** A setting for a new topic, and how an existing topic's setting must compare with it. */
interface Wanted {
  readonly name: string
  readonly value: string
  readonly must: 'equal' | 'at least' | 'nothing'
}

/** The settings that the topic needs; each of Kafka's defaults would lose or refuse something. */
function wanted(holds: TopicSettings['holds'], replication: number): readonly Wanted[] {
  const common: Wanted[] = [
    { name: 'cleanup.policy', value: 'delete', must: 'equal' },
    { name: 'unclean.leader.election.enable', value: 'false', must: 'equal' },
    { name: 'min.insync.replicas', value: replication >= 3 ? '2' : '1', must: 'at least' },
  ]
  if (holds === 'result pages')
    return [
      ...common,
      // Clients request a result at most some minutes after its query has ended.
      { name: 'retention.ms', value: String(PAGES_KEPT_MS), must: 'at least' },
      // Kafka deletes only whole segments.
      { name: 'segment.ms', value: String(PAGES_KEPT_MS / 6), must: 'nothing' },
      { name: 'max.message.bytes', value: String(MAX_PAGE_BYTES), must: 'at least' },
    ]
  return [
    ...common,
    { name: 'retention.ms', value: '-1', must: 'equal' },
    { name: 'retention.bytes', value: '-1', must: 'equal' },
    { name: 'max.message.bytes', value: String(MAX_MESSAGE_BYTES), must: 'at least' },
    // A single broker has no copy elsewhere, so it must not answer before its disk has the record. An operator may set
    // another value and trade safety for speed.
    ...(replication === 1 ? [{ name: 'flush.messages', value: '1', must: 'nothing' } as const] : []),
  ]
}

const PAGES_KEPT_MS = 3_600_000

/**
 * Makes the topics unless they exist, and checks that their settings keep all records.
 * @throws MisconfiguredLog with one line that names the setting
 */
export async function ensureTopics(kafka: Kafka, topics: readonly TopicSettings[]): Promise<void> {
  const admin = kafka.admin({ retry: { retries: 2 } })
  try {
    await admin.connect()
    for (const settings of topics) {
      await whenLed(() => createTopic(admin, settings, (copies) => wanted(settings.holds, copies)))
      await whenLed(() => checkTopic(admin, settings))
    }
  } catch (cause) {
    if (cause instanceof MisconfiguredLog) throw cause
    throw new LogUnavailable(`Kafka does not answer: ${(cause as Error).message}`, { cause })
  } finally {
    await admin.disconnect().catch(() => {})
  }
}

/**
 * Makes a topic for other systems unless it exists: one partition, for a total order, and a limited retention. An
 * operator who makes the topic first may choose both.
 */
export async function makePublicTopic(
  kafka: Kafka,
  { topic, retentionMs }: { readonly topic: string; readonly retentionMs: number },
): Promise<void> {
  const admin = kafka.admin({ retry: { retries: 2 } })
  const entries = [
    { name: 'cleanup.policy', value: 'delete' },
    { name: 'retention.ms', value: String(retentionMs) },
    // Kafka deletes only whole segments, and only once their last message is old enough.
    { name: 'segment.ms', value: String(Math.max(1000, Math.round(retentionMs / 7))) },
    { name: 'max.message.bytes', value: String(MAX_MESSAGE_BYTES) },
  ]
  try {
    await admin.connect()
    await whenLed(() => createTopic(admin, { topic, partitions: 1, replication: undefined }, () => entries))
  } finally {
    await admin.disconnect().catch(() => {})
  }
}

async function createTopic(
  admin: Admin,
  { topic, partitions, replication }: Omit<TopicSettings, 'holds'>,
  entriesOf: (copies: number) => readonly Pick<Wanted, 'name' | 'value'>[],
): Promise<void> {
  if ((await admin.listTopics()).includes(topic)) return
  const brokers = (await admin.describeCluster()).brokers.length
  const copies = replication ?? Math.min(3, brokers)
  const configEntries = entriesOf(copies).map(({ name, value }) => ({ name, value }))
  await admin
    .createTopics({
      waitForLeaders: true,
      topics: [{ topic, numPartitions: partitions, replicationFactor: copies, configEntries }],
    })
    .catch((error: Error) => {
      // Another process made it meanwhile; the check that follows verifies its settings.
      if (!saysOnly(error, 'TOPIC_ALREADY_EXISTS')) throw error
    })
}

/** Repeats a request: a topic that was just made, or a broker that just came back, has no leader for a moment. */
async function whenLed<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      if (!isKafkaRetriable(error) || attempt >= LEADER_TRIES) throw error
      await sleep(LEADER_PAUSE_MS)
    }
  }
}

const LEADER_TRIES = 25
const LEADER_PAUSE_MS = 200

async function checkTopic(admin: Admin, { topic, holds, partitions }: TopicSettings): Promise<void> {
  const metadata = await admin.fetchTopicMetadata({ topics: [topic] })
  const found = metadata.topics[0]!.partitions
  if (found.length !== partitions)
    throw new MisconfiguredLog(
      `Topic ${topic} has ${found.length} partitions instead of ${partitions}: streams would move to other partitions`,
    )
  const copies = Math.min(...found.map((each) => each.replicas.length))
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }],
  })
  const actual = new Map(resources[0]!.configEntries.map((entry) => [entry.configName, entry.configValue]))
  for (const { name, value, must } of wanted(holds, copies)) {
    const is = actual.get(name)
    // For a retention, -1 means unlimited.
    const enough =
      must === 'nothing' || is === value || (must === 'at least' && (Number(is) >= Number(value) || is === '-1'))
    if (!enough)
      throw new MisconfiguredLog(`Topic ${topic} has ${name}=${is}, which would lose or refuse ${holds}: set ${value}`)
  }
}
