import { randomBytes } from 'node:crypto'
import { ConfigResourceTypes, Kafka, logLevel, type Admin } from 'kafkajs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { logPartitionOf } from '../../../src/events/kafka/kafka-internals.ts'
import { PublicTopic } from '../../../src/events/kafka/public-topic.ts'
import { until } from '../../support/event-log/log-fixture.ts'
import { kafkaIsAvailable, sharedKafka } from '../../support/kafka.ts'
import { readTopic } from '../../support/kafka-topic.ts'
import { freePort } from '../../support/postgres.ts'

describe.runIf(await kafkaIsAvailable())('The public topic', () => {
  let brokers: readonly string[]
  let admin: Admin
  let topic: string
  let open: PublicTopic[]
  beforeAll(async () => {
    ;({ brokers } = await sharedKafka())
    admin = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
  })
  afterAll(() => admin.disconnect())
  beforeEach(() => {
    topic = `public-${randomBytes(5).toString('hex')}`
    open = []
  })
  afterEach(() => Promise.all(open.map((one) => one.close())))

  function publicTopic(at = brokers): PublicTopic {
    const made = new PublicTopic({ brokers: at, topic, retentionMs: 3_600_000 })
    open.push(made)
    return made
  }

  /** Reads the topic as another application, until it has `count` different messages. */
  const read = (count: number) =>
    readTopic(brokers, topic, (found) => new Set(found.map(({ text }) => text)).size >= count)

  const messages = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => ({ key: `q${(from + index) % 3}`, text: `{"n":${from + index}}` }))

  it('is created with one order and limited retention, and the next sender continues it', async () => {
    expect(await publicTopic().deliver(messages(0, 40))).toEqual({ taken: 40, refused: [] })
    expect(await publicTopic().deliver(messages(40, 5))).toEqual({ taken: 5, refused: [] })
    const found = await read(45)
    expect(found.map(({ key, text }) => ({ key, text }))).toEqual(messages(0, 45))
    expect(found[0]!.contentType).toBe('application/cloudevents+json; charset=utf-8')
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
    })
    const settings = new Map(resources[0]!.configEntries.map((entry) => [entry.configName, entry.configValue]))
    expect(settings.get('retention.ms')).toBe('3600000')
    expect(settings.get('cleanup.policy')).toBe('delete')
    expect(Number(settings.get('segment.ms'))).toBeLessThan(3_600_000)
  })

  it('keeps its settings if it exists, and refuses only the message that is too large for them', async () => {
    const configEntries = [{ name: 'max.message.bytes', value: '5000' }]
    await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 3, configEntries }] })
    const large = { key: 'q1', text: JSON.stringify(randomBytes(9_000).toString('hex')) }
    const delivery = await publicTopic().deliver([...messages(0, 4), large, ...messages(4, 4)])
    expect(delivery.taken).toBe(9)
    expect(delivery.refused).toEqual([expect.stringContaining('MESSAGE_TOO_LARGE')])
    const found = await read(8)
    // A key maps to the same partition as in Kafka's own clients. Its messages are in order; some may come twice.
    expect(found.filter(({ key, partition }) => partition !== logPartitionOf(key, 3))).toEqual([])
    for (const one of ['q0', 'q1', 'q2']) {
      const texts = new Set(found.filter(({ key }) => key === one).map(({ text }) => text))
      const sent = messages(0, 8).filter(({ key }) => key === one)
      expect([...texts]).toEqual(sent.map(({ text }) => text))
    }
  })

  it('is created again after it was deleted', async () => {
    const sender = publicTopic()
    await sender.deliver(messages(0, 1))
    await admin.deleteTopics({ topics: [topic] })
    await until(async () => !(await admin.listTopics()).includes(topic))
    await until(async () => (await sender.deliver(messages(1, 1))).taken === 1)
    expect((await read(1)).map(({ text }) => text)).toEqual(['{"n":1}'])
  })

  it('reports a failure, and throws nothing, if no broker answers', async () => {
    const unreachable = publicTopic([`127.0.0.1:${await freePort()}`])
    expect(await unreachable.deliver(messages(0, 1))).toMatchObject({
      taken: 0,
      refused: [],
      trouble: expect.any(String) as string,
    })
  })
})
