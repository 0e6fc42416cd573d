import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decideRoute } from '../../../../src/coordinator/clusters/routing/decide-route.ts'
import { readRoutingRules } from '../../../../src/coordinator/clusters/routing/routing-rules.ts'
import type { GroupCatalogs, RoutedStatement } from '../../../../src/coordinator/clusters/routing/route.ts'
import { routedStatement, targetsOf } from './routed-statement.ts'

const targets = targetsOf({ big: ['hive', 'lake'], small: ['pg'] })

function decide(
  rules: readonly object[],
  changes: Partial<RoutedStatement> = {},
  there: GroupCatalogs = targets,
): ReturnType<typeof decideRoute> {
  return decideRoute(readRoutingRules(JSON.stringify({ rules })).rules, routedStatement(changes), there)
}

/** A rule that sends statements to the group `big`. */
const rule = (match: object = {}, more: object = {}) => ({ name: 'r', match, route: { group: 'big' }, ...more })
const big = { to: 'group', group: 'big' } as const
const local = { to: 'local' } as const

describe('The conditions of a routing rule', () => {
  it.each([
    [{}, true],
    [{ user: 'an.' }, true],
    [{ user: 'an' }, false],
    [{ userGroup: 'st.*' }, true],
    [{ userGroup: 'others' }, false],
    [{ source: 'cli|jdbc' }, true],
    [{ source: '' }, false],
    [{ clientTags: ['b'] }, true],
    [{ clientTags: ['b', 'c'] }, false],
    [{ queryType: ['INSERT', 'select'] }, true],
    [{ queryType: ['INSERT'] }, false],
    [{ resourceGroup: 'all\\..*' }, true],
    [{ resourceGroup: 'all' }, false],
    [{ catalogs: ['hive', 'lake'] }, true],
    [{ catalogs: ['hive'] }, false],
    [{ percent: 100 }, true],
    [{ percent: 1e-9 }, false],
    [{ bytesOver: '4GB' }, true],
    [{ bytesOver: '5GB' }, false],
    [{ user: null, clientTags: null, queryType: null, percent: null, bytesOver: null }, true],
    [{ user: 'ana', source: 'other' }, false],
  ])('%j fit the sample statement: %s', (match, fits) => {
    expect(decide([rule(match)])).toEqual({
      route: fits ? big : local,
      rule: fits ? 'r' : undefined,
      fallback: undefined,
      grade: 'analysed',
      ...('bytesOver' in match && match.bytesOver !== null ? { bytes: 5 * 1024 ** 3 } : {}),
      skipped: [],
    })
  })

  it('treat a missing source as an empty text', () => {
    expect(decide([rule({ source: '' })], { source: undefined }).rule).toBe('r')
  })

  it('do not fit a text without a query type if they name query types', () => {
    expect(decide([rule({ queryType: ['SELECT'] })], { queryType: undefined }).rule).toBeUndefined()
  })

  it('do not fit a statement with unknown bytes if they limit the bytes', () => {
    const decision = decide([rule({ bytesOver: '0B' })], { bytes: () => undefined })
    expect(decision).toMatchObject({ rule: undefined, route: local })
    expect(decision).not.toHaveProperty('bytes')
  })

  it('count the bytes at most once, and only if all other conditions hold', () => {
    let counts = 0
    const bytes = () => {
      counts++
      return 1
    }
    decide([rule({ user: 'bob', bytesOver: '1B' })], { bytes })
    expect(counts).toBe(0)
    const other = { name: 's', match: { bytesOver: '2B' }, route: 'local' }
    expect(decide([rule({ bytesOver: '1B' }), other], { bytes }).bytes).toBe(1)
    expect(counts).toBe(1)
  })
})

