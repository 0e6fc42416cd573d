import { randomBytes } from 'node:crypto'
import { ConfigResourceTypes, Kafka, logLevel, type Admin } from 'kafkajs'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MisconfiguredLog } from '../../../src/events/event-log.ts'
import { FoldedEventLog } from '../../../src/events/folded-event-log.ts'
import { KafkaStoreBesidePostgres } from '../../../src/events/kafka-beside-postgres.ts'
import { ensureTopics } from '../../../src/events/kafka/topic.ts'
import { kafkaAdapter } from '../../support/event-log/kafka-fixture.ts'
import { events, me, until } from '../../support/event-log/log-fixture.ts'
import { kafkaIsAvailable, sharedKafka } from '../../support/kafka.ts'

describe.runIf(await kafkaIsAvailable())("The log's topic", () => {
  let kafka: Kafka
  let admin: Admin
  let topic: string
  beforeAll(async () => {
    kafka = new Kafka({ brokers: [...(await sharedKafka()).brokers], logLevel: logLevel.NOTHING })
    admin = kafka.admin()
    await admin.connect()
  })
  afterAll(() => admin.disconnect())
  beforeEach(() => void (topic = `topic-${randomBytes(5).toString('hex')}`))

  const alter = async (name: string, value: string): Promise<void> => {
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
    await admin.alterConfigs({
      validateOnly: false,
      resources: [
        { ...resource, configEntries: [...(await wanted()).filter((entry) => entry.name !== name), { name, value }] },
      ],
    })
    // A broker shows the change some time after the controller.
    await until(async () => (await wanted()).some((entry) => entry.name === name && entry.value === value))
  }
  // A change resets settings that it does not name to the default.
  const wanted = async (): Promise<{ name: string; value: string }[]> => {
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
    const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [resource] })
    return resources[0]!.configEntries
      .filter((entry) => !entry.isDefault)
      .map((entry) => ({ name: entry.configName, value: entry.configValue }))
  }

  it('is created once by concurrent callers, and keeps all records', async () => {
    await Promise.all([1, 2, 3].map(() => ensureTopics(kafka, [{ topic, holds: 'events', partitions: 1 }])))
    const settings = new Map((await wanted()).map(({ name, value }) => [name, value]))
    expect(settings.get('retention.ms')).toBe('-1')
    expect(settings.get('max.message.bytes')).toBe(String(16 << 20))
    expect(settings.get('flush.messages')).toBe('1')
  })

  it.each([
    ['retention.ms', '604800000'],
    ['retention.bytes', '1000000'],
    ['cleanup.policy', 'compact'],
    ['max.message.bytes', '1048588'],
    ['unclean.leader.election.enable', 'true'],
  ])('is refused with %s=%s', async (name, value) => {
    await ensureTopics(kafka, [{ topic, holds: 'events', partitions: 1 }])
    await alter(name, value)
    await expect(ensureTopics(kafka, [{ topic, holds: 'events', partitions: 1 }])).rejects.toThrow(MisconfiguredLog)
    await expect(ensureTopics(kafka, [{ topic, holds: 'events', partitions: 1 }])).rejects.toThrow(`${name}=${value}`)
  })

  it('is refused if its first records were deleted', async () => {
    await ensureTopics(kafka, [{ topic, holds: 'events', partitions: 1 }])
    const producer = kafka.producer()
    await producer.connect()
    await producer.send({ topic, messages: [{ value: 'a' }, { value: 'b' }] })
    await producer.disconnect()
    const fresh = kafka.admin()
    await fresh.connect()
    await fresh.fetchTopicOffsets(topic)
    await fresh.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '1' }] })
    await fresh.disconnect()
    const { brokers } = await sharedKafka()
    const store = new KafkaStoreBesidePostgres({ brokers, topic, database: {} })
    await expect(store.open()).rejects.toThrow('begins at offset 1 in partition 0: earlier records were deleted')
    await store.close()
  })

  it('is refused if its number of partitions changed', async () => {
    const fixture = await kafkaAdapter.fixture()
    const log = await fixture.open()
    await log.claim(me)
    await log.append('s', 0, events(1))
    await admin.createPartitions({ topicPartitions: [{ topic: fixture.details['topic']!, count: 2 }] })
    const topics = [fixture.details['topic']!]
    await until(async () => (await admin.fetchTopicMetadata({ topics })).topics[0]!.partitions.length === 2)
    await expect(fixture.open()).rejects.toThrow('has 2 partitions instead of 1')
    const store = new KafkaStoreBesidePostgres({
      brokers: [fixture.details['broker']!],
      topic: fixture.details['topic']!,
      partitions: 2,
      database: { connectionString: fixture.details['url']! },
    })
    // A configuration with two partitions is refused, too.
    const other = new FoldedEventLog(store)
    await expect(other.open()).rejects.toThrow('was begun with 1 log partitions')
    await other.close()
    await fixture.close()
  })
})
