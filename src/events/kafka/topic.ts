import { setTimeout as sleep } from 'node:timers/promises'
import kafkajs, { type Admin, type Kafka } from 'kafkajs'
import { LogUnavailable, MisconfiguredLog } from '../event-log.ts'
import { isKafkaRetriable, saysOnly } from './kafka-error.ts'

const MAX_MESSAGE_BYTES = 16 << 20

/** A page's JSON and what encryption adds: a coordinator-only result of one very wide row is the largest. */
export const MAX_PAGE_BYTES = 20 << 20

export interface TopicSettings {
  readonly topic: string
  readonly holds: 'events' | 'result pages'
  readonly partitions: number
  /** Copies of the log; with 3, two must have a record before it counts. Defaults to as many as there are brokers, 3 at most. */
  readonly replication?: number | undefined
}

/** What is made, and how a setting that is there already must stand to it. */
interface Wanted {
  readonly name: string
  readonly value: string
  readonly must: 'equal' | 'at least' | 'nothing'
}

/** What the topic needs; each default of Kafka's loses or refuses something. */
function wanted(holds: TopicSettings['holds'], replication: number): readonly Wanted[] {
  const common: Wanted[] = [
    { name: 'cleanup.policy', value: 'delete', must: 'equal' },
    { name: 'unclean.leader.election.enable', value: 'false', must: 'equal' },
    { name: 'min.insync.replicas', value: replication >= 3 ? '2' : '1', must: 'at least' },
  ]
  if (holds === 'result pages')
    return [
      ...common,
      // No result is asked for longer than the minutes that its query lives on after its end.
      { name: 'retention.ms', value: String(PAGES_KEPT_MS), must: 'at least' },
      // Only whole segments are deleted.
      { name: 'segment.ms', value: String(PAGES_KEPT_MS / 6), must: 'nothing' },
      { name: 'max.message.bytes', value: String(MAX_PAGE_BYTES), must: 'at least' },
    ]
  return [
    ...common,
    { name: 'retention.ms', value: '-1', must: 'equal' },
    { name: 'retention.bytes', value: '-1', must: 'equal' },
    { name: 'max.message.bytes', value: String(MAX_MESSAGE_BYTES), must: 'at least' },
    // One broker alone has no copy elsewhere: it must not answer before its disk has the record. The operator who sets
    // it otherwise trades that for speed.
    ...(replication === 1 ? [{ name: 'flush.messages', value: '1', must: 'nothing' } as const] : []),
  ]
}

const PAGES_KEPT_MS = 3_600_000

/**
 * Makes the topics unless they are there, and checks that they keep what they must.
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
 * Makes a topic for others to read unless it is there: one partition, for one order of all, and a bounded past. Whoever makes
 * it himself has both as he likes.
 */
export async function makePublicTopic(
  kafka: Kafka,
  { topic, retentionMs }: { readonly topic: string; readonly retentionMs: number },
): Promise<void> {
  const admin = kafka.admin({ retry: { retries: 2 } })
  const entries = [
    { name: 'cleanup.policy', value: 'delete' },
    { name: 'retention.ms', value: String(retentionMs) },
    // Only whole segments are deleted, and not before their last message is as old.
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
      // Another process made it meanwhile: the check that follows looks at what it made.
      if (!saysOnly(error, 'TOPIC_ALREADY_EXISTS')) throw error
    })
}

/** A topic just made, or a broker just back, has no leader for a moment. */
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
      `Topic ${topic} has ${found.length} partitions instead of ${partitions}: streams would change place`,
    )
  const copies = Math.min(...found.map((each) => each.replicas.length))
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }],
  })
  const actual = new Map(resources[0]!.configEntries.map((entry) => [entry.configName, entry.configValue]))
  for (const { name, value, must } of wanted(holds, copies)) {
    const is = actual.get(name)
    // -1 is without end for a retention.
    const enough =
      must === 'nothing' || is === value || (must === 'at least' && (Number(is) >= Number(value) || is === '-1'))
    if (!enough)
      throw new MisconfiguredLog(`Topic ${topic} has ${name}=${is}, which would lose or refuse ${holds}: set ${value}`)
  }
}
