import fc from 'fast-check'
import { afterEach, expect, it } from 'vitest'
import { ConfiguredGroups } from '../../../../src/coordinator/dispatch/groups/configured-groups.ts'
import { readGroupRules } from '../../../../src/coordinator/dispatch/groups/group-rules.ts'
import { choose } from '../../../../src/coordinator/dispatch/groups/rules-lookup.ts'
import type { Entrant, GroupSlot } from '../../../../src/coordinator/dispatch/resource-groups.ts'
import { entrantOf } from '../../../support/group-entrant.ts'

const own = { name: '${USER}', hardConcurrencyLimit: 1, maxQueued: 2 }

function rulesOf(
  subGroups: readonly object[],
  selectors: readonly object[] = [{ user: 'ana|ben', group: 'all.${USER}' }],
) {
  const all = { name: 'all', hardConcurrencyLimit: 9, maxQueued: 9, subGroups }
  return readGroupRules(JSON.stringify({ rootGroups: [all], selectors, cpuQuotaPeriod: '10s' }))
}

let groups: ConfiguredGroups
afterEach(() => groups.stop())

/** Creates groups over rules and a clock that the test changes. */
function bedOf(first = rulesOf([own])) {
  const now = { rules: first, ms: 0 }
  groups = new ConfiguredGroups({
    rules: () => now.rules,
    memory: () => 1000,
    clock: { monotonicMs: () => now.ms },
    draw: () => 0,
  })
  return now
}

const of = (user: string, more: Partial<Entrant> = {}): Entrant => entrantOf({ user, group: `all.${user}`, ...more })

/** The slot if it is already granted, otherwise 'waits'. */
async function slotNow({ slot }: { readonly slot: Promise<GroupSlot | undefined> }) {
  return Promise.race([slot, new Promise((resolve) => setImmediate(resolve, 'waits'))])
}

it('configured groups free the slot of a query when its signal aborts, even before the slot is used', async () => {
  bedOf()
  const end = new AbortController()
  expect(groups.tryEnter(of('ana', { signal: end.signal }))).toBeDefined()
  const second = groups.enter(of('ana'))
  const gone = new AbortController()
  const third = groups.enter(of('ana', { signal: gone.signal }))
  expect(await slotNow(second)).toBe('waits')
  gone.abort()
  expect(await third.slot).toBeUndefined()
  end.abort()
  expect(await slotNow(second)).toMatchObject({ group: 'all.ana' })
  expect(groups.figures()).toMatchObject([
    { group: 'all', running: 1, queued: 0, limits: { running: 9, queued: 9 } },
    { group: 'all.${USER}', running: 1, queued: 0, limits: { running: 1, queued: 2 } },
  ])
})

it('configured groups refuse a query without a selector, in a full queue or in a group with sub-groups', () => {
  bedOf(
    rulesOf(
      [own],
      [
        { user: 'top', group: 'all' },
        { user: 'ana', group: 'all.${USER}' },
      ],
    ),
  )
  expect(groups.groupOf(of('zoe').statement)).toBe('')
  expect(() => groups.enter(of('zoe'))).toThrow('No matching resource group found')
  expect(groups.tryEnter(of('zoe'))).toBeUndefined()
  expect(() => groups.enter(of('top'))).toThrow("Cannot add queries to 'all'. It is not a leaf group.")
  for (let index = 0; index < 3; index++) groups.enter(of('ana'))
  expect(() => groups.enter(of('ana'))).toThrow('Too many queued queries for "all.ana"')
})

it('configured groups start no new query during a recovery, and start recovered queries first', async () => {
  bedOf()
  const reservation = groups.reserve()
  reservation.expect(2)
  expect(groups.tryEnter(of('ana'))).toBeUndefined()
  const fresh = groups.enter(of('ana'))
  expect(fresh.queued.reason()).toContain('before the coordinator was restarted come first')
  const ran = groups.occupy(of('ana', { recovered: true }))
  reservation.queryRecovered()
  const waited = groups.enter(of('ana', { recovered: true }))
  reservation.queryRecovered()
  expect([await slotNow(fresh), await slotNow(waited)]).toEqual(['waits', 'waits'])
  ran.release()
  expect(await slotNow(waited)).toMatchObject({ group: 'all.ana' })
  expect(await slotNow(fresh)).toBe('waits')
})

