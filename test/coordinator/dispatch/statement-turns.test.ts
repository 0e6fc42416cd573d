import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createStatementTurns } from '../../../src/coordinator/dispatch/statement-turns.ts'

const flood = { user: 'mallory', address: '127.0.0.1' }
const ana = { user: 'ana', address: '127.0.0.2' }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('gives turns at once while there are some, then to one after the other', async () => {
  const turns = createStatementTurns({ atOnce: 2, waiting: 100, waitingOfUser: 50, waitMs: 1000 })
  const [first, second] = [turns.take(flood), turns.take(flood)]
  expect(typeof first === 'function' && typeof second === 'function').toBe(true)
  const order: string[] = []
  const ends: (() => void)[] = []
  const wait = (name: string, owner: typeof ana): void =>
    void Promise.resolve(turns.take(owner)).then((end) => (order.push(name), ends.push(end)))
  for (let index = 0; index < 40; index++) wait(`flood ${index}`, flood)
  wait('ana', ana)
  await vi.advanceTimersByTimeAsync(1)
  expect(order).toEqual([])
  ;(first as () => void)()
  ;(first as () => void)()
  await vi.advanceTimersByTimeAsync(1)
  expect(order).toEqual(['flood 0'])
  ends[0]!()
  await vi.advanceTimersByTimeAsync(1)
  expect(order).toEqual(['flood 0', 'ana'])
})

it('keeps some for others than who has many', async () => {
  const turns = createStatementTurns({ atOnce: 20, waiting: 100, waitingOfUser: 50, waitMs: 1000 })
  const taken = Array.from({ length: 30 }, () => turns.take(flood))
  const begun = taken.filter((one) => typeof one === 'function')
  expect(begun).toHaveLength(16)
  const end = turns.take(ana)
  expect(typeof end).toBe('function')
  for (const one of [end as () => void, ...begun]) one()
  const later = await Promise.all(taken.filter((one) => typeof one !== 'function'))
  for (const one of later) one()
})

it('refuses what would wait too long, and too many of one user while others have room', async () => {
  const turns = createStatementTurns({ atOnce: 1, waiting: 4, waitingOfUser: 2, waitMs: 1000 })
  const end = turns.take(flood) as () => void
  const [late, later] = [turns.take(flood) as Promise<() => void>, turns.take(flood) as Promise<() => void>]
  const refused = Promise.all([late, later].map((one) => one.catch((error: unknown) => error)))
  expect(() => turns.take(flood)).toThrow('Too many statements wait')
  const anas = turns.take(ana) as Promise<() => void>
  const told = anas.catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(1001)
  for (const error of [...(await refused), await told])
    expect(error).toMatchObject({ errorName: 'TOO_MANY_REQUESTS_FAILED' })
  end()
  // Who went away before his turn takes none.
  expect(typeof turns.take(ana)).toBe('function')
})
