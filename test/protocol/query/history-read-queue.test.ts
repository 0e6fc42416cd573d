import { describe, expect, it } from 'vitest'
import { createHistoryReadQueue } from '../../../src/protocol/query/history-read-queue.ts'

const settled = async (promise: Promise<unknown>): Promise<boolean> => {
  let done = false
  void promise.then(() => (done = true))
  for (let i = 0; i < 5; i++) await Promise.resolve()
  return done
}

describe('The queue for reads of the history', () => {
  it('keeps a place free for another address, however many reads the same address asks for', async () => {
    const queue = createHistoryReadQueue({ atOnce: 3, waitMs: 60_000, what: 'The history' })
    const eve = Array.from({ length: 6 }, (_, i) => queue.take({ address: 'eve', user: `as ${i}` }))
    expect(await settled(eve[1]!)).toBe(true)
    expect(await settled(eve[2]!)).toBe(false)
    const bob = queue.take({ address: 'bob', user: 'bob' })
    const [endOfEve, endOfBob] = [await eve[0]!, await bob]
    const carol = queue.take({ address: 'carol', user: 'carol' })
    expect(await settled(carol)).toBe(false)
    endOfBob()
    endOfBob()
    const endOfCarol = await carol
    endOfEve()
    await eve[2]!
    expect(await settled(eve[3]!)).toBe(false)
    endOfCarol()
    const last = queue.take({ address: 'bob', user: 'bob' })
    expect(await settled(last)).toBe(true)
    // A read that still waits would be rejected after the test.
    for (const read of [...eve.slice(1), last]) void read.then((end) => end())
    await Promise.all(eve)
  })

  it('rejects a read that waited too long, and gives it no place afterwards', async () => {
    const queue = createHistoryReadQueue({ atOnce: 3, waitMs: 1, what: 'The history' })
    const releases = [await queue.take({ address: 'a', user: 'a' }), await queue.take({ address: 'a', user: 'a' })]
    await expect(queue.take({ address: 'a', user: 'a' })).rejects.toMatchObject({ errorName: 'EXCEEDED_TIME_LIMIT' })
    for (const end of releases) end()
    const again = [queue.take({ address: 'a', user: 'a' }), queue.take({ address: 'a', user: 'a' })]
    expect(await settled(Promise.all(again))).toBe(true)
  })
})
