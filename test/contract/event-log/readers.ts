import { expect } from 'vitest'
import {
  beginning,
  LogChanged,
  LogWentBackwards,
  type Checkpoint,
  type Recorded,
} from '../../../src/events/event-log.ts'
import { sameState } from '../../../src/events/fold.ts'
import {
  anEvent,
  audit,
  collect,
  events,
  expectKept,
  me,
  patience,
  readAll,
  within,
} from '../../support/event-log/log-fixture.ts'
import type { ContractTest } from './contract-test.ts'

export const readerTests: readonly ContractTest[] = [
  {
    number: 19,
    title: 'returns from every offset the same events as a fold of the whole log',
    async run(fixture) {
      // Two writers, fenced records and foreign records.
      const one = await fixture.open()
      await one.claim(me)
      for (let n = 0; n < 12; n++) await one.append(`s${n % 5}`, Math.floor(n / 5), events(1))
      await fixture.putForeign('not ours')
      await one.append('t', 0, events(4))
      const two = await fixture.open()
      await two.claim(me)
      await fixture.putForeign('{"nor":"this"}')
      await one.append('u', 0, events(1)).catch(() => {})
      for (let n = 0; n < 6; n++) await two.append(`v${n}`, 0, events(3))
      const found = await audit(fixture)
      const reader = await fixture.open()
      for (let partition = 0; partition < fixture.partitions; partition++) {
        const states = found.states[partition]!
        for (let offset = 0; offset < states.length; offset++) {
          const at = found.states.map((each, index) => ({
            offset: index === partition ? BigInt(offset) : BigInt(each.length - 1),
          }))
          const { events: read, next } = await reader.read({ logId: '', at }, 10_000)
          expect(read.map((event) => event.hash)).toEqual(
            found.valid
              .filter((event) => event.position.partition === partition && event.position.offset >= offset)
              .map((event) => event.hash),
          )
          expect(sameState(next.at[partition]!.state, states.at(-1)!)).toBe(true)
        }
      }
    },
  },
  {
    number: 20,
    title: 'gives a killed reader every event once when it stores its checkpoint together with the effect',
    run: (fixture) => projectOnce(fixture, 'together'),
  },
  {
    number: 24,
    title: 'ignores foreign records',
    async run(fixture) {
      await fixture.putForeign('before anything')
      const log = await fixture.open()
      expect(await log.claim(me)).toBe(1)
      const acknowledged = [await log.append('s', 0, events(1))]
      for (const text of ['', 'junk', '{"type":"QueryCreated"}', '[1,2']) {
        await fixture.putForeign(text)
        acknowledged.push(await within(patience.ms, log.append('s', acknowledged.length, events(1))))
      }
      const found = await audit(fixture)
      expectKept(found, acknowledged)
      expect(found.verdicts.flat().filter((verdict) => verdict === 'foreign')).toHaveLength(5)
      expect(await readAll(await fixture.open(), fixture.partitions)).toHaveLength(6)
      // The stream "foreign" can still begin.
      await log.append('foreign', 0, events(1))
      expect(await collect(log.readStream('foreign'))).toHaveLength(1)
      const next = await fixture.open()
      await next.claim(me)
      await next.append('s', 5, events(1))
    },
  },
  {
    number: 25,
    title: 'fences its writer and refuses old checkpoints after the log was deleted and created again',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      for (let n = 0; n < 5; n++) await log.append('s', n, events(1))
      const { next } = await log.read(await log.tip(), 1)
      await fixture.restore([])
      await expect(within(patience.ms, log.append('s', 5, events(1)))).rejects.toMatchObject({
        name: expect.stringMatching(/LogWentBackwards|Fenced/),
      })
      expect(await within(patience.ms, log.fenced)).toBeInstanceOf(LogWentBackwards)
      await expect((await fixture.open()).read(plain(next), 10)).rejects.toBeInstanceOf(LogChanged)
      const fresh = await fixture.open()
      expect(await fresh.claim(me)).toBe(1)
      for (let n = 0; n < 8; n++) await fresh.append('s', n, events(1))
      // The new log is longer than the old one by now: only the log id differs.
      await expect((await fixture.open()).read(plain(next), 10)).rejects.toBeInstanceOf(LogChanged)
    },
  },
  {
    number: 26,
    title: 'refuses to read from a checkpoint after an older backup was restored',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      for (let n = 0; n < 3; n++) await log.append('s', n, events(1))
      const older = (await audit(fixture)).records[0]!
      for (let n = 3; n < 6; n++) await log.append('s', n, events(1))
      const checkpoint = plain(await log.tip())
      await log.close()
      await fixture.restore(older)
      const again = await fixture.open()
      // The log is shorter than the checkpoint.
      await expect(again.read(checkpoint, 10)).rejects.toBeInstanceOf(LogChanged)
      await again.claim(me)
      for (let n = 3; n < 12; n++) await again.append('s', n, events(1))
      // The log is longer and has the same id, but its past differs.
      await expect((await fixture.open()).read(checkpoint, 10)).rejects.toBeInstanceOf(LogChanged)
      const following = (await fixture.open()).subscribe(checkpoint, async () => {})
      await expect(within(patience.ms, following.done)).rejects.toBeInstanceOf(LogChanged)
      await audit(fixture)
    },
  },
  {
    number: 38,
    title: 'reads a stream to its end when the log ends with records that do not count',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      await log.append('s', 0, events(2))
      // A foreign record remains from an append that was sent twice, or from a claimant that died before its first
      // event.
      await fixture.putForeign('not ours')
      expect(await within(patience.ms, collect((await fixture.open()).readStream('s')))).toHaveLength(2)
      expect(await within(patience.ms, collect((await fixture.open()).readStream('nobody')))).toHaveLength(0)
      const next = await fixture.open()
      await within(patience.ms, next.claim(me))
      await within(patience.ms, next.append('s', 2, events(1)))
    },
  },
  {
    number: 36,
    title: 'refuses an event with changed stored bytes',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      await log.append('s', 0, [anEvent({ amount: 10 })])
      await log.append('s', 1, events(1))
      const records = (await audit(fixture)).records[0]!
      await log.close()
      await fixture.restore(
        records.map((record) => (record.stream === 's' ? { ...record, text: withOtherData(record.text) } : record)),
      )
      await expect(readAll(await fixture.open())).rejects.toBeInstanceOf(LogChanged)
    },
  },
  {
    number: 18,
    title: 'claims, appends and reads streams after the database was deleted',
    only: 'kafka',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const acknowledged = []
      for (let n = 0; n < 20; n++) acknowledged.push(await log.append(`s${n % 4}`, Math.floor(n / 4), events(1)))
      await log.close()
      await fixture.deleteDatabase()
      const next = await fixture.open()
      await next.claim(me)
      await expect(next.append('s1', 0, events(1))).rejects.toMatchObject({ name: 'SequenceConflict', actual: 5 })
      acknowledged.push(await next.append('s1', 5, events(1)))
      expect(await within(patience.ms, collect(next.readStream('s1')))).toHaveLength(6)
      expectKept(await audit(fixture), acknowledged)
    },
  },
  {
    number: 47,
    title: 'reads all events up to a bound and none after it, with any batch size',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      for (let n = 0; n < 8; n++) await log.append(`s${n % 3}`, Math.floor(n / 3), events(1))
      await fixture.putForeign('not ours')
      const bound = await log.tip()
      for (let n = 0; n < 4; n++) await log.append(`s${n % 3}`, n < 3 ? (n < 2 ? 3 : 2) : 4, events(1))
      const { valid } = await audit(fixture)
      const below = valid.filter(({ position }) => position.offset < bound.at[position.partition]!.offset)
      expect(below.length).toBeLessThan(valid.length)
      // The writer reads from its memory, the second reader from the log.
      for (const reader of [log, await fixture.open()])
        for (const limit of [1, 3, 10_000]) {
          const found: string[] = []
          let next: Checkpoint = beginning(fixture.partitions)
          for (;;) {
            const read = await reader.read(next, limit, bound)
            found.push(...read.events.map(({ hash }) => hash))
            const moved = read.next.at.some(({ offset }, partition) => offset > next.at[partition]!.offset)
            next = read.next
            if (!moved) break
          }
          expect(found.toSorted()).toEqual(below.map(({ hash }) => hash).toSorted())
          expect(next.at.map(({ offset }) => offset)).toEqual(bound.at.map(({ offset }) => offset))
          for (const [partition, position] of next.at.entries())
            expect(sameState(position.state, bound.at[partition]!.state)).toBe(true)
        }
      for (const stream of ['s0', 's1', 's2']) {
        const reported: number[] = []
        for await (const { sequence } of log.readStream(stream, 1, bound)) reported.push(sequence)
        expect(reported).toEqual(
          below.filter((one) => one.stream === stream && one.sequence > 1).map(({ sequence }) => sequence),
        )
      }
    },
  },
]

