import { randomBytes } from 'node:crypto'
import kafkajs from 'kafkajs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { pagesTopicOf } from '../../../src/events/kafka/kafka-options.ts'
import { anEvent, audit, events, expectKept, me, type LogFixture } from '../../support/event-log/log-fixture.ts'
import { kafkaAdapter } from '../../support/event-log/kafka-fixture.ts'
import { kafkaIsAvailable } from '../../support/kafka.ts'

const there = await kafkaIsAvailable()

describe.skipIf(!there)('An append to Kafka', () => {
  let fixture: LogFixture

  beforeEach(async () => {
    fixture = await kafkaAdapter.fixture()
  })
  afterEach(() => fixture.close())

  /** Lowers the maximum message size of a topic while coordinators run. */
  async function takesAtMost(topic: string, bytes: number): Promise<void> {
    const admin = new kafkajs.Kafka({
      brokers: [fixture.details['broker']!],
      logLevel: kafkajs.logLevel.NOTHING,
    }).admin()
    await admin.connect()
    await admin.alterConfigs({
      validateOnly: false,
      resources: [
        {
          type: kafkajs.ConfigResourceTypes.TOPIC,
          name: topic,
          configEntries: Object.entries({
            'cleanup.policy': 'delete',
            'unclean.leader.election.enable': 'false',
            'min.insync.replicas': '1',
            'retention.ms': '-1',
            'retention.bytes': '-1',
            'max.message.bytes': String(bytes),
          }).map(([name, value]) => ({ name, value })),
        },
      ],
    })
    await admin.disconnect()
  }

  it('fails alone if Kafka always refuses it', async () => {
    const log = await fixture.open()
    await log.claim(me)
    await log.append('known', 0, events(2))
    await takesAtMost(fixture.details['topic']!, 100_000)
    const large = anEvent(randomBytes(200_000).toString('base64'))
    const good = Array.from({ length: 20 }, (_, index) => log.append(`s${index}`, 0, events(2)))
    const bad = log.append('known', 2, [anEvent(), large])
    const onBad = log.append('known', 4, events(1))
    const more = Array.from({ length: 20 }, (_, index) => log.append(`s${index}`, 2, events(1)))
    await Promise.all([
      expect(bad).rejects.toMatchObject({ name: 'Unstorable', message: expect.stringContaining('MESSAGE_TOO_LARGE') }),
      expect(onBad).rejects.toMatchObject({ name: 'SequenceConflict', actual: 2 }),
    ])
    const kept = await Promise.all([...good, ...more])
    kept.push(await log.append('known', 2, events(1)))
    await takesAtMost(fixture.details['topic']!, 16 << 20)
    expectKept(await audit(fixture), kept)
  })

  it('fails alone if Kafka always refuses its pages', async () => {
    const log = await fixture.open()
    await log.claim(me)
    await expect(log.keepPages('s', [{ token: 0, bytes: Buffer.alloc(21 << 20) }])).rejects.toMatchObject({
      name: 'TooLarge',
    })
    await takesAtMost(pagesTopicOf(fixture.details['topic']!), 100_000)
    const bad = log.keepPages('s', [{ token: 0, bytes: randomBytes(200_000) }])
    const good = log.keepPages('t', [{ token: 0, bytes: randomBytes(2000) }])
    await expect(bad).rejects.toMatchObject({ name: 'Unstorable' })
    expect((await good).offsets).toHaveLength(1)
  })

  it('is stored once over a slow connection', async () => {
    const via = await fixture.proxy()
    const log = await fixture.open({ via })
    await log.claim(me)
    via.throttle(700)
    const large = anEvent(randomBytes(5_000_000).toString('base64'))
    const kept = await Promise.all([
      log.append('a', 0, events(1)),
      log.append('b', 0, [large]),
      log.append('c', 0, events(1)),
      log.append('b', 1, events(1)),
    ])
    const found = await audit(fixture)
    expectKept(found, kept)
    expect(found.verdicts[0]!.filter((verdict) => verdict === 'duplicate').length).toBe(0)
  })
})
