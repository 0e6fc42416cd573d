import { describe, expect, it } from 'vitest'
import { NotWanted, QueueFull, ReadQueue } from '../../../../src/coordinator/clusters/metadata/read-queue.ts'
import { deferred } from '../../../../src/shared/deferred.ts'

const LONG_MS = 600_000

function queueOf({ mostWaiting = 10, mostWaitingOfUser = 10 } = {}) {
  let clock = 0
  const queue = new ReadQueue({ atOnce: 1, mostWaiting, mostWaitingOfUser, now: () => clock })
  const begun: string[] = []
  const held = deferred<void>()
  return {
    queue,
    begun,
    pass: (ms: number) => void (clock += ms),
    release: () => held.resolve(),
    read: (name: string, user?: string, withinMs = LONG_MS, unwanted?: AbortSignal): Promise<number> =>
      queue.run(
        user,
        withinMs,
        async (leftMs) => {
          begun.push(name)
          await held.promise
          return leftMs
        },
        unwanted,
      ),
  }
}

describe('A read of metadata', () => {
  it('leaves the queue when its time is over, and does not run later', async () => {
    const { read, release, begun } = queueOf()
    const first = read('first')
    await expect(read('late', undefined, 5)).rejects.toThrow(QueueFull)
    const next = read('next')
    release()
    await Promise.all([first, next])
    expect(begun).toEqual(['first', 'next'])
  })

  it('leaves the queue when its value is no longer wanted, and makes room for others', async () => {
    const { read, release, begun } = queueOf({ mostWaiting: 1 })
    const unwanted = new AbortController()
    const first = read('first', undefined, LONG_MS, unwanted.signal)
    const second = read('second', undefined, LONG_MS, unwanted.signal)
    unwanted.abort()
    await expect(second).rejects.toThrow(NotWanted)
    await expect(read('never', undefined, LONG_MS, unwanted.signal)).rejects.toThrow(NotWanted)
    const third = read('third')
    release()
    await Promise.all([first, third])
    expect(begun).toEqual(['first', 'third'])
  })

  it('has only the time that its wait has left', async () => {
    const { read, release, pass } = queueOf()
    const first = read('first')
    const second = read('second')
    await new Promise((resolve) => setImmediate(resolve))
    pass(1_000)
    release()
    expect(await first).toBe(LONG_MS)
    expect(await second).toBe(LONG_MS - 1_000)
  })

  it('is refused at once when too many wait', async () => {
    const { read, release } = queueOf({ mostWaiting: 1 })
    const all = [read('first'), read('second')]
    await expect(read('third')).rejects.toThrow(QueueFull)
    release()
    await Promise.all(all)
  })

  it('is refused at once when too many of its user wait, and others are not', async () => {
    const { read, release } = queueOf({ mostWaitingOfUser: 1 })
    const all = [read('first', 'ana'), read('second', 'ana'), read('other', 'bo')]
    await expect(read('third', 'ana')).rejects.toThrow(QueueFull)
    release()
    await Promise.all(all)
  })

  it('takes turns with the reads of other users', async () => {
    const { read, release, begun } = queueOf()
    const all = [read('a1', 'ana'), read('a2', 'ana'), read('a3', 'ana'), read('b1', 'bo')]
    release()
    await Promise.all(all)
    expect(begun.indexOf('b1')).toBeLessThan(begun.indexOf('a3'))
  })

  it('makes room for the next read when it fails', async () => {
    const { queue } = queueOf()
    const failed = queue.run(undefined, LONG_MS, () => Promise.reject(new TypeError('a bug')))
    const next = queue.run(undefined, LONG_MS, async () => 'read')
    await expect(failed).rejects.toThrow(TypeError)
    expect(await next).toBe('read')
  })
})
