import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createAcceptanceQueue } from '../../../src/coordinator/dispatch/acceptance-queue.ts'

const flood = { user: 'mallory', address: '127.0.0.1' }
const ana = { user: 'ana', address: '127.0.0.2' }
const LONG = { longBytes: 1000, longAtOnce: 2 }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('the acceptance queue starts statements at once while slots are free, then alternates between users', async () => {
  const queue = createAcceptanceQueue({ ...LONG, atOnce: 2, waiting: 100, waitingOfUser: 50, waitMs: 1000 })
  const [first, second] = [queue.take(flood, 10), queue.take(flood, 10)]
  expect(typeof first === 'function' && typeof second === 'function').toBe(true)
  const order: string[] = []
  const releases: (() => void)[] = []
  const wait = (name: string, owner: typeof ana): void =>
    void Promise.resolve(queue.take(owner, 10)).then((end) => (order.push(name), releases.push(end)))
  for (let index = 0; index < 40; index++) wait(`flood ${index}`, flood)
  wait('ana', ana)
  await vi.advanceTimersByTimeAsync(1)
  expect(order).toEqual([])
  ;(first as () => void)()
  ;(first as () => void)()
  await vi.advanceTimersByTimeAsync(1)
  expect(order).toEqual(['ana'])
  releases[0]!()
  await vi.advanceTimersByTimeAsync(1)
  expect(order).toEqual(['ana', 'flood 0'])
})

it('the acceptance queue keeps slots free for other users when one user has many statements', async () => {
  const queue = createAcceptanceQueue({ ...LONG, atOnce: 20, waiting: 100, waitingOfUser: 50, waitMs: 1000 })
  const taken = Array.from({ length: 30 }, () => queue.take(flood, 10))
  const begun = taken.filter((one) => typeof one === 'function')
  expect(begun).toHaveLength(16)
  const end = queue.take(ana, 10)
  expect(typeof end).toBe('function')
  for (const one of [end as () => void, ...begun]) one()
  const later = await Promise.all(taken.filter((one) => typeof one !== 'function'))
  for (const one of later) one()
})

it('the acceptance queue runs few long statements at once, and short ones beside them', async () => {
  const queue = createAcceptanceQueue({ ...LONG, atOnce: 20, waiting: 100, waitingOfUser: 3, waitMs: 1000 })
  const order: string[] = []
  const releases = new Map<string, () => void>()
  const take = (name: string, owner: typeof ana, bytes: number): void =>
    void Promise.resolve(queue.take(owner, bytes)).then(
      (end) => (order.push(name), releases.set(name, end)),
      () => order.push(`${name} refused`),
    )
  for (let index = 0; index < 6; index++) take(`long ${index}`, flood, 1000)
  take('short of the same', flood, 999)
  take('long of ana', ana, 1000)
  await vi.advanceTimersByTimeAsync(1)
  expect(order.filter((name) => !name.endsWith('refused')).toSorted()).toEqual([
    'long 0',
    'long 1',
    'short of the same',
  ])
  expect(order).toContain('long 5 refused')
  releases.get('long 0')!()
  await vi.advanceTimersByTimeAsync(1)
  releases.get('long 1')!()
  await vi.advanceTimersByTimeAsync(1)
  expect(order).toContain('long of ana')
  for (const end of releases.values()) end()
  await vi.advanceTimersByTimeAsync(1)
  for (const end of releases.values()) end()
  await vi.advanceTimersByTimeAsync(2000)
  expect(order.filter((name) => name.endsWith('refused'))).toEqual(['long 5 refused'])
  expect(typeof queue.take(flood, 10)).toBe('function')
})

it('the acceptance queue refuses statements that wait too long and too many statements of a user', async () => {
  const queue = createAcceptanceQueue({ ...LONG, atOnce: 1, waiting: 4, waitingOfUser: 2, waitMs: 1000 })
  const end = queue.take(flood, 10) as () => void
  const [late, later] = [queue.take(flood, 10) as Promise<() => void>, queue.take(flood, 10) as Promise<() => void>]
  const refused = Promise.all([late, later].map((one) => one.catch((error: unknown) => error)))
  expect(() => queue.take(flood, 10)).toThrow('Too many statements are waiting')
  const anas = queue.take(ana, 10) as Promise<() => void>
  const reported = anas.catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(1001)
  for (const error of [...(await refused), await reported])
    expect(error).toMatchObject({ errorName: 'TOO_MANY_REQUESTS_FAILED' })
  end()
  // Refused statements take no slot.
  expect(typeof queue.take(ana, 10)).toBe('function')
})
