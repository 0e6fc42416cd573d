import type { QueryId } from '../../../src/shared/ids.ts'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createStatementMemory } from '../../../src/coordinator/dispatch/statement-memory.ts'
import { createPageMemories } from '../../../src/coordinator/query/results/page-memory.ts'
import { recoverQueries } from '../../../src/coordinator/recovery/recover-queries.ts'
import { queryEventVersions } from '../../../src/coordinator/query/stream/events.ts'
import type { Recorded } from '../../../src/events/event-log.ts'
import { LogFull } from '../../../src/events/event-log.ts'
import type { PlannedStatement } from '../../../src/planner/planned-statement.ts'
import { at, sampleData } from '../../support/query-events.ts'
import { createStatementBed, literals, MemoryLog } from '../../support/statement-bed.ts'
import { limitOwners } from '../../../src/shared/limit-owner.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))
const kB = 1024
const limits = { totalBytes: 200 * kB, userBytes: 100 * kB, addressBytes: 100 * kB }
const long = (bytes: number): string => `SELECT '${'x'.repeat(bytes)}'`
/** A statement that changes the session: it stays open until a client follows it. */
const session: PlannedStatement = {
  kind: 'session',
  queryType: 'DATA_DEFINITION',
  updateType: 'USE',
  changes: [],
  warnings: [],
}
const openForEver = () => Promise.resolve(session)

describe('The memory of open statements', () => {
  it('has limits per user, per address and in total, which refuse a statement before it gets an id', async () => {
    const log = new MemoryLog()
    const bed = createStatementBed({ log, memory: limits, analyze: openForEver })
    const tooMuch = { errorName: 'TOO_MANY_REQUESTS_FAILED', retry: 'later' }
    for (let index = 0; index < 3; index++) await bed.submit(long(30 * kB), 'ana', `10.0.0.${index}`)
    await expect(bed.submit(long(30 * kB), 'ana', '10.0.0.9')).rejects.toMatchObject(tooMuch)
    for (let index = 0; index < 3; index++) await bed.submit(long(30 * kB), `user ${index}`, '10.1.0.0')
    await expect(bed.submit(long(30 * kB), 'user 9', '10.1.0.0')).rejects.toMatchObject(tooMuch)
    await expect(bed.submit(long(30 * kB), 'other', '10.2.0.0')).rejects.toMatchObject(tooMuch)
    // A small statement fits as long as some memory is left.
    await bed.submit('SELECT 1', 'other', '10.2.0.0')
    expect(bed.memory.heldBytes).toBeLessThanOrEqual(limits.totalBytes)
    expect(log.streams.size).toBe(7)
    await Promise.all(bed.executions.map((execution) => execution.cancel()))
    expect(bed.memory.heldBytes).toBe(0)
    await bed.submit(long(30 * kB), 'ana', '10.0.0.9')
    await expect(bed.submit(long(110 * kB), 'ana', '10.0.0.9')).rejects.toMatchObject({ ...tooMuch, retry: 'never' })
  })

  it('counts two bytes for each character of a text with a character outside Latin-1', async () => {
    const log = new MemoryLog()
    const bed = createStatementBed({ log, memory: limits, analyze: openForEver })
    await bed.submit(`SELECT '${'x'.repeat(40 * kB)}'`)
    const narrow = bed.memory.heldBytes
    await bed.submit(`SELECT '${'日'.repeat(40 * kB)}'`, 'other', 'there')
    expect(bed.memory.heldBytes - narrow).toBeGreaterThan(narrow + 35 * kB)
  })

  it('is released when the log refuses the statement', async () => {
    const log = new MemoryLog()
    log.refuse = () => new LogFull('full')
    const bed = createStatementBed({ log, memory: limits })
    for (let index = 0; index < 20; index++)
      await expect(bed.submit(long(30 * kB))).rejects.toThrow('The event log does not answer')
    await settled()
    expect(bed.memory.heldBytes).toBe(0)
  })

  it('fails a statement with EXCEEDED_GLOBAL_MEMORY_LIMIT when its plan does not fit', async () => {
    const log = new MemoryLog()
    const { query } = literals as Extract<PlannedStatement, { kind: 'query' }>
    const outline = { ...query.outline, details: { text: 'x'.repeat(120 * kB) } }
    const bed = createStatementBed({
      log,
      memory: limits,
      analyze: () => Promise.resolve({ ...literals, query: { ...query, outline } }),
    })
    const execution = await bed.submit('SELECT 1')
    while (execution.aggregate.state.kind !== 'FAILED') await settled()
    const { state } = execution.aggregate
    expect(state.kind === 'FAILED' && state.failure).toMatchObject({
      errorName: 'EXCEEDED_GLOBAL_MEMORY_LIMIT',
      errorType: 'INSUFFICIENT_RESOURCES',
    })
    expect(bed.memory.heldBytes).toBe(0)
  })

  it('keeps a reserve for the plan of each accepted statement when an address has no memory left', () => {
    const memory = createStatementMemory(limits)
    const small = memory.hold({ user: 'ana', address: 'here' }, kB)
    memory.hold({ user: 'eve', address: 'here' }, 99 * kB)
    expect(() => memory.hold({ user: 'eve', address: 'here' }, 1)).toThrow('this address')
    const giveBack = small.more(10 * kB)
    expect(() => small.more(10 * kB)).toThrow('this address')
    giveBack()
    expect(small.bytes).toBe(kB)
  })

  it('has a limit for ended queries, even when many end at the same time', async () => {
    const log = new MemoryLog()
    const bed = createStatementBed({ log, endedBytes: 100 * kB, analyze: openForEver })
    for (let index = 0; index < 20; index++) {
      const execution = await bed.submit(long(30 * kB))
      await execution.cancel()
    }
    await settled()
    expect(bed.registry.open).toBe(0)
    expect(bed.registry.list().length).toBeLessThanOrEqual(3)
    expect(bed.memory.heldBytes).toBe(0)
  })

  it('never exceeds its limits, and is 0 after all statements have released theirs', () => {
    const step = fc.record({
      user: fc.nat(3),
      address: fc.nat(3),
      bytes: fc.nat(60),
      act: fc.nat(3),
      which: fc.nat(20),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const memory = createStatementMemory({ totalBytes: 200 * kB, userBytes: 100 * kB, addressBytes: 120 * kB })
        const held: { owner: { user: string; address: string }; one: ReturnType<typeof memory.hold> }[] = []
        const giveBacks: (() => void)[] = []
        const sum = (pick: (owner: { user: string; address: string }) => boolean): number =>
          held.filter(({ owner }) => pick(owner)).reduce((total, { one }) => total + one.bytes, 0)
        for (const { user, address, bytes, act, which } of steps) {
          const owner = { user: `u${user}`, address: `a${address}` }
          try {
            if (act === 0) held.push({ owner, one: memory.hold(owner, bytes * kB) })
            else if (act === 1 && held.length > 0)
              giveBacks.push(held[which % held.length]!.one.more((bytes + 17) * kB))
            else if (act === 2) giveBacks[which % Math.max(1, giveBacks.length)]?.()
            else if (held.length > 0) held.splice(which % held.length, 1)[0]!.one.release()
          } catch (error) {
            expect(error).toMatchObject({ name: 'EngineError' })
          }
          expect(memory.heldBytes).toBe(sum(() => true))
          expect(memory.heldBytes).toBeLessThanOrEqual(200 * kB)
          for (let index = 0; index < 4; index++) {
            expect(sum((one) => one.user === `u${index}`)).toBeLessThanOrEqual(100 * kB)
            expect(sum((one) => one.address === `a${index}`)).toBeLessThanOrEqual(120 * kB)
          }
        }
        for (const { one } of held) one.release()
        for (const giveBack of giveBacks) giveBack()
        expect(memory.heldBytes).toBe(0)
      }),
    )
  })
})

