import { afterEach, expect, it } from 'vitest'
import { ConfiguredGroups } from '../../../../src/coordinator/dispatch/groups/configured-groups.ts'
import { readGroupRules } from '../../../../src/coordinator/dispatch/groups/group-rules.ts'
import type { Entrant, GroupPlace } from '../../../../src/coordinator/dispatch/resource-groups.ts'
import { entrantOf } from '../../../support/group-entrant.ts'

const own = { name: '${USER}', hardConcurrencyLimit: 1, maxQueued: 2 }

function rulesOf(subGroup: object, selectors: readonly object[] = [{ user: 'ana|ben', group: 'all.${USER}' }]) {
  const all = { name: 'all', hardConcurrencyLimit: 9, maxQueued: 9, subGroups: [subGroup] }
  return readGroupRules(JSON.stringify({ rootGroups: [all], selectors, cpuQuotaPeriod: '10s' }))
}

let groups: ConfiguredGroups
afterEach(() => groups.stop())

/** Groups by rules and a time that the test changes. */
function bedOf(first = rulesOf(own)) {
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

/** The place that is there by now. */
async function placeNow({ place }: { readonly place: Promise<GroupPlace | undefined> }) {
  return Promise.race([place, new Promise((resolve) => setImmediate(resolve, 'waits'))])
}

it('gives a place back when its query ends, taken in hand or not', async () => {
  bedOf()
  const end = new AbortController()
  expect(groups.tryEnter(of('ana', { signal: end.signal }))).toBeDefined()
  const second = groups.enter(of('ana'))
  const gone = new AbortController()
  const third = groups.enter(of('ana', { signal: gone.signal }))
  expect(await placeNow(second)).toBe('waits')
  gone.abort()
  expect(await third.place).toBeUndefined()
  end.abort()
  expect(await placeNow(second)).toMatchObject({ group: 'all.ana' })
  expect(groups.figures()).toMatchObject([
    { group: 'all', running: 1, queued: 0, limits: { running: 9, queued: 9 } },
    { group: 'all.${USER}', running: 1, queued: 0, limits: { running: 1, queued: 2 } },
  ])
})

it('turns away whom no selector takes, whose queue is full, and who is no leaf', () => {
  bedOf(
    rulesOf(own, [
      { user: 'top', group: 'all' },
      { user: 'ana', group: 'all.${USER}' },
    ]),
  )
  expect(groups.groupOf(of('zoe').statement)).toBe('')
  expect(() => groups.enter(of('zoe'))).toThrow('No matching resource group found')
  expect(groups.tryEnter(of('zoe'))).toBeUndefined()
  expect(() => groups.enter(of('top'))).toThrow("Cannot add queries to 'all'. It is not a leaf group.")
  for (let index = 0; index < 3; index++) groups.enter(of('ana'))
  expect(() => groups.enter(of('ana'))).toThrow('Too many queued queries for "all.ana"')
})

it('lets nobody start while those of the coordinator before come, and those go first', async () => {
  bedOf()
  const reservation = groups.reserve()
  reservation.expect(2)
  expect(groups.tryEnter(of('ana'))).toBeUndefined()
  const fresh = groups.enter(of('ana'))
  expect(fresh.queued.reason()).toContain('before the coordinator was restarted come first')
  const ran = groups.occupy(of('ana', { recovered: true }))
  reservation.came()
  const waited = groups.enter(of('ana', { recovered: true }))
  reservation.came()
  expect([await placeNow(fresh), await placeNow(waited)]).toEqual(['waits', 'waits'])
  ran.release()
  expect(await placeNow(waited)).toMatchObject({ group: 'all.ana' })
  expect(await placeNow(fresh)).toBe('waits')
})

it('decides again who waits when other rules are in force, and tells him where he is', async () => {
  const now = bedOf()
  groups.tryEnter(of('ana'))
  groups.tryEnter(of('ben'))
  const moves: string[] = []
  const ana = groups.enter(of('ana', { moved: ({ group }) => void moves.push(group) }))
  const ben = groups.enter(of('ben'))
  now.rules = rulesOf({ name: 'team', hardConcurrencyLimit: 1, maxQueued: 0 }, [{ user: 'ana', group: 'all.team' }])
  groups.look()
  expect(moves).toEqual(['all.team'])
  expect(await placeNow(ana)).toMatchObject({ group: 'all.team' })
  await expect(ben.place).rejects.toMatchObject({ errorName: 'QUERY_REJECTED' })
  expect(groups.stateOf(['all'])).toMatchObject({ running: 3, queued: 0 })
})

it('counts what queries use, and forgets it with the time', async () => {
  const now = bedOf(rulesOf({ ...own, hardConcurrencyLimit: 5, hardCpuLimit: '10s' }))
  const first = groups.tryEnter(of('ana', { usage: () => ({ cpuMillis: 12_000, memoryBytes: 0, scannedBytes: 0 }) }))!
  groups.look()
  const second = groups.enter(of('ana'))
  expect(second.queued.reason()).toBe(
    'resource group "all.ana" has used 12.00s of CPU, its hardCpuLimit is 10.00s; position 1',
  )
  first.release()
  now.ms = 2000
  groups.look()
  expect(await placeNow(second)).toBe('waits')
  now.ms = 3000
  groups.look()
  expect(await placeNow(second)).toMatchObject({ group: 'all.ana' })
})
