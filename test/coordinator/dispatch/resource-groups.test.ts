import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { entrantOf } from '../../support/group-entrant.ts'
import { createResourceGroups } from '../../../src/coordinator/dispatch/groups/single-group.ts'
import type { GroupSlot, ResourceGroups } from '../../../src/coordinator/dispatch/resource-groups.ts'

/** Queries that enter and leave; `admitted` has them in the order of their admission. */
function createRunners(groups: ResourceGroups) {
  const admitted: string[] = []
  const slots = new Map<string, GroupSlot>()
  const admit = (name: string, slot: GroupSlot): void => {
    admitted.push(name)
    slots.set(name, slot)
  }
  return {
    admitted,
    get running() {
      return slots.size
    },
    get fresh() {
      return [...slots.keys()].filter((name) => name.startsWith('new')).length
    },
    enter(name: string, recovered = false, owner = ANA): void {
      const free = groups.tryEnter(entrantOf({ recovered, owner }))
      if (free) return admit(name, free)
      const waiting = groups.enter(entrantOf({ recovered, owner }))
      void waiting.slot.then((slot) => slot && admit(name, slot))
    },
    occupy: (name: string) => void slots.set(name, groups.occupy(entrantOf())),
    /** Ends the query that runs longest. */
    end(): void {
      const [first] = slots
      if (!first) return
      slots.delete(first[0])
      first[1].release()
    },
  }
}

