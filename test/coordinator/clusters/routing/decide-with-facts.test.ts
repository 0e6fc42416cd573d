import { describe, expect, it } from 'vitest'
import { decideWithFacts } from '../../../../src/coordinator/clusters/routing/decide-with-facts.ts'
import type { GroupCatalogs, RoutedStatement } from '../../../../src/coordinator/clusters/routing/route.ts'
import { readRoutingRules } from '../../../../src/coordinator/clusters/routing/routing-rules.ts'
import { routedStatement, targetsOf } from './routed-statement.ts'

const big = { to: 'group', group: 'big' }
const local = { to: 'local' }

/** Decides, and counts how often each fact was found out. */
async function decide(
  rules: readonly object[],
  given: {
    readonly bytes?: number
    readonly faults?: Readonly<Record<string, string>>
    readonly statement?: Partial<RoutedStatement>
    readonly targets?: Partial<GroupCatalogs>
  } = {},
) {
  const asked: string[] = []
  const { bytes: _, ...statement } = routedStatement(given.statement)
  const decision = await decideWithFacts(
    readRoutingRules(JSON.stringify({ rules })).rules,
    statement,
    { ...targetsOf({ big: ['hive', 'lake'], small: ['lake'] }), ...given.targets },
    {
      bytes: async () => (asked.push('bytes'), given.bytes),
      async mirrorFault(route) {
        const name = route.to === 'group' ? route.group : route.cluster
        asked.push(name)
        return given.faults?.[name]
      },
    },
  )
  return { decision, asked }
}

describe('A decision about a route', () => {
  const large = { name: 'large', match: { bytesOver: '1GB' }, route: { group: 'big' } }

  it('finds out nothing that its rules do not ask for', async () => {
    const { decision, asked } = await decide([{ ...large, match: { user: 'bob', bytesOver: '1GB' } }])
    expect(decision).toMatchObject({ route: local, rule: undefined })
    expect(asked).toEqual([])
  })

  it('finds out the size, and then compares the mirrored tables, each once', async () => {
    const { decision, asked } = await decide([large, { ...large, name: 'again' }], { bytes: 2 * 1024 ** 3 })
    expect(decision).toMatchObject({ route: big, rule: 'large', bytes: 2 * 1024 ** 3, skipped: [] })
    expect(asked).toEqual(['bytes', 'big'])
  })

  it('compares no tables if the statement is small', async () => {
    const { decision, asked } = await decide([large], { bytes: 5 })
    expect(decision).toMatchObject({ route: local, rule: undefined, bytes: 5 })
    expect(asked).toEqual(['bytes'])
  })

  it('continues with the next rule if the tables differ at a target', async () => {
    const rules = [large, { name: 'next', route: { group: 'small' } }]
    const { decision, asked } = await decide(rules, { bytes: 2 * 1024 ** 3, faults: { big: 'it differs' } })
    expect(decision).toMatchObject({
      route: { to: 'group', group: 'small' },
      rule: 'next',
      skipped: [{ rule: 'large', why: 'it differs' }],
    })
    expect(asked).toEqual(['bytes', 'big', 'small'])
  })

  it('compares no tables at a target that is away if the rule has a fallback', async () => {
    const targets = { isOpen: () => false }
    const rules = [{ name: 'r', route: { group: 'big' }, fallback: 'local' }]
    const { decision, asked } = await decide(rules, { faults: { big: 'not known' }, targets })
    expect(decision).toMatchObject({ route: big, rule: 'r', fallback: local, skipped: [] })
    expect(asked).toEqual([])
    const without = await decide([{ name: 'r', route: { group: 'big' } }], { faults: { big: 'not known' }, targets })
    expect(without.decision).toMatchObject({ route: local, skipped: [{ rule: 'r', why: 'not known' }] })
  })

  it('fails as the rules say, and with the error of a fact', async () => {
    const mixed = decide([], { statement: { catalogs: ['hive', 'memory'] } })
    await expect(mixed).rejects.toMatchObject({ errorName: 'NOT_SUPPORTED' })
    const failing = decideWithFacts(
      readRoutingRules(JSON.stringify({ rules: [large] })).rules,
      routedStatement(),
      targetsOf({ big: ['lake'] }),
      { bytes: () => Promise.reject(new Error('broken')), mirrorFault: async () => undefined },
    )
    await expect(failing).rejects.toThrow('broken')
  })
})

describe('A statement that EXPLAIN explains', () => {
  it('has the route of the statement itself', async () => {
    const rule = { name: 'r', match: { queryType: ['SELECT'] }, route: { group: 'big' } }
    const statement = { queryType: 'EXPLAIN', explains: 'SELECT' }
    expect((await decide([rule], { statement })).decision).toMatchObject({ route: big, rule: 'r' })
    const other = { ...statement, explains: 'INSERT' }
    expect((await decide([rule], { statement: other })).decision).toMatchObject({ route: local, rule: undefined })
  })
})
