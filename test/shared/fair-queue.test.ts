import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FairQueue, type SlotOwner } from '../../src/shared/fair-queue.ts'

const owner = fc.record({ address: fc.constantFrom('a', 'b', 'c'), user: fc.constantFrom('u', 'v') })
type Step =
  | { readonly kind: 'push'; readonly owner: SlotOwner }
  | { readonly kind: 'shift' }
  | { readonly kind: 'out'; readonly which: number }
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: owner.map((one): Step => ({ kind: 'push', owner: one })) },
  { weight: 2, arbitrary: fc.constant<Step>({ kind: 'shift' }) },
  { weight: 1, arbitrary: fc.nat(100).map((which): Step => ({ kind: 'out', which })) },
)

interface Waiting {
  readonly number: number
  readonly owner: SlotOwner
  readonly out: () => void
  /** How many items were taken since this one was pushed, by address. */
  readonly taken: Map<string, number>
}

describe('A fair queue', () => {
  it('gives each item once, in order for each user, and at most two of an address while another one waits', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const queue = new FairQueue<number>()
        let waiting: Waiting[] = []
        for (const [number, one] of steps.entries()) {
          if (one.kind === 'push')
            waiting.push({ number, owner: one.owner, out: queue.push(one.owner, number), taken: new Map() })
          else if (one.kind === 'out') {
            const gone = waiting[one.which % Math.max(1, waiting.length)]
            gone?.out()
            gone?.out()
            waiting = waiting.filter((other) => other !== gone)
          } else {
            const next = queue.shift()
            const given = waiting.find((other) => other.number === next)
            expect(given === undefined).toBe(waiting.length === 0)
            if (!given) continue
            const same = waiting.filter(
              ({ owner: { address, user } }) => address === given.owner.address && user === given.owner.user,
            )
            expect(given.number).toBe(Math.min(...same.map((other) => other.number)))
            waiting = waiting.filter((other) => other !== given)
            for (const other of waiting) {
              const first = !waiting.some(
                (before) => before.number < other.number && before.owner.address === other.owner.address,
              )
              const count = (other.taken.get(given.owner.address) ?? 0) + 1
              other.taken.set(given.owner.address, count)
              // The address has had a waiting item all that time.
              if (first && other.owner.address !== given.owner.address) expect(count).toBeLessThanOrEqual(2)
            }
          }
          expect(queue.length).toBe(waiting.length)
          for (const { owner } of waiting)
            expect(queue.lengthOf(owner)).toBe(
              waiting.filter((other) => other.owner.address === owner.address && other.owner.user === owner.user)
                .length,
            )
        }
      }),
    )
  })

  it('serves a new address before the flood of another address, even if the flood has many user names', () => {
    const queue = new FairQueue<string>()
    for (let index = 0; index < 3000; index++) queue.push({ address: 'x', user: `name ${index % 50}` }, 'flood')
    queue.push({ address: 'y', user: 'ana' }, 'ana')
    const order = Array.from({ length: queue.length }, () => queue.shift())
    expect(order.indexOf('ana')).toBeLessThanOrEqual(1)
    expect(queue.shift()).toBeUndefined()
  })

  it('serves a rare address before many busy ones, and new addresses do not hold up the old ones for ever', () => {
    const queue = new FairQueue<string>()
    const push = (address: string): void => void queue.push({ address, user: 'u' }, address)
    for (let address = 0; address < 100; address++) for (let count = 0; count < 9; count++) push(`old ${address}`)
    for (let count = 0; count < 150; count++) queue.shift()
    const before: number[] = []
    for (let round = 0; round < 5; round++) {
      push('ana')
      let count = 0
      while (queue.shift() !== 'ana') count++
      before.push(count)
      // Ana counts as new again after each of them was served once more.
      for (let round = 0; round < 110; round++) queue.shift()
    }
    expect(Math.max(...before)).toBeLessThanOrEqual(1)
    const order: string[] = []
    for (let index = 0; index < 50; index++) {
      push(`made up ${index}`)
      order.push(queue.shift()!)
    }
    expect(order.filter((one) => one.startsWith('old'))).toHaveLength(10)
  })

  it('remembers the order in which addresses were served, also if nothing waited in between', () => {
    const queue = new FairQueue<string>()
    const owner = (address: string): SlotOwner => ({ address, user: 'u' })
    const order = (addresses: readonly string[]): (string | undefined)[] => {
      for (const address of addresses) queue.push(owner(address), address)
      return addresses.map(() => queue.shift())
    }
    expect(order(['a', 'b', 'c'])).toEqual(['a', 'b', 'c'])
    // Address a passes without waiting.
    queue.passed(owner('a'))
    expect(order(['c', 'a', 'b'])).toEqual(['b', 'c', 'a'])
    // The queue forgets an address after thousands of others.
    for (let index = 0; index < 5000; index++) queue.passed(owner(`other ${index}`))
    expect(order(['other 4999', 'c'])).toEqual(['c', 'other 4999'])
    expect(queue.length).toBe(0)
  })

  it('forgets users without waiting items, the one that was served longest ago first', () => {
    const queue = new FairQueue<string>()
    const of = (user: string): SlotOwner => ({ address: 'a', user })
    for (const user of ['steady', 'other steady']) {
      for (let item = 0; item < 3; item++) queue.push(of(user), user)
      expect(queue.shift({ address: () => true, user: (one) => one === user })).toBe(user)
    }
    for (let index = 0; index < 300; index++) {
      const user = `u${index}`
      queue.push(of(user), user)
      const takeBack = queue.push(of(user), user)
      expect(queue.shift({ address: () => true, user: (one) => one === user })).toBe(user)
      takeBack()
    }
    expect(queue.shift()).toBe('steady')
    // The queue treats u0 as a new user.
    queue.push(of('u0'), 'u0')
    expect(queue.shift()).toBe('u0')
    queue.push(of('u299'), 'u299')
    expect([queue.shift(), queue.shift(), queue.shift()]).toEqual(['other steady', 'u299', 'steady'])
  })

  it('skips an address that is not allowed now, and keeps its items in order', () => {
    const queue = new FairQueue<string>()
    for (const address of ['x', 'y', 'x']) queue.push({ address, user: 'u' }, address)
    const butX = { address: (address: string) => address !== 'x', user: () => true }
    expect([queue.shift(butX), queue.shift(butX), queue.length]).toEqual(['y', undefined, 2])
    expect([queue.shift(), queue.shift(), queue.shift()]).toEqual(['x', 'x', undefined])
  })
})
