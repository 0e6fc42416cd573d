import { describe, expect, it } from 'vitest'
import { decideRoute } from '../../../../src/coordinator/clusters/routing/decide-route.ts'
import {
  readRoutingRules,
  readRoutingRulesInSlices,
} from '../../../../src/coordinator/clusters/routing/routing-rules.ts'
import { routedStatement, targetsOf } from './routed-statement.ts'

const big = { name: 'big', route: { group: 'big' } }
const fileOf = (...rules: object[]) => JSON.stringify({ rules })

describe('The file of routing rules', () => {
  it('may have every key', () => {
    const match = {
      user: 'etl-.*',
      userGroup: 'data',
      source: 'airflow.*',
      clientTags: ['heavy'],
      queryType: ['select', 'INSERT'],
      catalogs: ['lake'],
      resourceGroup: 'all\\.etl',
      percent: 10,
      bytesOver: '10GB',
    }
    const { rules } = readRoutingRules(
      fileOf(
        { name: 'a', match, route: { group: 'big' }, fallback: 'local', unchecked: true },
        { name: 'b', route: { cluster: 'one' }, fallback: { group: 'small' } },
        { name: 'c', route: { reject: 'Ask the platform team' } },
        { name: 'd', route: 'local', unchecked: false, fallback: null },
      ),
    )
    expect(rules).toMatchObject([
      {
        name: 'a',
        match: { queryType: ['SELECT', 'INSERT'], percent: 10, bytesOver: 10 * 1024 ** 3 },
        route: { to: 'group', group: 'big' },
        fallback: { to: 'local' },
        unchecked: true,
      },
      { route: { to: 'cluster', cluster: 'one' }, fallback: { to: 'group', group: 'small' }, unchecked: false },
      { route: { to: 'reject', message: 'Ask the platform team' } },
      { route: { to: 'local' }, fallback: undefined },
    ])
    expect(rules[0]!.match.user!.matches('etl-7')).toBe(true)
    expect(rules[0]!.match.user!.matches('an etl-7')).toBe(false)
  })

  it.each([
    ['a text that is not JSON', '{', /^line 1: The file is not JSON/],
    ['a list', '[]', /^line 1: .*expected object/],
    ['another key', '{ "rules": [],\n"rule": [] }', /^line 2: .*rule/],
    ['a key that is there twice', '{ "rules": [],\n"rules": [] }', /^line 2: The key "rules" occurs twice/],
    ['a rule without a name', '{ "rules": [\n{ "route": "local" }] }', /^line 2: rules, 1, name: /],
    [
      'two rules of one name',
      '{ "rules": [{ "name": "a", "route": "local" },\n{\n"name": "a", "route": "local" }] }',
      /^line 3: rules, 2, name: The rule 'a' occurs twice/,
    ],
    [
      'another condition',
      '{ "rules": [{ "name": "a", "match": {\n"users": "b" }, "route": "local" }] }',
      /^line 2: rules, 1, match: .*users/,
    ],
    [
      'a pattern that is no expression',
      '{ "rules": [{ "name": "a", "match": {\n"source": "(" }, "route": "local" }] }',
      /^line 2: rules, 1, match, source: '\(' is not a supported regular expression/,
    ],
    [
      'an unknown query type',
      '{ "rules": [{ "name": "a", "match": {\n"queryType": ["READ"] }, "route": "local" }] }',
      /^line 2: rules, 1, match, queryType, 1: /,
    ],
    [
      'a size that is none',
      '{ "rules": [{ "name": "a", "match": {\n"bytesOver": "10" }, "route": "local" }] }',
      /^line 2: rules, 1, match, bytesOver: '10' is not a data size/,
    ],
    [
      'more than 100 percent',
      '{ "rules": [{ "name": "a", "match": {\n"percent": 101 }, "route": "local" }] }',
      /^line 2: rules, 1, match, percent: /,
    ],
    ['a rule without a route', '{ "rules": [\n{ "name": "a" }] }', /^line 2: rules, 1, route: A route is "local", or/],
    [
      'a route to two targets',
      '{ "rules": [{ "name": "a",\n"route": { "group": "b", "cluster": "c" } }] }',
      /^line 2: rules, 1, route: A route is "local", or an object with one of the keys group, cluster and reject/,
    ],
    [
      'a fallback that rejects',
      '{ "rules": [{ "name": "a", "route": { "group": "b" },\n"fallback": { "reject": "no" } }] }',
      /^line 2: rules, 1, fallback: A fallback cannot reject/,
    ],
    [
      'a fallback of a local route',
      '{ "rules": [{ "name": "a", "route": "local",\n"fallback": { "group": "b" } }] }',
      /^line 2: rules, 1, fallback: Only a rule that delegates can have it/,
    ],
    [
      'a fallback to the route itself',
      '{ "rules": [{ "name": "a", "route": { "group": "b" },\n"fallback": { "group": "b" } }] }',
      /^line 2: rules, 1, fallback: It is the same as the route/,
    ],
    [
      '"unchecked" for a local route',
      '{ "rules": [{ "name": "a", "route": "local",\n"unchecked": true }] }',
      /^line 2: rules, 1, unchecked: Only a rule that delegates can have it/,
    ],
  ])('is refused with the line of the error: %s', (_, text, message) =>
    expect(() => readRoutingRules(text)).toThrow(message),
  )

  it('gives the same rules when it is read in slices', async () => {
    const many = Array.from({ length: 350 }, (_, n) => ({
      name: `rule ${n}`,
      match: { user: n === 349 ? 'ana' : `u${n}.*`, ...(n % 2 === 0 ? { bytesOver: '1GB' } : {}) },
      route: n % 3 === 0 ? 'local' : { group: 'big' },
    }))
    const text = fileOf(...many, big)
    let slices = 0
    const read = await readRoutingRulesInSlices(text, async () => void slices++)
    expect(slices).toBe(5)
    const whole = readRoutingRules(text)
    expect(JSON.stringify(read)).toBe(JSON.stringify(whole))
    const ruleFor = ({ rules }: typeof read) =>
      decideRoute(rules, routedStatement({ user: 'ana' }), targetsOf({ big: ['lake'] })).rule
    expect([ruleFor(read), ruleFor(whole)]).toEqual(['rule 349', 'rule 349'])
  })
})