describe('A percentage of users', () => {
  const users = Array.from({ length: 2_000 }, (_, n) => `user ${n}`)
  const chosen = (percent: number, name = 'canary') => {
    const { rules } = readRoutingRules(JSON.stringify({ rules: [rule({ percent }, { name })] }))
    return users.filter((user) => decideRoute(rules, routedStatement({ user }), targets).rule === name)
  }

  it('is about so many users', () => {
    for (const percent of [5, 10, 50]) {
      const part = (100 * chosen(percent).length) / users.length
      expect(part).toBeGreaterThan(percent * 0.6)
      expect(part).toBeLessThan(percent * 1.4)
    }
  })

  it('keeps its users when it grows, whatever else the statements have', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.double({ min: 0.1, max: 100, noNaN: true }),
        fc.double({ min: 0.1, max: 100, noNaN: true }),
        fc.string(),
        (user, one, other, source) => {
          const [low, high] = [Math.min(one, other), Math.max(one, other)]
          const fits = (percent: number, changes: Partial<RoutedStatement>) =>
            decide([rule({ percent })], { user, ...changes }).rule === 'r'
          if (fits(low, {})) expect(fits(high, {})).toBe(true)
          expect(fits(low, { source, catalogs: [], queryType: 'INSERT' })).toBe(fits(low, {}))
        },
      ),
    )
  })

  it('chooses other users for another rule', () => {
    const one = new Set(chosen(50, 'one'))
    const both = chosen(50, 'two').filter((user) => one.has(user)).length
    expect(both / users.length).toBeGreaterThan(0.2)
    expect(both / users.length).toBeLessThan(0.3)
  })
})

describe('A statement over a catalog that only this server answers', () => {
  const reject = { name: 'no', match: { catalogs: ['system'] }, route: { reject: 'Ask' } }

  it('is rejected as the rules say, and no other target takes it', () => {
    const catalogs = ['lake', 'system']
    expect(decide([reject], { catalogs })).toMatchObject({ route: { to: 'reject' }, rule: 'no' })
    const skipped = [{ rule: 'r', why: "only this server answers the catalog 'system'" }]
    for (const fallback of [{}, { fallback: 'local' }])
      expect(decide([rule({}, fallback), reject], { catalogs })).toMatchObject({
        route: local,
        rule: undefined,
        fallback: undefined,
        skipped,
      })
  })

  it('is rejected by a later rule if the other catalogs are not at the target of an earlier rule', () => {
    const decision = decide([rule(), reject], { catalogs: ['memory', 'system'] })
    expect(decision).toMatchObject({
      route: { to: 'reject' },
      skipped: [{ rule: 'r', why: "group big has no catalog 'memory'" }],
    })
  })

  it('runs here without a rule, whatever its other catalogs are', () => {
    for (const catalogs of [['system'], ['jmx', 'hive'], ['system', 'hive', 'pg']])
      expect(decide([], { catalogs, unresolved: true })).toMatchObject({ route: local, rule: undefined, skipped: [] })
  })
})

describe('A rule whose target cannot take the statement', () => {
  it.each([
    [{ group: 'small' }, "group small has no catalog 'lake'"],
    [{ cluster: 'small-1' }, "cluster small-1 has no catalog 'lake'"],
    [{ group: 'gone' }, 'there is no group gone'],
    [{ cluster: 'gone' }, 'there is no cluster gone'],
  ])('is skipped with the reason: %j', (route, why) => {
    expect(decide([{ name: 'first', route }, rule()])).toMatchObject({
      rule: 'r',
      route: big,
      skipped: [{ rule: 'first', why }],
    })
  })

  it('is skipped if it is local and this server lacks a catalog', () => {
    const first = { name: 'first', route: 'local' }
    expect(decide([first], { catalogs: ['hive', 'pg2', 'lake'] })).toMatchObject({
      rule: undefined,
      skipped: [{ rule: 'first', why: "this server has no catalogs 'hive', 'pg2'" }],
    })
  })

  it('is skipped if the statement writes a catalog that the target only reads', () => {
    const insert = { queryType: 'INSERT', catalogs: ['lake', 'hive'], written: ['lake'] }
    expect(() => decide([rule()], insert)).toThrow(
      "Nothing can run a statement over the catalogs 'lake' (this server, group big), 'hive' (group big): group big only reads the catalog 'lake'. The rule 'r' was skipped: group big only reads the catalog 'lake'",
    )
    expect(decide([rule()], { ...insert, written: ['hive'] }).route).toEqual(big)
  })

  it('is skipped if a mirrored table differs there, and only if the statement uses a mirror', () => {
    const differs = { ...targets, mirrorFault: () => "the table 'lake.a.b' has other columns there" }
    expect(decide([rule()], {}, differs)).toMatchObject({
      route: local,
      skipped: [{ rule: 'r', why: "the table 'lake.a.b' has other columns there" }],
    })
    expect(decide([rule()], { catalogs: ['hive'] }, differs)).toMatchObject({ rule: 'r', skipped: [] })
  })

  it('is not recorded as skipped if it does not fit', () => {
    expect(decide([{ ...rule({ user: 'bob' }), route: { group: 'gone' } }]).skipped).toEqual([])
  })
})

