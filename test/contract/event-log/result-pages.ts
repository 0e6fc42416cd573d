import { randomBytes } from 'node:crypto'
import { Kafka, logLevel } from 'kafkajs'
import { expect } from 'vitest'
import { LogUnavailable, type EventLog, type PageOffset } from '../../../src/events/event-log.ts'
import { pagesTopicOf } from '../../../src/events/kafka/kafka-options.ts'
import { anEvent, me, patience, until, within, type LogFixture } from '../../support/event-log/log-fixture.ts'
import type { ContractTest } from './contract-test.ts'

/** Tests of small result pages beside the log, for both kinds of page store. */
export const resultPageTests: readonly ContractTest[] = [
  {
    number: 39,
    title: 'returns the exact bytes of a page to a reader that knows its event',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const made = [Buffer.alloc(0), Buffer.from([0, 255, 10, 9, 92]), Buffer.from('[["ü"]]'), randomBytes(1 << 20)]
      const offsets = await publish(log, 's', made)
      const single = await publish(log, 't', [Buffer.from('alone')])
      await log.close()
      const later = await fixture.open()
      for (const [token, bytes] of made.entries()) {
        const found = await later.readPage('s', token, offsets[token])
        expect(Buffer.compare(Buffer.from(found!), bytes), `page ${token}`).toBe(0)
      }
      expect(Buffer.from((await later.readPage('t', 0, single[0]))!).toString()).toBe('alone')
    },
  },
  {
    number: 40,
    title: 'does not mix the pages of 40 streams that are published at the same time',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const text = (stream: number, token: number): string => `[["page ${token} of ${stream}"]]`
      const streams = Array.from({ length: 40 }, (_, stream) => stream)
      const offsets = await Promise.all(
        streams.map((stream) =>
          publish(
            log,
            `s${stream}`,
            [0, 1, 2].map((token) => Buffer.from(text(stream, token))),
          ),
        ),
      )
      const reader = await fixture.open()
      for (const stream of streams)
        for (const token of [0, 1, 2]) {
          const found = await reader.readPage(`s${stream}`, token, offsets[stream]![token])
          expect(Buffer.from(found!).toString()).toBe(text(stream, token))
        }
    },
  },
  {
    number: 41,
    title: 'publishes a page once an unavailable page store is back',
    async run(fixture) {
      const proxy = await fixture.proxy()
      const log = await fixture.open({ via: proxy })
      await log.claim(me)
      await publish(log, 'before', [Buffer.from('1')])
      proxy.refuse()
      let done = false
      const published = publish(log, 's', [Buffer.from('late')]).finally(() => (done = true))
      await new Promise((resolve) => setTimeout(resolve, 1500))
      expect(done).toBe(false)
      proxy.accept()
      const [offset] = await within(patience.ms, published)
      const reader = await fixture.open()
      expect(Buffer.from((await reader.readPage('s', 0, offset))!).toString()).toBe('late')
    },
  },
  {
    number: 42,
    title: 'rejects a pending page with LogUnavailable when it is closed',
    async run(fixture) {
      const proxy = await fixture.proxy()
      const log = await fixture.open({ via: proxy })
      await log.claim(me)
      proxy.refuse()
      const published = expect(publish(log, 's', [Buffer.from('late')])).rejects.toBeInstanceOf(LogUnavailable)
      await new Promise((resolve) => setTimeout(resolve, 100))
      await within(patience.ms, log.close(), 'close')
      await published
    },
  },
  {
    number: 43,
    title: 'encrypts the pages in the topic, and returns a page only for its own stream and token',
    only: 'kafka',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const secret = 'the salary of everybody'
      const [first, second] = await publish(log, 's', [Buffer.from(secret), Buffer.from(secret)])
      const raw = await rawPages(fixture, 2)
      // Equal pages have different encrypted bytes.
      expect(raw[0]!.equals(raw[1]!)).toBe(false)
      for (const one of raw) expect(one.includes(Buffer.from('salary'))).toBe(false)
      const reader = await fixture.open()
      expect(await reader.readPage('other', 0, first)).toBeUndefined()
      expect(await reader.readPage('s', 1, first)).toBeUndefined()
      expect(Buffer.from((await reader.readPage('s', 1, second))!).toString()).toBe(secret)
    },
  },
  {
    number: 44,
    title: 'returns undefined for a page that its topic has dropped',
    only: 'kafka',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const [old] = await publish(log, 's', [Buffer.from('old')])
      const topic = pagesTopicOf(fixture.details['topic']!)
      const admin = new Kafka({ brokers: [fixture.details['broker']!], logLevel: logLevel.NOTHING }).admin()
      await admin.connect()
      await admin.fetchTopicOffsets(topic)
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(old!.offset + 1) }] })
      await admin.disconnect()
      const [young] = await publish(log, 't', [Buffer.from('young')])
      const reader = await fixture.open()
      expect(await reader.readPage('s', 0, old)).toBeUndefined()
      expect(Buffer.from((await reader.readPage('t', 0, young))!).toString()).toBe('young')
    },
  },
]

/** Publishes pages with the first event of a stream. @returns the places that the event names */
async function publish(
  log: EventLog,
  stream: string,
  pages: readonly Buffer[],
): Promise<readonly (PageOffset | undefined)[]> {
  const kept = await log.keepPages(
    stream,
    pages.map((bytes, token) => ({ token, bytes })),
  )
  await log.append(stream, 0, [anEvent({ offsets: kept.offsets })], kept.beside)
  return kept.offsets
}

/** The raw messages of the topic. */
async function rawPages(fixture: LogFixture, count: number): Promise<Buffer[]> {
  const kafka = new Kafka({ brokers: [fixture.details['broker']!], logLevel: logLevel.NOTHING })
  const consumer = kafka.consumer({ groupId: `look-${randomBytes(4).toString('hex')}` })
  const found: Buffer[] = []
  await consumer.connect()
  await consumer.subscribe({ topic: pagesTopicOf(fixture.details['topic']!), fromBeginning: true })
  await consumer.run({ eachMessage: async ({ message }) => void found.push(message.value!) })
  await until(() => found.length >= count, patience.ms, 'messages of the topic')
  await consumer.disconnect()
  return found
}
