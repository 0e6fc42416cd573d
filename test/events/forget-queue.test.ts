import { expect, it } from 'vitest'
import { ForgetQueue } from '../../src/events/archive/forget-queue.ts'
import type { SequencesByStream } from '../../src/events/archive/archived-records.ts'

/** A queue whose rewrites end when they are released, and the rewrites so far. */
function held() {
  const rewrites: { events: SequencesByStream; epoch: number; end(error?: Error): void }[] = []
  const queue = new ForgetQueue(
    (events, epoch) =>
      new Promise((resolve, reject) => {
        rewrites.push({ events, epoch, end: (error) => (error ? reject(error) : resolve(events)) })
      }),
  )
  return { queue, rewrites }
}

it('one rewrite removes the events of all calls that wait, and those of one stream once', async () => {
  const { queue, rewrites } = held()
  const calls = [
    queue.forget('a', [1], 1),
    queue.forget('b', [1, 2], 1),
    queue.forget('c', [3], 1),
    queue.forget('b', [2, 3], 1),
  ]
  expect(rewrites.map(({ events }) => events)).toEqual([new Map([['a', new Set([1])]])])
  rewrites[0]!.end()
  expect(await calls[0]).toEqual(new Set([1]))
  await expect.poll(() => rewrites.length).toBe(2)
  expect(rewrites[1]!.events).toEqual(
    new Map([
      ['b', new Set([1, 2, 3])],
      ['c', new Set([3])],
    ]),
  )
  rewrites[1]!.end()
  expect(await Promise.all(calls)).toEqual([new Set([1]), new Set([1, 2, 3]), new Set([3]), new Set([1, 2, 3])])
})

it('a rewrite that fails rejects its calls only, and later calls are rewritten', async () => {
  const { queue, rewrites } = held()
  const [first, second] = [queue.forget('a', [1], 1), queue.forget('b', [1], 1)]
  rewrites[0]!.end(new Error('the disk is full'))
  await expect(first).rejects.toThrow('the disk is full')
  await expect.poll(() => rewrites.length).toBe(2)
  rewrites[1]!.end()
  expect(await second).toEqual(new Set([1]))
})

it('calls of different epochs are rewritten separately', async () => {
  const { queue, rewrites } = held()
  const calls = [queue.forget('a', [1], 1), queue.forget('b', [1], 1), queue.forget('c', [1], 2)]
  for (let index = 0; index < 3; index++) {
    await expect.poll(() => rewrites.length).toBe(index + 1)
    rewrites[index]!.end()
  }
  await Promise.all(calls)
  expect(rewrites.map(({ events, epoch }) => [[...events.keys()], epoch])).toEqual([
    [['a'], 1],
    [['b'], 1],
    [['c'], 2],
  ])
})