it('configured groups choose the group of waiting queries again when the rules change, and call `moved`', async () => {
  const now = bedOf()
  groups.tryEnter(of('ana'))
  groups.tryEnter(of('ben'))
  const moves: string[] = []
  const ana = groups.enter(of('ana', { moved: ({ group }) => void moves.push(group) }))
  const ben = groups.enter(of('ben'))
  now.rules = rulesOf([{ name: 'team', hardConcurrencyLimit: 1, maxQueued: 0 }], [{ user: 'ana', group: 'all.team' }])
  groups.check()
  expect(moves).toEqual(['all.team'])
  expect(await slotNow(ana)).toMatchObject({ group: 'all.team' })
  await expect(ben.slot).rejects.toMatchObject({ errorName: 'QUERY_REJECTED' })
  expect(groups.stateOf(['all'])).toMatchObject({ running: 3, queued: 0 })
})

it('configured groups apply the limits of new rules to a busy group, for a name and for a template', async () => {
  const named = { name: 'ana', hardConcurrencyLimit: 1, maxQueued: 1 }
  const toName = [{ user: 'ana', group: 'all.ana' }]
  const two = { ...own, hardConcurrencyLimit: 2 }
  const now = bedOf(rulesOf([two]))
  const slots = [groups.tryEnter(of('ana')), groups.tryEnter(of('ana'))]
  const moves: string[] = []
  const waits = groups.enter(of('ana', { moved: ({ group }) => void moves.push(group) }))
  for (const [subGroups, selectors] of [
    [[named], toName],
    [[two, named], toName],
    // The name counts, although the selector uses the template.
    [[two, named], undefined],
  ] as const) {
    now.rules = rulesOf(subGroups, selectors)
    groups.check()
    expect(await slotNow(waits)).toBe('waits')
    expect(groups.stateOf(['all', 'ana'])).toMatchObject({ hardConcurrencyLimit: 1, maxQueued: 1, running: 2 })
    expect(groups.figures()).toContainEqual(expect.objectContaining({ group: 'all.ana', running: 2, queued: 1 }))
    expect(() => groups.enter(of('ana'))).toThrow('Too many queued queries')
  }
  slots[0]!.release()
  expect(await slotNow(waits)).toBe('waits')
  now.rules = rulesOf([two])
  groups.check()
  expect(await slotNow(waits)).toMatchObject({ group: 'all.ana' })
  expect(groups.stateOf(['all', 'ana'])).toMatchObject({ hardConcurrencyLimit: 2, maxQueued: 2, running: 2 })
  expect(moves).toEqual([])
})

it('configured groups apply the limits of the template in the selector, also to recovered running queries', () => {
  const templates = ['${USER}', '${SOURCE}'].map((name, at) => ({ ...own, name, hardConcurrencyLimit: at + 2 }))
  const now = bedOf(rulesOf(templates, [{ group: 'all.${SOURCE}' }]))
  const source = 'etl'
  const { statement } = of('ana')
  const fromEtl = of('etl', { statement: { ...statement, session: { ...statement.session, source } } })
  const limitNow = () => groups.stateOf(['all', 'etl'])?.hardConcurrencyLimit
  groups.occupy(fromEtl)
  expect(limitNow()).toBe(3)
  now.rules = rulesOf([{ ...own, name: 'etl' }], [{ group: 'all.etl' }])
  groups.check()
  expect(limitNow()).toBe(1)
  now.rules = rulesOf(templates, [{ group: 'all.${SOURCE}' }])
  groups.check()
  groups.tryEnter(fromEtl)
  expect(limitNow()).toBe(3)
})

