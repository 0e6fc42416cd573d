import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTestPool, type TestPool } from '../../support/engines.ts'

let engines: TestPool
beforeAll(async () => {
  engines = await openTestPool()
})
afterAll(async () => {
  await engines[Symbol.asyncDispose]()
})

const wait = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** Statements with very different plans; each would run for many seconds. */
const statements: Record<string, string> = {
  'a hash aggregate': `SELECT count(DISTINCT i * 7)::VARCHAR FROM range(3000000000) r(i)`,
  'a sort': `SELECT i::VARCHAR FROM range(500000000) r(i) ORDER BY hash(i) LIMIT 1 OFFSET 100000000`,
  'an explosion of joins': `SELECT count(*)::VARCHAR FROM range(100000) a(i), range(100000) b(j) WHERE i + j = 7`,
  'a pattern that backtracks': `SELECT (repeat('a', 60 + i::INTEGER) ILIKE '%a%a%a%a%a%a%a%a%b')::VARCHAR FROM range(2) r(i)`,
}

describe('A cancel', () => {
  it.each(Object.entries(statements))('ends %s', async (_name, sql) => {
    for (const output of [
      { kind: 'inline', maxBytes: 1000 },
      { kind: 'stream', onRows: () => undefined },
    ] as const) {
      const seen = engines.events.length
      const run = engines.run(sql, { placement: 'dedicated', output })
      await expect
        .poll(() => engines.pool.children().some(({ running }) => running > 0), { timeout: 120_000 })
        .toBe(true)
      await wait(300)
      run.cancel()
      run.cancel()
      await expect(run.done).rejects.toMatchObject({ errorName: 'USER_CANCELED' })
      await expect
        .poll(() => engines.events.slice(seen).some((event) => event.type === 'canceled'), { timeout: 120_000 })
        .toBe(true)
      expect(await engines.rows(`SELECT '[1]'`, { placement: 'dedicated' })).toEqual([[1]])
    }
  })

  it('ends a stream whose consumer does not take its rows', async () => {
    let calls = 0
    const output = {
      kind: 'stream',
      onRows: () => {
        calls++
        return new Promise<void>(() => undefined)
      },
    } as const
    const run = engines.run(`SELECT json_array(i)::VARCHAR FROM range(100000000) r(i)`, {
      placement: 'dedicated',
      output,
    })
    await expect.poll(() => calls, { timeout: 120_000 }).toBe(1)
    run.cancel()
    await expect(run.done).rejects.toMatchObject({ errorName: 'USER_CANCELED' })
    await expect
      .poll(() => engines.pool.children().every(({ running }) => running === 0), { timeout: 120_000 })
      .toBe(true)
    expect(calls).toBe(1)
  })

  it('removes a waiting statement from the queue', async () => {
    const long = statements['an explosion of joins']!
    const busy = [1, 2].map(() => engines.run(long, { placement: 'dedicated' }))
    const queued = engines.run(long, { placement: 'dedicated' })
    queued.cancel()
    await expect(queued.done).rejects.toMatchObject({ errorName: 'USER_CANCELED' })
    for (const run of busy) run.cancel()
    await Promise.allSettled(busy.map(({ done }) => done))
  })

  it('does not change the result of another small statement in the same engine', async () => {
    const stubborn = engines.run(statements['a pattern that backtracks']!)
    const neighbour = engines.rows(`SELECT json_array(count(*))::VARCHAR FROM range(50000000) r(i) WHERE i % 3 = 0`)
    await wait(100)
    stubborn.cancel()
    await expect(stubborn.done).rejects.toMatchObject({ errorName: 'USER_CANCELED' })
    expect(await neighbour).toEqual([[16_666_667]])
    expect(await engines.rows(`SELECT '[1]'`)).toEqual([[1]])
  })
})

describe('The remaining time of a statement', () => {
  it('ends the statement with EXCEEDED_TIME_LIMIT when it is over', async () => {
    const run = engines.run(statements['an explosion of joins']!, { placement: 'dedicated', remainingMillis: 300 })
    await expect(run.done).rejects.toMatchObject({ errorName: 'EXCEEDED_TIME_LIMIT' })
    expect(await engines.rows(`SELECT '[1]'`, { placement: 'dedicated' })).toEqual([[1]])
  })
})
