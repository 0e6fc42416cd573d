import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import {
  LogUnavailable,
  SequenceConflict,
  TooLarge,
  type Appended,
  type PageOffset,
} from '../../../src/events/event-log.ts'
import {
  anEvent,
  audit,
  collect,
  events,
  expectKept,
  me,
  patience,
  readAll,
  until,
  within,
} from '../../support/event-log/log-fixture.ts'
import { representatives } from '../../support/full-tests.ts'
import type { ContractTest } from './contract-test.ts'

export const appendTests: readonly ContractTest[] = [
  {
    number: 1,
    title: 'keeps the order of events within interleaved streams',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const acknowledged = await Promise.all(
        Array.from({ length: 8 }, async (_, stream) => {
          const mine: Appended[] = []
          for (let sequence = 0; sequence < 40;) {
            const count = 1 + ((sequence + stream) % 3)
            mine.push(await log.append(`s${stream}`, sequence, events(count)))
            sequence += count
          }
          return mine
        }),
      )
      const found = await audit(fixture)
      expectKept(found, acknowledged.flat())
      const read = await readAll(await fixture.open(), fixture.partitions)
      expect(read.map((event) => event.hash).sort()).toEqual(found.valid.map((event) => event.hash).sort())
      for await (const event of log.readStream('s3', 5)) expect(event.sequence).toBeGreaterThan(5)
      expect((await collect(log.readStream('s3'))).length).toBeGreaterThanOrEqual(40)
    },
  },
  {
    number: 2,
    title: 'refuses a wrong expected sequence, also when the conflicting events are still queued',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const first = log.append('s', 0, events(2))
      await expect(log.append('s', 1, events(1))).rejects.toBeInstanceOf(SequenceConflict)
      await first
      await expect(log.append('s', 0, events(1))).rejects.toMatchObject({ name: 'SequenceConflict', actual: 2 })
      await expect(log.append('s', 3, events(1))).rejects.toBeInstanceOf(SequenceConflict)
      await log.append('s', 2, events(1))
      // A successor knows the stream from the log alone.
      const next = await fixture.open()
      await next.claim(me)
      await expect(next.append('s', 0, events(1))).rejects.toMatchObject({ name: 'SequenceConflict', actual: 3 })
      const beside = next.append('other', 0, events(1))
      await expect(next.append('s', 2, events(1))).rejects.toBeInstanceOf(SequenceConflict)
      await beside
      await next.append('s', 3, events(1))
      // Appends to streams with an unknown head keep their order, even if the look-ups finish in another order.
      await Promise.all(
        Array.from({ length: 100 }, (_, index) => `new${index}`).flatMap((stream) =>
          [0, 1, 2].map((sequence) => next.append(stream, sequence, events(1))),
        ),
      )
      const { valid } = await audit(fixture)
      expect(valid.filter((event) => event.stream === 's')).toHaveLength(4)
      expect(valid.filter((event) => event.stream.startsWith('new'))).toHaveLength(300)
    },
  },
  {
    number: 3,
    title: 'accepts exactly one of two appends with the same expected sequence',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      for (let sequence = 0; sequence < 10; sequence++) {
        const both = await Promise.allSettled([
          log.append('s', sequence, events(1)),
          log.append('s', sequence, events(1)),
        ])
        expect(both.map((each) => each.status).sort()).toEqual(['fulfilled', 'rejected'])
      }
      const found = await audit(fixture)
      expect(found.valid.filter((event) => event.stream === 's')).toHaveLength(10)
    },
  },
  {
    number: 4,
    title: 'stores an append of 50 events as a whole or not at all when the process is killed',
    async run(fixture) {
      const delays = [2, 100, 400]
      // A round takes seconds with Kafka.
      const chosen = fixture.technology === 'kafka' ? representatives(delays, 2) : delays
      for (const [round, delay] of chosen.entries()) {
        const process = await fixture.spawn()
        expect(await process.claim()).toMatchObject({ ok: true })
        let sequence = 0
        let running = true
        const writing = (async () => {
          while (running) {
            const data = { append: `${round}-${sequence}` }
            const { ok } = await process.append(
              `s${round}`,
              sequence,
              Array.from({ length: 50 }, () => anEvent(data)),
            )
            if (ok) sequence += 50
          }
        })()
        await until(() => sequence > 0)
        await new Promise((resolve) => setTimeout(resolve, delay))
        running = false
        await process.kill()
        await writing
      }
      const found = await audit(fixture)
      const sizes = new Map<string, number>()
      for (const event of found.valid) {
        const { append } = event.data as { append?: string }
        if (append) sizes.set(append, (sizes.get(append) ?? 0) + 1)
      }
      expect(sizes.size).toBeGreaterThan(0)
      expect(new Set(sizes.values())).toEqual(new Set([50]))
    },
  },
  {
    number: 21,
    title: 'appends an event of 6 MB beside small ones, and refuses a too large event before it sends it',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      // Bytes that gzip cannot shrink.
      const large = randomBytes(4_500_000).toString('base64')
      const small = Array.from({ length: 100 }, (_, n) => log.append(`small${n}`, 0, events(1)))
      const acknowledged = await within(
        patience.ms,
        Promise.all([...small, log.append('large', 0, [anEvent({ large })])]),
      )
      const before = await log.tip()
      const tooLarge = randomBytes(6_800_000).toString('base64')
      await expect(log.append('huge', 0, [anEvent({ tooLarge })])).rejects.toBeInstanceOf(TooLarge)
      expect((await log.tip()).at.map((position) => position.offset)).toEqual(
        before.at.map((position) => position.offset),
      )
      acknowledged.push(await log.append('huge', 0, events(1)))
      expectKept(await audit(fixture), acknowledged)
      const [found] = await collect((await fixture.open()).readStream('large'))
      expect((found!.data as { large: string }).large).toBe(large)
    },
  },
  {
    number: 22,
    title: 'returns NUL and lone surrogates unchanged',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const data = {
        nul: 'a\u0000b',
        lone: '\ud800x\udfff',
        tab: 'a\tb\nc\r',
        quote: '"\\',
        deep: { é: ['\u2028', 1e300, -0.5] },
      }
      const { events: written } = await log.append('s', 0, [anEvent(data)])
      const [found] = await collect((await fixture.open()).readStream('s'))
      expect(found!.data).toEqual(data)
      expect(found!.stored).toBe(JSON.stringify(data))
      expect(found).toEqual(written[0])
    },
  },
  {
    number: 28,
    title: 'never records a decreasing time when the clock goes back an hour',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const now = Date.now()
      const at = (time: number) => ({ ...anEvent(), time: new Date(time).toISOString() })
      const [first] = (await log.append('s', 0, [at(now)])).events
      const [second] = (await log.append('s', 1, [at(now - 3_600_000)])).events
      expect(second!.time).toBe(first!.time)
      // The same holds for a successor with a clock that is behind.
      const next = await fixture.open({ now: () => now - 3_600_000 })
      await next.claim(me)
      const [third] = (await next.append('s', 2, [at(now - 3_600_000)])).events
      expect(third!.time >= first!.time).toBe(true)
      await audit(fixture)
    },
  },
  {
    number: 23,
    title: 'delivers all events in order to a slow subscriber',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const seen: string[] = []
      const follower = await fixture.open()
      let running = 0
      const slow = async (batch: readonly { hash: string }[]): Promise<void> => {
        expect(++running).toBe(1)
        await new Promise((resolve) => setTimeout(resolve, 50))
        seen.push(...batch.map((event) => event.hash))
        running--
      }
      const from = { logId: '', at: Array.from({ length: fixture.partitions }, () => ({ offset: 0n })) }
      const elsewhere = follower.subscribe(from, slow)
      const own: string[] = []
      const here = log.subscribe(from, async (batch) => void own.push(...batch.map((event) => event.hash)))
      for (let n = 0; n < 40; n++) await log.append(`s${n % 4}`, Math.floor(n / 4) * 5, events(5))
      const { valid } = await audit(fixture)
      await until(() => seen.length >= valid.length && own.length >= valid.length)
      expect(seen).toEqual(valid.map((event) => event.hash))
      expect(own).toEqual(seen)
      // A subscriber with small batches gets all events too.
      const few: string[][] = []
      const sparing = [log, follower].map((each) =>
        each.subscribe(from, async (batch) => void few.push(batch.map((event) => event.hash)), 7),
      )
      await until(() => few.flat().length >= 2 * valid.length)
      await Promise.all(sparing.map((each) => each.stop()))
      expect(Math.max(...few.map((batch) => batch.length))).toBeLessThanOrEqual(7)
      expect(few.flat().toSorted()).toEqual([...seen, ...seen].toSorted())
      await Promise.all([elsewhere.stop(), here.stop()])
      expect(elsewhere.checkpoint.at.map((position) => position.offset)).toEqual(
        (await log.tip()).at.map((position) => position.offset),
      )
    },
  },
  {
    number: 29,
    title: 'finds the tip of the log, also after another writer has appended',
    async run(fixture) {
      const one = await fixture.open()
      await one.claim(me)
      await one.append('s', 0, events(1))
      const two = await fixture.open()
      expect((await two.tip()).at).toEqual((await one.tip()).at)
      await two.claim(me)
      await two.append('s', 1, events(3))
      const tip = await one.tip()
      expect(tip.at).toEqual((await two.tip()).at)
      expect(await collect(one.readStream('s'))).toHaveLength(4)
      // A writer that sees a higher epoch counts as fenced.
      expect(await within(patience.ms, one.fenced)).toMatchObject({ name: 'Fenced' })
      await expect(one.append('s', 4, events(1))).rejects.toMatchObject({ name: 'Fenced' })
    },
  },
  {
    number: 31,
    title: 'has the page of every valid event that names it',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const follower = await fixture.open()
      const missing: string[] = []
      let seen = 0
      const from = { logId: '', at: Array.from({ length: fixture.partitions }, () => ({ offset: 0n })) }
      const watching = follower.subscribe(from, async (batch) => {
        for (const event of batch) {
          const { page, position } = event.data as { page?: number; position?: PageOffset }
          if (page === undefined) continue
          seen++
          const bytes = await follower.readPage(event.stream, page, position)
          if (bytes === undefined || Buffer.from(bytes).toString() !== `[["${event.stream}",${page}]]`)
            missing.push(`${event.stream}/${page}`)
        }
      })
      const publish = async (stream: string): Promise<void> => {
        for (let token = 0; token < 10; token++) {
          const page = { token, bytes: Buffer.from(`[["${stream}",${token}]]`) }
          const { offsets, beside } = await log.keepPages(stream, [page])
          await log.append(stream, token, [anEvent({ page: token, position: offsets[0] })], beside)
        }
      }
      await Promise.all(['a', 'b', 'c'].map(publish))
      await until(() => seen === 30)
      expect(missing).toEqual([])
      expect(await follower.readPage('a', 99)).toBeUndefined()
      await watching.stop()
    },
  },
  {
    number: 33,
    title: 'rejects a pending append with LogUnavailable when it is closed',
    async run(fixture) {
      const proxy = await fixture.proxy()
      const log = await fixture.open({ via: proxy })
      await log.claim(me)
      proxy.holdRequests()
      const pending = log.append('s', 0, events(1))
      const rejected = expect(pending).rejects.toBeInstanceOf(LogUnavailable)
      await until(() => proxy.holding > 0)
      proxy.refuse()
      await within(patience.ms, log.close(), 'close')
      await rejected
    },
  },
]
