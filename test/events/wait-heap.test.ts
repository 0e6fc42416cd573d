import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WaitHeap } from '../../src/events/wait-heap.ts'

const key = fc.bigInt({ min: 0n, max: 1000n })

describe('A wait heap', () => {
  it('resolves exactly the waits whose number has passed, in any order of arrival', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(key, { maxLength: 60 }), fc.array(key, { maxLength: 6 }), async (keys, releases) => {
        const heap = new WaitHeap()
        const passed = new Set<number>()
        const waits = keys.map((one, index) => heap.wait(one, 60_000).then((ok) => ok && passed.add(index)))
        let highest = -1n
        for (const upTo of releases) {
          heap.release(upTo)
          if (upTo > highest) highest = upTo
          await Promise.resolve()
          await Promise.resolve()
          const wanted = keys.flatMap((one, index) => (one <= highest ? [index] : []))
          expect([...passed].sort((a, b) => a - b)).toEqual(wanted)
          expect(heap.size).toBe(keys.length - wanted.length)
        }
        heap.abandon()
        await Promise.all(waits)
      }),
    )
  })

  it('resolves a wait with false at its timeout, and removes it', async () => {
    const heap = new WaitHeap()
    const waits = Array.from({ length: 200 }, (_, index) => heap.wait(BigInt(index), 5))
    expect(heap.size).toBe(200)
    expect(await Promise.all(waits)).toEqual(waits.map(() => false))
    expect(heap.size).toBe(0)
    const later = heap.wait(7n, 60_000)
    heap.release(7n)
    expect(await later).toBe(true)
  })

  it('resolves all remaining waits with false when it is abandoned', async () => {
    const heap = new WaitHeap()
    const waits = [heap.wait(1n, 60_000), heap.wait(2n, 60_000)]
    heap.release(1n)
    heap.abandon()
    expect(await Promise.all(waits)).toEqual([true, false])
    expect(heap.size).toBe(0)
  })
})
