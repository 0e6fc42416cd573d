import fc from 'fast-check'
import { expect, it } from 'vitest'
import { knownOwner } from '../../src/shared/limit-owner.ts'
import { HeldSlots } from '../../src/shared/held-slots.ts'

it('`HeldSlots` keeps a quarter of the slots from one owner, and takes slots from large owners for new ones', () => {
  const slots = new HeldSlots(100, 100)
  const lost: string[] = []
  const take = (name: string) => slots.take(knownOwner(name), () => lost.push(name))
  const count = (name: string, times: number) => Array.from({ length: times }, () => take(name)).filter(Boolean).length
  expect(count('a', 100)).toBe(76)
  for (const name of ['b', 'c', 'd']) count(name, 100)
  expect(lost).toEqual([])
  for (let index = 0; index < 30; index++) expect(take(`new ${index}`)).toBeDefined()
  expect(slots.size).toBe(100)
  expect(new Set(lost)).toEqual(new Set(['a']))
})

it('`HeldSlots` never gives more slots than it has, and frees a released slot only once', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), fc.boolean())), (steps) => {
      const slots = new HeldSlots(4, 3)
      const held = new Map<number, () => void>()
      const lost = new Set<number>()
      steps.forEach(([name, leaves], step) => {
        const may = slots.may(knownOwner(name))
        const leave = slots.take(knownOwner(name), () => lost.add(step))
        expect(leave !== undefined).toBe(may)
        if (leave) held.set(step, leave)
        if (leaves) {
          const [first] = held
          first?.[1]()
          first?.[1]()
          held.delete(first?.[0] ?? -1)
          lost.delete(first?.[0] ?? -1)
        }
        expect(slots.size).toBe(held.size - [...held.keys()].filter((one) => lost.has(one)).length)
        expect(slots.size).toBeLessThanOrEqual(4)
      })
    }),
  )
})