describe('A fallback', () => {
  it('is part of the decision', () => {
    expect(decide([rule({}, { fallback: 'local' })])).toMatchObject({ route: big, fallback: local, skipped: [] })
  })

  it('does not apply, with the reason, if it cannot take the statement', () => {
    expect(decide([rule({}, { fallback: { group: 'small' } })])).toMatchObject({
      rule: 'r',
      route: big,
      fallback: undefined,
      skipped: [{ rule: 'r', why: "its fallback does not apply: group small has no catalog 'lake'" }],
    })
  })
})

describe('A statement that no rule routes', () => {
  it.each([
    ['without tables runs here', [], local],
    ['over local tables runs here, also over mirrored ones', ['lake', 'memory'], local],
    ['over tables of one group goes there', ['hive'], big],
    ['over tables of one group and its mirrors goes there', ['hive', 'lake'], big],
    ['over an unknown catalog runs here, where the analysis reports it', ['nowhere', 'hive'], local],
  ])('%s', (_, catalogs, route) => {
    expect(decide([], { catalogs })).toMatchObject({ route, rule: undefined, fallback: undefined, skipped: [] })
  })

  it('fails if two groups have its tables', () => {
    const two = targetsOf({ big: ['hive', 'lake'], blue: ['hive'] })
    expect(() => decide([], { catalogs: ['hive'] }, two)).toThrow(
      expect.objectContaining({
        errorName: 'AMBIGUOUS_NAME',
        message: "The groups 'big', 'blue' have the catalog 'hive'. A routing rule must choose one of them",
      }),
    )
    expect(decide([], { catalogs: ['hive', 'lake'] }, two).route).toEqual(big)
  })

  it('fails if its tables are in several places, and the error names the catalogs', () => {
    expect(() => decide([rule()], { catalogs: ['hive', 'memory', 'pg'] })).toThrow(
      expect.objectContaining({
        errorName: 'NOT_SUPPORTED',
        message:
          "Nothing can run a statement over the catalogs 'hive' (group big), 'memory' (this server), 'pg' (group small). The rule 'r' was skipped: group big has no catalogs 'memory', 'pg'",
      }),
    )
  })
})

describe('A statement whose tables cannot be found out', () => {
  const unresolved = { unresolved: true, catalogs: ['hive'] }

  it('is delegated by a rule with "unchecked": true', () => {
    expect(decide([rule({}, { unchecked: true })], unresolved)).toMatchObject({ route: big, grade: 'unchecked' })
  })

  it('is not delegated by another rule', () => {
    expect(() => decide([rule()], unresolved)).toThrow(
      expect.objectContaining({
        errorName: 'NOT_SUPPORTED',
        message:
          'This server cannot check what the statement does with the catalog \'hive\'. Only a routing rule with "unchecked": true can send it to a cluster. The rule \'r\' was skipped: the statement cannot be checked, and the rule does not have "unchecked": true',
      }),
    )
    expect(decide([rule()], { unresolved: true, catalogs: [] })).toMatchObject({
      route: local,
      grade: 'analysed',
      skipped: [{ rule: 'r' }],
    })
  })

  it('can be rejected, and run here, by any rule', () => {
    const no = { name: 'no', route: { reject: 'Ask' } }
    expect(decide([no], unresolved).route).toEqual({ to: 'reject', message: 'Ask' })
    expect(decide([{ name: 'here', route: 'local' }], { unresolved: true }).rule).toBe('here')
  })
})