it('a recovering coordinator resumes the oldest queries that fit in its memory, and fails the others', async () => {
  const log = new MemoryLog()
  const ids = Array.from({ length: 10 }, (_, index) => `20260102_030405_0000${index}_00001` as QueryId)
  const sql = long(30 * kB)
  const created = (stream: string): Recorded => ({
    ...({ stream, type: 'QueryCreated', v: queryEventVersions.QueryCreated, time: at(0), sequence: 1 } as Recorded),
    data: { ...sampleData.QueryCreated, sql },
  })
  for (const id of ids) log.streams.set(id, [created(id)])
  const memory = createStatementMemory(limits)
  const resumed: string[] = []
  const failed: string[] = []
  const found = await recoverQueries(
    {
      log: {
        append: (stream, expected, events) => log.append(stream, Number(expected), events),
        async *readStream(stream) {
          yield await Promise.resolve(created(stream))
        },
      },
      clock: { now: () => Date.now(), monotonicMs: () => 0 },
      ownerOf: limitOwners(false),
      writerDied: true,
      epoch: 2,
      memory,
      resume: (queryId) => void resumed.push(queryId),
      onFailed: ({ queryId }) => void failed.push(queryId),
    },
    ids,
  )
  expect(found).toMatchObject({ resumed: 6, failed: 4 })
  expect(resumed).toEqual(ids.slice(0, 6))
  expect(failed.toSorted()).toEqual(ids.slice(6))
  expect(memory.heldBytes).toBeLessThanOrEqual(limits.totalBytes)
  for (const id of ids.slice(6)) expect(log.typesOf(id)).toEqual(['QueryCreated', 'QueryFailed'])
})

it('page memories of all queries share one limit, and drop the oldest page first', () => {
  const memories = createPageMemories(100)
  const [a, b] = [memories.ofQuery(), memories.ofQuery()]
  a.set(0, Buffer.alloc(40))
  b.set(0, Buffer.alloc(40))
  a.set(1, Buffer.alloc(40))
  expect([a.get(0), b.get(0)?.length, a.get(1)?.length, memories.bytes]).toEqual([undefined, 40, 40, 80])
  a.set(1, Buffer.alloc(60))
  expect([b.get(0)?.length, a.get(1)?.length, memories.bytes]).toEqual([40, 60, 100])
  b.set(1, Buffer.alloc(1000))
  expect([b.get(1), memories.bytes]).toEqual([undefined, 0])
  a.set(2, Buffer.alloc(10))
  a.set(3, Buffer.alloc(10))
  a.forgetBefore(3)
  expect([a.get(2), a.get(3)?.length, memories.bytes]).toEqual([undefined, 10, 10])
  a.clear()
  expect(memories.bytes).toBe(0)
})
