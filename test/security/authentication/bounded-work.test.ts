import { describe, expect, it } from 'vitest'
import { createBoundedWork } from '../../../src/security/authentication/bounded-work.ts'

/** Work that ends on demand, with the networks whose work began, in order. */
function bed(atOnce: number, mostWaiting: number) {
  const work = createBoundedWork(atOnce, mostWaiting)
  const began: string[] = []
  const results: (() => void)[] = []
  return {
    began,
    /** @returns whether the work has begun or waits */
    send: (network: string): boolean =>
      work.run(network, () => {
        began.push(network)
        return new Promise<void>((resolve) => results.push(resolve))
      }) !== undefined,
    async endOldest(): Promise<void> {
      const before = began.length
      results.shift()!()
      await expect.poll(() => began.length).toBe(before + 1)
    },
  }
}

describe('Bounded work', () => {
  it('serves another address next, however much work the first address sent before', async () => {
    const { began, send, endOldest } = bed(2, 32)
    const flood = Array.from({ length: 100 }, () => send('flood'))
    expect(flood.filter(Boolean).length).toBeLessThan(2 + 32)
    expect(send('other')).toBe(true)
    await endOldest()
    expect(began).toEqual(['flood', 'flood', 'other'])
  })

  it('keeps a waiting place for a third address when two addresses have filled theirs', () => {
    const { send } = bed(2, 32)
    for (let index = 0; index < 100; index++) for (const network of ['flood', 'another flood']) send(network)
    expect(send('other')).toBe(true)
  })

  it('gives all places to a single address, and continues after failures', async () => {
    const work = createBoundedWork(2, 3)
    const fails = (): Promise<never> => Promise.reject(new Error('no'))
    const all = Array.from({ length: 5 }, () => work.run('one', fails))
    expect(work.run('one', fails)).toBeUndefined()
    const results = await Promise.allSettled(all)
    expect(new Set(results.map(({ status }) => status))).toEqual(new Set(['rejected']))
    expect(await work.run('one', async () => 'done')).toBe('done')
  })

  it('keeps one of eight places free for another address while slow work runs', () => {
    const { began, send } = bed(8, 32)
    for (let index = 0; index < 20; index++) send('slow')
    expect(send('other')).toBe(true)
    expect(began.at(-1)).toBe('other')
  })
})