const ANA = { user: 'ana', address: '127.0.0.1' }

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('The slots of the global group', () => {
  it('alternate between users when one user has 300 waiting queries', async () => {
    const runners = createRunners(createResourceGroups({ running: 1, queued: 1000 }))
    for (let index = 0; index < 300; index++) runners.enter(`flood ${index}`)
    runners.enter('single', false, { user: 'bob', address: '127.0.0.2' })
    for (let ended = 0; ended < 3; ended++) {
      runners.end()
      await settled()
    }
    expect(runners.admitted.slice(0, 4)).toContain('single')
  })

  it('remain free for others, about a quarter of them, when one user or one address floods the group', async () => {
    const mallory = (index: number) => ({ user: 'mallory', address: `127.0.1.${index % 20}` })
    const names = (index: number) => ({ user: `name ${index}`, address: '127.0.2.1' })
    for (const ofFlood of [mallory, names]) {
      const runners = createRunners(createResourceGroups({ running: 100, queued: 1000 }))
      for (let index = 0; index < 300; index++) runners.enter(`flood ${index}`, false, ofFlood(index))
      expect(runners.running).toBe(76)
      runners.enter('single', false, { user: 'bob', address: '127.0.0.2' })
      expect(runners.admitted.at(-1)).toBe('single')
      // Free slots stay free: the flood has its share, and continues only when one of its own queries ends.
      await settled()
      expect(runners.running).toBe(77)
      for (let ended = 0; ended < 301; ended++) {
        runners.end()
        await settled()
      }
      expect(runners.admitted).toHaveLength(301)
    }
  })

  it('can all be taken by one user when there are at most four', () => {
    for (let running = 1; running <= 4; running++) {
      const runners = createRunners(createResourceGroups({ running, queued: 1000 }))
      for (let index = 0; index < 10; index++) runners.enter(`${index}`)
      expect(runners.running).toBe(running)
    }
  })

  it('go to the queries of one user in their order of arrival', async () => {
    const runners = createRunners(createResourceGroups({ running: 1, queued: 3 }))
    for (const name of ['a', 'b', 'c', 'd']) runners.enter(name)
    expect(() => runners.enter('e')).toThrow('Too many queued queries')
    for (let ended = 0; ended < 4; ended++) {
      runners.end()
      await settled()
    }
    expect(runners.admitted).toEqual(['a', 'b', 'c', 'd'])
  })

  it('are reserved for the expected recovered queries, and only for as many', async () => {
    const groups = createResourceGroups({ running: 3, queued: 10 })
    const runners = createRunners(groups)
    const reservation = groups.reserve()
    let counted = false
    void reservation.counted.then(() => (counted = true))
    await settled()
    expect(counted).toBe(false)
    reservation.expect(2)
    await settled()
    expect(counted).toBe(true)
    runners.enter('new')
    runners.enter('new too')
    expect(runners.admitted).toEqual(['new'])
    runners.occupy('before')
    reservation.queryRecovered()
    // The second query had already ended.
    reservation.queryRecovered()
    await settled()
    expect(runners.admitted).toEqual(['new', 'new too'])
    reservation.end()
    expect(groups.reservation).toBeUndefined()
  })

  it('go to recovered waiting queries first, even beyond the limit of queued queries', async () => {
    const groups = createResourceGroups({ running: 1, queued: 1 })
    const runners = createRunners(groups)
    groups.reserve().expect(2)
    runners.enter('new')
    for (const name of ['x', 'y']) runners.enter(name, true)
    expect(groups.figures()).toMatchObject([{ running: 1, queued: 2 }])
    for (let ended = 0; ended < 3; ended++) {
      groups.reservation?.queryRecovered()
      runners.end()
      await settled()
    }
    expect(runners.admitted).toEqual(['x', 'y', 'new'])
  })

  it('go to new queries up to one in four while 4000 recovered queries wait', async () => {
    const groups = createResourceGroups({ running: 8, queued: 10_000 })
    const runners = createRunners(groups)
    // The recovered queries are not counted yet.
    const reservation = groups.reserve()
    for (const name of ['new 1', 'new 2', 'new 3']) runners.enter(name)
    expect(runners.admitted).toEqual(['new 1', 'new 2'])
    reservation.expect(4000)
    for (let index = 0; index < 4000; index++) runners.enter(`before ${index}`, true)
    expect(runners.fresh).toBe(2)
    expect(runners.running).toBe(8)
    // A new query ends, and the next new query is admitted before the 4000.
    runners.end()
    await settled()
    expect(runners.admitted.at(-1)).toBe('new 3')
    // No new query waits any more, so recovered queries take the other slots.
    for (let ended = 0; ended < 100; ended++) {
      runners.end()
      await settled()
    }
    expect(runners.running).toBe(8)
    expect(runners.admitted.at(-1)).toBe('before 105')
  })

  it('never go to a new query before a waiting recovered query, except up to one in four', async () => {
    const step = fc.constantFrom('new', 'recovered', 'gone', 'end')
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 9 }), fc.array(step, { maxLength: 40 }), async (running, steps) => {
        const groups = createResourceGroups({ running, queued: 1000 })
        const runners = createRunners(groups)
        const coming = steps.filter((one) => one === 'recovered' || one === 'gone').length
        const reservation = groups.reserve()
        reservation.expect(coming)
        const recovered: string[] = []
        const fresh: string[] = []
        let newsBefore = 0
        for (const [index, one] of steps.entries()) {
          if (one === 'end') runners.end()
          else if (one === 'gone') reservation.queryRecovered()
          else {
            const name = `${one} ${index}`
            ;(one === 'new' ? fresh : recovered).push(name)
            runners.enter(name, one === 'recovered')
            if (one === 'recovered') reservation.queryRecovered()
          }
          await settled()
          expect(runners.running).toBeLessThanOrEqual(running)
          const left =
            coming - steps.slice(0, index + 1).filter((step) => step === 'recovered' || step === 'gone').length
          const news = fresh.filter((name) => runners.admitted.includes(name)).length
          const waits = recovered.filter((name) => !runners.admitted.includes(name)).length
          // A recovered query waits only while all slots are taken.
          expect(waits === 0 || runners.running === running).toBe(true)
          // A new query beyond the quarter was admitted only if all recovered queries still had slots.
          if (news > newsBefore && runners.fresh > Math.floor(running / 4))
            expect(runners.running + left).toBeLessThanOrEqual(running)
          newsBefore = news
        }
        reservation.end()
        while (runners.running > 0) {
          runners.end()
          await settled()
        }
        const order = (kind: string) => runners.admitted.filter((name) => name.startsWith(kind))
        expect(order('recovered')).toEqual(recovered)
        expect(order('new')).toEqual(fresh)
      }),
      { numRuns: 60 },
    )
  })
})