describe('The decision', () => {
  const names = ['hive', 'lake', 'memory', 'pg']
  const catalogs = fc.subarray(names)
  const route = fc.constantFrom(
    'local',
    { group: 'big' },
    { group: 'small' },
    { cluster: 'big-1' },
    { group: 'gone' },
    { reject: 'no' },
  )
  const rules = fc
    .array(
      fc.record({
        match: fc.record(
          {
            user: fc.constantFrom('ana', 'bob', '.*'),
            catalogs: fc.subarray(names, { minLength: 1 }),
            bytesOver: fc.constantFrom('1GB', '9GB'),
          },
          { requiredKeys: [] },
        ),
        route,
      }),
      { maxLength: 8 },
    )
    .map((all) => all.map((each, index) => ({ name: `rule ${index}`, ...each })))
  const groups = fc.record({ big: catalogs, small: catalogs })

  it('is that of the first rule that fits and whose target has all catalogs, as a simple model says', () => {
    fc.assert(
      fc.property(rules, catalogs, fc.constantFrom(undefined, 5 * 1024 ** 3), groups, (all, used, bytes, given) => {
        const hasAll = (having: readonly string[] | undefined) => used.every((one) => having?.includes(one) ?? false)
        const targetHasAll = (to: (typeof all)[number]['route']): boolean => {
          if (typeof to === 'string') return hasAll(['lake', 'memory'])
          if ('reject' in to) return true
          return 'group' in to ? to.group in given && hasAll(given[to.group as 'big']) : hasAll(given.big)
        }
        const fitting = all.filter(
          ({ match }) =>
            match.user !== 'bob' &&
            (match.catalogs?.some((one) => used.includes(one)) ?? true) &&
            (match.bytesOver === undefined || (bytes !== undefined && match.bytesOver === '1GB')),
        )
        const deciding = fitting.find((each) => targetHasAll(each.route))
        const before = deciding ? fitting.slice(0, fitting.indexOf(deciding)) : fitting
        const decision = outcomeOf(() => decide(all, { catalogs: used, bytes: () => bytes }, targetsOf(given)))
        if (deciding)
          expect(decision).toMatchObject({ rule: deciding.name, skipped: before.map(({ name }) => ({ rule: name })) })
        else if (used.every((one) => ['lake', 'memory'].includes(one)))
          expect(decision).toMatchObject({
            rule: undefined,
            route: local,
            skipped: before.map(({ name }) => ({ rule: name })),
          })
        else {
          const able = Object.entries(given).filter(([, having]) => hasAll(having))
          const isUnknown = used.some((one) => !['lake', 'memory', ...given.big, ...given.small].includes(one))
          if (isUnknown) expect(decision).toMatchObject({ rule: undefined, route: local })
          else if (able.length === 1) expect(decision).toMatchObject({ rule: undefined, route: { group: able[0]![0] } })
          else expect(decision).toMatchObject({ errorName: able.length === 0 ? 'NOT_SUPPORTED' : 'AMBIGUOUS_NAME' })
        }
      }),
      { numRuns: 300 },
    )
  })

  it('never sends a statement to a target that lacks a catalog or that cannot write it', () => {
    fc.assert(
      fc.property(rules, catalogs, catalogs, fc.boolean(), groups, (all, used, changed, unresolved, given) => {
        const there = targetsOf(given)
        const written = changed.filter((one) => used.includes(one))
        const decision = outcomeOf(() => decide(all, { catalogs: used, written, unresolved }, there))
        if (!('route' in decision)) return
        const { route: to } = decision
        if (to.to !== 'group' && to.to !== 'cluster') return
        expect(unresolved).toBe(false)
        const having = to.to === 'group' ? there.groups.get(to.group)! : there.clusters.get(to.cluster)!
        expect(used.filter((one) => !having.own.has(one) && !having.mirrors.has(one))).toEqual([])
        expect(written.filter((one) => having.mirrors.has(one))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })
})

/** The decision, or the error. */
function outcomeOf(run: () => ReturnType<typeof decideRoute>): ReturnType<typeof decideRoute> | { errorName: string } {
  try {
    return run()
  } catch (error) {
    return error as { errorName: string }
  }
}