/** A stored event with other data. */
export function withOtherData(text: string): string {
  const envelope = JSON.parse(text) as { data: string }
  return JSON.stringify({ ...envelope, data: `${envelope.data.slice(0, -1)} ` })
}

/** The checkpoint as a restarted process reads it from storage. */
function plain(checkpoint: Checkpoint): Checkpoint {
  return { logId: checkpoint.logId, at: checkpoint.at.map((position) => ({ ...position })) }
}

/**
 * Asserts that a projection has each event once, although it is killed before or after its commits.
 * @param commit whether the effect and the checkpoint are stored together, as the contract requires
 */
export async function projectOnce(
  fixture: Parameters<ContractTest['run']>[0],
  commit: 'together' | 'apart',
): Promise<void> {
  const log = await fixture.open()
  await log.claim(me)
  const acknowledged = []
  for (let n = 0; n < 30; n++) acknowledged.push(await log.append(`s${n % 3}`, Math.floor(n / 3) * 2, events(2)))
  const rows: Recorded[] = []
  let checkpoint = beginning(fixture.partitions)
  const reader = await fixture.open()
  for (let life = 0; ; life++) {
    const { events: batch, next } = await reader.read(plain(checkpoint), 7)
    if (batch.length === 0) break
    // Every third life ends before the commit, or between the two commits.
    const killed = life % 3 === 0
    if (commit === 'apart' || !killed) rows.push(...batch)
    if (!killed) checkpoint = next
  }
  const { valid } = await audit(fixture)
  expectKept({ valid }, acknowledged)
  expect(rows.map((event) => event.hash).sort()).toEqual(valid.map((event) => event.hash).sort())
}
