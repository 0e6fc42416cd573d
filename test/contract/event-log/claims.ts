import { expect } from 'vitest'
import { Fenced } from '../../../src/events/event-log.ts'
import { anEvent, audit, events, expectKept, me, patience, within } from '../../support/event-log/log-fixture.ts'
import { representatives } from '../../support/full-tests.ts'
import type { Point } from '../../support/event-log/log-process.ts'
import type { ContractTest } from './contract-test.ts'

const POINTS: readonly Point[] = ['before-send', 'after-send', 'after-ack', 'after-fold', 'before-answer']

export const claimTests: readonly ContractTest[] = [
  {
    number: 9,
    title: 'gives all readers the same result when a writer is stopped at any point of an append during a take-over',
    async run(fixture) {
      // A point takes seconds with Kafka.
      for (const point of fixture.technology === 'kafka' ? representatives(POINTS, 2) : POINTS) {
        const stream = `s-${point}`
        const old = await fixture.spawn()
        expect(await old.claim()).toMatchObject({ ok: true })
        expect(await old.append(stream, 0, [anEvent()])).toMatchObject({ ok: true })
        await old.arm(point, 'SIGSTOP')
        const pending = old.append(stream, 1, [anEvent({ by: 'old' })])
        await old.stopped()
        const next = await fixture.open()
        await within(patience.ms, next.claim(me), `claim over a writer stopped ${point}`)
        const before = (await audit(fixture)).valid.filter((event) => event.stream === stream).length
        const acknowledged = [await next.append(stream, before, [anEvent({ by: 'new' })])]
        old.resume()
        const answer = await within(patience.ms, pending, `answer of a writer stopped ${point}`)
        // Its answer must agree with the conclusion of all other readers.
        expect(answer, point).toMatchObject(before === 2 ? { ok: true } : { ok: false, error: 'Fenced' })
        expect(await old.append(stream, before, [anEvent()]), point).toMatchObject({ ok: false })
        acknowledged.push(await next.append(stream, before + 1, events(1)))
        const found = await audit(fixture)
        expectKept(found, acknowledged)
        expect(found.valid.filter((event) => event.stream === stream)).toHaveLength(before + 2)
        await old.kill()
        await next.close()
      }
    },
  },
  {
    number: 12,
    title: 'gives each epoch to exactly one of two or six concurrent claimants',
    async run(fixture) {
      const claimants = await Promise.all(Array.from({ length: 6 }, () => fixture.open()))
      const epochs: number[] = []
      for (const some of [claimants.slice(0, 2), claimants, claimants]) {
        const results = await Promise.allSettled(some.map((each) => each.claim(me)))
        for (const result of results) if (result.status === 'fulfilled') epochs.push(result.value)
        expect(results.some((result) => result.status === 'fulfilled')).toBe(true)
        for (const result of results)
          if (result.status === 'rejected') expect(String(result.reason)).toMatch(/Fenced|already holds/)
      }
      expect(new Set(epochs).size).toBe(epochs.length)
      const found = await audit(fixture)
      for (const states of found.states) expect(states.at(-1)!.epoch).toBe(found.states[0]!.at(-1)!.epoch)
      const started = found.valid.filter((event) => event.type === 'EpochStarted')
      expect(new Set(started.map((event) => event.epoch)).size).toBe(started.length)
      // Exactly one of the claimants is the writer.
      const open = await Promise.allSettled(
        claimants.map((each, n) => within(patience.ms, each.append(`mine${n}`, 0, events(1)))),
      )
      expect(open.filter((each) => each.status === 'fulfilled')).toHaveLength(1)
    },
  },
  {
    number: 13,
    title: 'works after a claimant has died after its first claim record',
    async run(fixture) {
      const first = await fixture.open()
      await first.claim(me)
      const acknowledged = [await first.append('s', 0, events(1))]
      const dying = await fixture.spawn()
      await dying.arm('claim-record', 'SIGKILL')
      expect(await dying.claim()).toMatchObject({ ok: false, error: 'Exited' })
      // The epoch of the dead claimant is in log partition 0: the first writer is fenced, although no other writes.
      const store = await fixture.store()
      const there = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].find((stream) => store.partitionOf(stream) === 0)!
      await expect(within(patience.ms, first.append(there, 0, events(1)))).rejects.toBeInstanceOf(Fenced)
      // A writer that is fenced in one log partition is fenced in all.
      await expect(first.append('s', 1, events(1))).rejects.toBeInstanceOf(Fenced)
      const third = await fixture.open()
      expect(await third.claim(me)).toBe(3)
      acknowledged.push(await third.append('s', 1, events(1)))
      const found = await audit(fixture)
      expectKept(found, acknowledged)
      for (const states of found.states) expect(states.at(-1)!.epoch).toBe(3)
    },
  },
  {
    number: 48,
    title: 'allows a fenced writer to claim again in the same process, and appends at the end of a stream',
    async run(fixture) {
      const [one, two] = [await fixture.open(), await fixture.open()]
      await one.claim(me)
      const acknowledged = [await one.append('shared', 'end', events(1))]
      await two.claim(me)
      acknowledged.push(await two.append('shared', 'end', events(2)))
      await expect(within(patience.ms, one.append('shared', 1, events(1)))).rejects.toBeInstanceOf(Fenced)
      await within(patience.ms, one.fenced)
      expect(await one.claim(me)).toBe(3)
      acknowledged.push(await one.append('shared', 'end', events(1)), await one.append('shared', 4, events(1)))
      await expect(within(patience.ms, two.append('shared', 'end', events(1)))).rejects.toBeInstanceOf(Fenced)
      expectKept(await audit(fixture), acknowledged)
    },
  },
  {
    number: 35,
    title: 'records EpochStarted as the first event of each epoch',
    async run(fixture) {
      for (const version of ['1', '2']) await (await fixture.open()).claim({ address: 'http://here:1', version })
      const { valid } = await audit(fixture)
      expect(valid.map(({ stream, sequence, type, epoch }) => ({ stream, sequence, type, epoch }))).toEqual([
        { stream: 'system', sequence: 1, type: 'EpochStarted', epoch: 1 },
        { stream: 'system', sequence: 2, type: 'EpochStarted', epoch: 2 },
      ])
      expect(valid[1]!.data).toMatchObject({
        epoch: 2,
        partitions: fixture.partitions,
        address: 'http://here:1',
        version: '2',
      })
      const logIds = new Set(valid.map((event) => (event.data as { logId: string }).logId))
      expect([...logIds]).toEqual([(await (await fixture.open()).open()).logId])
    },
  },
]
