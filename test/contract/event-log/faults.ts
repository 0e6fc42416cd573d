import { expect } from 'vitest'
import { Fenced, LogUnavailable, type Appended, type EventLog } from '../../../src/events/event-log.ts'
import { LogReader } from '../../../src/events/log-reader.ts'
import {
  anEvent,
  audit,
  collect,
  events,
  expectKept,
  me,
  patience,
  until,
  within,
  type LogFixture,
} from '../../support/event-log/log-fixture.ts'
import type { RecordBatch } from '../../../src/events/record-store.ts'
import { sealEvent } from '../../../src/events/envelope.ts'
import type { ContractTest } from './contract-test.ts'

export const faultTests: readonly ContractTest[] = [
  {
    number: 5,
    title: 'resolves an append with a lost answer, and stores it once',
    async run(fixture) {
      const proxy = await fixture.proxy()
      const log = await fixture.open({ via: proxy })
      await log.claim(me)
      const acknowledged = [await log.append('s', 0, events(1))]
      const store = await fixture.store()
      for (let round = 0; round < 3; round++) {
        const end = await store.end(0)
        proxy.dropAnswers()
        const pending = log.append('s', 1 + round, [anEvent({ round })])
        await until(async () => (await store.end(0)) > end, 2_000).catch(() => {})
        // The log is away long enough that a single immediate retry would fail too.
        proxy.refuse()
        proxy.deliverAnswers()
        await new Promise((resolve) => setTimeout(resolve, 300))
        proxy.accept()
        acknowledged.push(await within(patience.ms, pending))
      }
      const found = await audit(fixture)
      expectKept(found, acknowledged)
      expect(found.valid.filter((event) => event.stream === 's')).toHaveLength(4)
    },
  },
  {
    number: 6,
    title: 'ignores a late copy of an append that was sent again',
    async run(fixture) {
      const proxy = await fixture.proxy()
      const log = await fixture.open({ via: proxy })
      await log.claim(me)
      const acknowledged = [await log.append('s', 0, events(1))]
      for (let round = 0; round < 3; round++) {
        proxy.holdRequests()
        const pending = log.append('s', 1 + 2 * round, [anEvent({ round })])
        await until(() => proxy.holding > 0)
        const releaseLate = holdBack(proxy)
        acknowledged.push(await within(patience.ms, pending))
        releaseLate()
        // The late copy may land next to this append.
        acknowledged.push(await within(patience.ms, log.append('s', 2 + 2 * round, events(1))))
      }
      await new Promise((resolve) => setTimeout(resolve, 300))
      acknowledged.push(await within(patience.ms, log.append('s', 7, events(1))))
      const found = await audit(fixture)
      expectKept(found, acknowledged)
      expect(found.valid.filter((event) => event.stream === 's')).toHaveLength(8)
    },
  },
  {
    number: 7,
    title: 'appends again after the connection was cut before the append',
    async run(fixture) {
      const proxy = await fixture.proxy()
      const log = await fixture.open({ via: proxy })
      await log.claim(me)
      await log.append('s', 0, events(1))
      const acknowledged: Appended[] = []
      for (let round = 0; round < 5; round++) {
        proxy.cut()
        acknowledged.push(await within(patience.ms, log.append('s', round + 1, events(1))))
      }
      expectKept(await audit(fixture), acknowledged)
    },
  },
  {
    number: 8,
    title: 'drops a batch that arrived without the lost batch before it',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const first = await log.append('s', 0, events(1))
      // A writer with two batches in flight would leave this: the second batch without the first.
      await putAs(fixture, log, 's', 3, (number) => number + 2)
      const second = await within(patience.ms, log.append('s', 1, events(1)))
      const third = await within(patience.ms, log.append('s', 2, events(1)))
      const found = await audit(fixture)
      expectKept(found, [first, second, third])
      expect(found.verdicts.flat()).toContain('gap')
      expect(found.valid.filter((event) => event.stream === 's')).toHaveLength(3)
    },
  },
  {
    number: 34,
    title: 'drops the second copy of a record in the log',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      await log.append('s', 0, events(1))
      await putAs(fixture, log, 's', 1, (number) => number)
      const second = await within(patience.ms, log.append('s', 1, events(1)))
      const third = await within(patience.ms, log.append('s', 2, events(1)))
      const found = await audit(fixture)
      expectKept(found, [second, third])
      expect(found.verdicts.flat()).toContain('duplicate')
      expect(found.valid.filter((event) => event.stream === 's')).toHaveLength(3)
    },
  },
  {
    number: 10,
    title: 'fences a batch that lands after the next claim',
    async run(fixture) {
      const proxy = await fixture.proxy()
      const old = await fixture.open({ via: proxy })
      await old.claim(me)
      await old.append('s', 0, events(1))
      proxy.holdRequests()
      const late = old.append('s', 1, [anEvent({ by: 'old' })])
      const outcome = late.catch((error: unknown) => error)
      await until(() => proxy.holding > 0)
      const next = await fixture.open()
      expect(await next.claim(me)).toBe(2)
      const acknowledged = [await next.append('s', 1, [anEvent({ by: 'new' })])]
      proxy.release()
      expect(await within(patience.ms, outcome)).toBeInstanceOf(Fenced)
      expect(await within(patience.ms, old.fenced)).toBeInstanceOf(Fenced)
      acknowledged.push(await next.append('s', 2, events(1)))
      const found = await audit(fixture)
      expectKept(found, acknowledged)
      expect(found.valid.filter((event) => event.stream === 's')).toHaveLength(3)
    },
  },
  {
    number: 11,
    title: 'keeps a batch that landed before the next claim, even if its answer was lost',
    async run(fixture) {
      const proxy = await fixture.proxy()
      const old = await fixture.open({ via: proxy })
      await old.claim(me)
      await old.append('s', 0, events(1))
      proxy.dropAnswers()
      const landed = old.append('s', 1, events(1))
      await until(async () => (await audit(fixture)).valid.filter((event) => event.stream === 's').length === 2)
      const next = await fixture.open()
      await next.claim(me)
      const acknowledged = [await next.append('s', 2, events(1))]
      proxy.deliverAnswers()
      proxy.cut()
      // The batch was valid before the claim, so the old writer may resolve it. Later appends are fenced.
      acknowledged.push(await within(patience.ms, landed))
      await expect(within(patience.ms, old.append('s', 2, events(1)))).rejects.toBeInstanceOf(Fenced)
      expectKept(await audit(fixture), acknowledged)
    },
  },
  {
    number: 14,
    title: 'drops a claim that lands after the claim of another',
    async run(fixture) {
      const first = await fixture.open()
      await first.claim(me)
      await first.append('s', 0, events(1))
      const proxy = await fixture.proxy()
      const dead = await fixture.open({ via: proxy })
      // The proxy lets the reads pass and then holds the claim, which is the first write.
      const reading = dead.tip()
      await reading
      const process = claimHeld(dead, proxy)
      await until(() => proxy.holding > 0)
      const next = await fixture.open()
      const epoch = await next.claim(me)
      const acknowledged = [await next.append('s', 1, events(1))]
      proxy.release()
      expect(await within(patience.ms, process)).not.toBe(epoch)
      await new Promise((resolve) => setTimeout(resolve, 200))
      const found = await audit(fixture)
      expectKept(found, acknowledged)
    },
  },
  {
    number: 15,
    title: 'continues after kill -9 of the server, and stores each pending append once',
    fixture: { ownServer: true },
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const { acknowledged, stop } = write(log, 8)
      // A broker needs many seconds to start.
      for (let round = 0; round < (fixture.technology === 'kafka' ? 1 : 2); round++) {
        await until(() => acknowledged.length > 50 * (round + 1))
        await fixture.server!.kill()
        await new Promise((resolve) => setTimeout(resolve, 200))
        await fixture.server!.start()
        const before = acknowledged.length
        await until(() => acknowledged.length > before + 20, patience.ms, 'appends go on')
      }
      await stop()
      expectKept(await audit(fixture), acknowledged)
    },
  },
  {
    number: 16,
    title: 'continues after the server stood still for 3 s',
    fixture: { ownServer: true },
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const { acknowledged, stop } = write(log, 8)
      await until(() => acknowledged.length > 50)
      const resume = await fixture.server!.freeze()
      await new Promise((resolve) => setTimeout(resolve, 3000))
      await resume()
      const before = acknowledged.length
      await until(() => acknowledged.length > before + 20, patience.ms, 'appends go on')
      await stop()
      // Kafka elects its leaders again once it notices that it stood still.
      let found: Awaited<ReturnType<typeof audit>> | undefined
      await until(async () => {
        found = await audit(fixture).catch((error: unknown) => {
          if (error instanceof LogUnavailable) return undefined
          throw error
        })
        return found !== undefined
      })
      expectKept(found!, acknowledged)
    },
  },
  {
    number: 17,
    title: 'keeps pending appends in bounded memory while the log is away, and then resolves each once',
    async run(fixture) {
      const proxy = await fixture.proxy()
      const log = await fixture.open({ via: proxy })
      await log.claim(me)
      await log.append('s', 0, events(1))
      proxy.refuse()
      const pending = Array.from({ length: 200 }, (_, n) =>
        log.append(`p${n}`, 0, [anEvent({ text: 'x'.repeat(2000) })]),
      )
      const before = { heap: process.memoryUsage().heapUsed, connections: proxy.connections }
      await new Promise((resolve) => setTimeout(resolve, Number(process.env['QUIPU_TEST_AWAY_MS'] ?? 4000)))
      expect(process.memoryUsage().heapUsed - before.heap).toBeLessThan(100 << 20)
      proxy.accept()
      const acknowledged = await within(patience.ms, Promise.all(pending))
      const found = await audit(fixture)
      expectKept(found, acknowledged)
      expect(found.valid.filter((event) => event.stream.startsWith('p'))).toHaveLength(200)
    },
  },
  {
    number: 37,
    title: 'refuses an append when the queued appends exceed `maxQueuedBytes`',
    async run(fixture) {
      const proxy = await fixture.proxy()
      const log = await fixture.open({ via: proxy, maxQueuedBytes: 20_000 })
      await log.claim(me)
      await log.append('s', 0, events(1))
      proxy.refuse()
      const text = 'x'.repeat(5000)
      const some = Array.from({ length: 20 }, (_, n) => log.append(`p${n}`, 0, [anEvent({ text })]))
      const settled = Promise.allSettled(some)
      await expect(within(patience.ms, some[19]!)).rejects.toBeInstanceOf(LogUnavailable)
      proxy.accept()
      const done = await within(patience.ms, settled)
      const acknowledged = done.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
      expect(acknowledged.length).toBeGreaterThan(2)
      expect(acknowledged.length).toBeLessThan(10)
      expectKept(await audit(fixture), acknowledged)
      await log.append('p19', 0, events(1))
    },
  },
  {
    number: 30,
    title: 'keeps the last acknowledged event after kill -9 of the writer and the server',
    fixture: { ownServer: true },
    async run(fixture) {
      const process = await fixture.spawn()
      await process.claim()
      let sequence = 0
      const writing = (async () => {
        while ((await process.append('s', sequence, [anEvent()])).ok) sequence++
      })()
      await until(() => sequence > 30)
      await Promise.all([process.kill(), fixture.server!.kill()])
      await writing
      await fixture.server!.start()
      const log = await fixture.open()
      expect(await within(patience.ms, log.claim(me))).toBe(2)
      const { valid } = await audit(fixture)
      const kept = valid.filter((event) => event.stream === 's').length
      expect(kept).toBeGreaterThanOrEqual(sequence)
      expect(kept).toBeLessThanOrEqual(sequence + 1)
      await log.append('s', kept, events(1))
    },
  },
  {
    number: 32,
    title: 'returns the page of the valid event, not a page of a dead writer with the same token',
    async run(fixture) {
      const process = await fixture.spawn()
      await process.claim()
      await process.append('s', 0, [anEvent()])
      // With Kafka the page of the dead writer is stored by now, but no event has its place.
      await process.arm('before-send', 'SIGKILL')
      expect(await process.append('s', 1, [anEvent()], [{ token: 0, text: 'of the dead' }])).toMatchObject({
        ok: false,
      })
      const log = await fixture.open()
      await log.claim(me)
      expect((await audit(fixture)).valid.filter((event) => event.stream === 's')).toHaveLength(1)
      if (fixture.technology === 'postgres') expect(await log.readPage('s', 0)).toBeUndefined()
      const kept = await log.keepPages('s', [{ token: 0, bytes: Buffer.from('of the living') }])
      await log.append('s', 1, events(1), kept.beside)
      expect(Buffer.from((await log.readPage('s', 0, kept.offsets[0]))!).toString()).toBe('of the living')
    },
  },
  {
    number: 46,
    title: 'ignores records that do not count, with any bytes',
    only: 'kafka',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const acknowledged = [await log.append('s', 0, events(1))]
      const texts = ['', '{', 'null', '7', '"text"', '[]', '{}', '{"time":"9999-12-31T23:59:59.999Z"}', '{"hash":1}']
      for (const [index, text] of texts.entries()) {
        // A copy of a stored record, and a record after a lost one.
        await putAs(fixture, log, 's', 2, (number) => number, text)
        acknowledged.push(await within(patience.ms, log.append('s', acknowledged.length, events(1))))
        await putAs(fixture, log, `t${index}`, 1, (number) => number + 5, text)
        acknowledged.push(await within(patience.ms, log.append('s', acknowledged.length, events(1))))
      }
      const found = await audit(fixture)
      expectKept(found, acknowledged)
      // Records that do not count do not change the time either.
      expect(acknowledged.at(-1)!.events.filter(({ time }) => time.startsWith('9999'))).toEqual([])
      const successor = await fixture.open()
      await successor.claim(me)
      await successor.append('s', acknowledged.length, events(1))
      expect(await collect(successor.readStream('s'))).toHaveLength(acknowledged.length + 1)
    },
  },
]