it('configured groups admit no query to a group without a rule, and keep its running queries', async () => {
  const now = bedOf()
  const slot = groups.tryEnter(of('ana'))!
  now.rules = rulesOf([{ ...own, name: 'team' }], [{ group: 'all.team' }])
  groups.check()
  expect(groups.stateOf(['all', 'ana'])).toMatchObject({
    state: 'FULL',
    running: 1,
    hardConcurrencyLimit: 0,
    maxQueued: 0,
  })
  slot.release()
  expect(groups.stateOf(['all', 'ana'])).toBeUndefined()
})

it('configured groups count the CPU time of queries and reduce it with time', async () => {
  const now = bedOf(rulesOf([{ ...own, hardConcurrencyLimit: 5, hardCpuLimit: '10s' }]))
  const first = groups.tryEnter(of('ana', { usage: () => ({ cpuMillis: 12_000, memoryBytes: 0, scannedBytes: 0 }) }))!
  groups.check()
  const second = groups.enter(of('ana'))
  expect(second.queued.reason()).toBe(
    'resource group "all.ana" has used 12.00s of CPU, its hardCpuLimit is 10.00s; position 1',
  )
  first.release()
  now.ms = 2000
  groups.check()
  expect(await slotNow(second)).toBe('waits')
  now.ms = 3000
  groups.check()
  expect(await slotNow(second)).toMatchObject({ group: 'all.ana' })
})

const users = ['ana', 'ben', 'carla', 'don', 'eve', 'fay']
const drawnRules = fc
  .record({
    names: fc.subarray(users),
    template: fc.boolean(),
    selectors: fc.array(fc.constantFrom(...users, 'ana|don', 'e.*', '[b-d].*', '.*'), { maxLength: 8 }),
  })
  .map(({ names, template, selectors }) => {
    const limits = { hardConcurrencyLimit: 0, maxQueued: 10_000 }
    const groups = [...names, 'rest', ...(template ? ['${USER}'] : [])].map((name) => ({ name, ...limits }))
    const led = selectors.map((user) => {
      const group = names.includes(user) ? user : template ? '${USER}' : 'rest'
      return { user, group: `all.${group}` }
    })
    const all = { name: 'all', ...limits, subGroups: groups }
    return readGroupRules(JSON.stringify({ rootGroups: [all], selectors: led }))
  })

it('`choose` gives the result of the first matching selector in the file', () => {
  fc.assert(
    fc.property(drawnRules, fc.constantFrom(...users, 'zoe', 'constructor'), (rules, user) => {
      const { statement } = of(user)
      const first = rules.selectors.map((one) => one.choose(statement)).find((chosen) => chosen !== undefined)
      expect(choose(rules, statement)).toEqual(first ?? 'none')
    }),
  )
})

it('a change of rules that is applied in slices gives the same groups as a start with the new rules', async () => {
  await fc.assert(
    fc.asyncProperty(
      drawnRules,
      drawnRules,
      fc.infiniteStream(fc.constantFrom(...users)),
      async (one, other, userStream) => {
        const come = async (here: ConfiguredGroups, user: string) => {
          try {
            const group = here.groupOf(of(user).statement)
            return await here.enter(of(user, { group, recovered: true })).slot
          } catch {
            return 'refused'
          }
        }
        const names = [...userStream.take(420)]
        const now = bedOf(one)
        const led = names.filter((user) => groups.groupOf(of(user).statement) !== '')
        const slots = led.slice(0, -10).map((user) => come(groups, user))
        now.rules = other
        groups.check()
        // Queries that arrive now get a group by the old rules, and then by the new rules like the others.
        slots.push(...led.slice(-10).map((user) => come(groups, user)))
        for (const deadline = performance.now() + 60_000; groups.isDeciding && performance.now() < deadline;)
          await new Promise((resolve) => setImmediate(resolve))
        const changed = groups
        bedOf(other)
        const fresh = led.filter((user) => groups.groupOf(of(user).statement) !== '')
        for (const user of fresh) void come(groups, user)
        expect(changed.figures()).toEqual(groups.figures())
        const refused = (await Promise.all(slots.map((slot) => slotNow({ slot } as never)))).filter(
          (each) => (each as unknown) === 'refused',
        )
        expect(refused).toHaveLength(led.length - fresh.length)
        changed.stop()
        groups.stop()
      },
    ),
    { numRuns: 40 },
  )
})