/** Holds the waiting requests back and lets later ones pass. Only the client loses its connection, not the server. */
export function holdBack(proxy: Awaited<ReturnType<LogFixture['proxy']>>): () => void {
  const release = proxy.takeHeld()
  proxy.cut({ keepUpstream: true })
  return release
}

/** Starts writers that append until `stop` is called. */
export function write(log: EventLog, writers: number): { acknowledged: Appended[]; stop: () => Promise<void> } {
  const acknowledged: Appended[] = []
  let running = true
  const all = Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      for (let sequence = 0; running;) {
        const count = 1 + (sequence % 3)
        acknowledged.push(await log.append(`w${writer}`, sequence, events(count)))
        sequence += count
      }
    }),
  )
  // Without `stop` the failure appears when the log closes.
  all.catch(() => {})
  return {
    acknowledged,
    async stop() {
      running = false
      await within(patience.ms, all, 'the last appends')
    },
  }
}

/** Starts a claim; the proxy holds its first record. */
async function claimHeld(log: EventLog, proxy: Awaited<ReturnType<LogFixture['proxy']>>): Promise<unknown> {
  proxy.holdRequests()
  return log.claim(me).catch((error: unknown) => error)
}

/** Puts a record at the end of the log in the name of the current writer. */
async function putAs(
  fixture: LogFixture,
  log: EventLog,
  stream: string,
  sequence: number,
  numberAfter: (number: number) => number,
  text?: string,
): Promise<void> {
  const store = await fixture.store()
  const partition = store.partitionOf(stream)
  const seen = (await log.tip()).at[partition]!
  const position = { offset: seen.offset, state: await new LogReader(store).stateAt(partition, seen.offset) }
  const { epoch, writer, number } = position.state
  const time = new Date().toISOString()
  const sealed = sealEvent(anEvent(), { stream, sequence, epoch, time, prevhash: '' })
  const batch: RecordBatch = {
    partition,
    kind: 'event',
    epoch,
    writer,
    seen: position,
    records: [
      {
        number: numberAfter(number),
        stream,
        sequence,
        time,
        text: text ?? sealed.text,
        hash: sealed.envelope.hash,
      },
    ],
    pages: [],
    newStreams: [],
  }
  expect(await store.put(batch)).toMatchObject({ kind: 'landed' })
}
