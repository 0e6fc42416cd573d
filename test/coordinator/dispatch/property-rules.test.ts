import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  readPropertyRules,
  readPropertyRulesInSlices,
  ruledSession,
} from '../../../src/coordinator/dispatch/property-rules.ts'
import type { QuerySession } from '../../../src/coordinator/query/stream/events.ts'
import { analyze, session as front, shopMetadata } from '../../support/front-end.ts'
import { sampleData } from '../../support/query-events.ts'

const sent: QuerySession = { ...sampleData.QueryCreated.session, user: 'ana', source: 'cli', clientTags: ['a', 'b'] }

/** The session after the rules. */
function held(rules: readonly object[], session: QuerySession = sent, group = 'global.adhoc', queryType = 'SELECT') {
  return ruledSession(
    readPropertyRules(JSON.stringify(rules)),
    { session, queryType: () => queryType },
    { group, digest: 'd' },
  )(session)
}
const set = (value: string, more: object = {}) => ({ sessionProperties: { query_max_run_time: value }, ...more })

describe('The conditions of a property rule', () => {
  it.each([
    [{}, true],
    [{ user: 'an.' }, true],
    [{ user: 'an' }, false],
    [{ source: 'cli|jdbc' }, true],
    [{ source: '' }, false],
    [{ group: 'global\\..*' }, true],
    [{ group: 'global' }, false],
    [{ queryType: 'select' }, true],
    [{ queryType: 'INSERT' }, false],
    [{ clientTags: ['b'] }, true],
    [{ clientTags: ['b', 'c'] }, false],
    [{ user: 'ana', source: 'cli', group: 'global.adhoc', queryType: 'SELECT', clientTags: ['a', 'b'] }, true],
    [{ user: 'ana', source: 'other' }, false],
    [{ user: null, clientTags: null, queryType: null, overrideSessionProperties: null }, true],
  ])('%j match the sample session: %s', (asks, fits) => {
    expect(held([set('1h', asks)]).properties['query_max_run_time']).toBe(fits ? '1h' : undefined)
  })

  it('match a session without a source if they ask for an empty source', () => {
    const { source: _, ...nameless } = sent
    expect(held([set('1h', { source: '' })], nameless).properties).toEqual({ query_max_run_time: '1h' })
  })
})

describe('The value of a ruled property', () => {
  const client = { ...sent, properties: { query_max_run_time: '2h', spill_enabled: 'true' } }

  it('comes from the client, or else from the last matching rule', () => {
    const rules = [set('1h'), { sessionProperties: { query_priority: 5 } }, set('3h')]
    expect(held(rules)).toMatchObject({
      properties: { query_max_run_time: '3h', query_priority: '5' },
      propertyRules: { digest: 'd', given: ['query_max_run_time', 'query_priority'], fixed: [], overridden: {} },
    })
    expect(held(rules, client)).toMatchObject({
      properties: { query_max_run_time: '2h', spill_enabled: 'true', query_priority: '5' },
      propertyRules: { given: ['query_priority'] },
    })
  })

  it('comes from the last matching rule when one of the rules overrides the client', () => {
    expect(held([set('1h', { overrideSessionProperties: true }), set('3h')], client)).toMatchObject({
      properties: { query_max_run_time: '3h' },
      propertyRules: { fixed: ['query_max_run_time'], overridden: { query_max_run_time: '2h' } },
    })
  })

  it('equals the value of a simple model for any rules and properties', () => {
    const value = fc.constantFrom('1h', '2h', '3h')
    const name = fc.constantFrom('query_max_run_time', 'query_max_cpu_time', 'query_max_planning_time')
    const rule = fc.record({
      user: fc.constantFrom('ana', 'bob', '.*'),
      sessionProperties: fc.dictionary(name, value),
      overrideSessionProperties: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 8 }), fc.dictionary(name, value), (rules, properties) => {
        const fitting = rules.filter(({ user }) => user !== 'bob')
        const all = held(rules, { ...sent, properties }).properties
        for (const each of ['query_max_run_time', 'query_max_cpu_time', 'query_max_planning_time']) {
          const setting = fitting.filter(({ sessionProperties }) => sessionProperties[each] !== undefined)
          const ruled = setting.at(-1)?.sessionProperties[each]
          const isFixed = setting.some(({ overrideSessionProperties }) => overrideSessionProperties)
          expect(all[each]).toBe(isFixed ? ruled : (properties[each] ?? ruled))
        }
      }),
    )
  })
})

describe('The file of property rules', () => {
  it.each([
    ['{}', /^line 1: .*expected array/],
    ['[\n{}]', /^line 2: 1, sessionProperties: /],
    ['[{\n"user": "(",\n"sessionProperties": {}}]', /^line 2: 1, user: '\('/],
    [
      '[{ "sessionProperties": {\n"query_max_cpu_time": "1e308d"}}]',
      /^line 2: .*query_max_cpu_time: duration is not a valid/,
    ],
    ['[{ "sessionProperties": {}, "users": "a" }]', /^line 1: /],
    ['[{ "sessionProperties": { "a": null } }]', /^line 1: 1, sessionProperties, a: /],
    ['[{ "sessionProperties": {"a": "1", "a": "2"} }]', /^line 1: The key "a" occurs twice/],
    ['[', /^line 1: The file is not JSON/],
  ])('is refused with the line of the error: %j', (text, message) =>
    expect(() => readPropertyRules(text)).toThrow(message),
  )

  it('gives the same rules when it is read in slices', async () => {
    const many = Array.from({ length: 350 }, (_, n) => set(`${n + 1}s`, { user: n % 3 === 0 ? 'ana' : `u${n}` }))
    const text = JSON.stringify([...many, { sessionProperties: { no_such_property: 'x' } }])
    let slices = 0
    const read = await readPropertyRulesInSlices(text, async () => void slices++)
    expect(slices).toBeGreaterThanOrEqual(5)
    const whole = readPropertyRules(text)
    expect(JSON.stringify(read)).toBe(JSON.stringify(whole))
    const of = (rules: typeof read) =>
      ruledSession(rules, { session: sent, queryType: () => 'SELECT' }, { group: 'g', digest: 'd' })(sent)
    expect(of(read)).toEqual(of(whole))
    expect(of(read).properties['query_max_run_time']).toBe('349s')
  })

  it('reports properties without effect', () => {
    const text = '[{ "sessionProperties": { "lake.x": 1, "spill_enabled": true, "query_priority": 2 } }]'
    expect(readPropertyRules(text)).toMatchObject({ withoutEffect: ['lake.x', 'spill_enabled'] })
  })
})

describe('A statement under property rules', () => {
  const ruled = held([set('1h', { overrideSessionProperties: true }), { sessionProperties: { spill_enabled: true } }], {
    ...sent,
    properties: { query_max_run_time: '2h' },
  })
  const warned = async (sql: string) => {
    const { properties, propertyRules } = ruled
    const analyzed = await analyze(sql, shopMetadata(), { ...front, properties, propertyRules: propertyRules! })
    return { messages: analyzed.warnings.map(({ message }) => message), analyzed }
  }
  const fixed = "Session property 'query_max_run_time' is fixed here: 1h holds"

  it('gets a warning for an overridden property of the client, and none for a property that a rule sets', async () => {
    expect((await warned('SELECT 1')).messages).toEqual([fixed])
  })

  it.each([
    ["SET SESSION query_max_run_time = '9h'", [fixed, fixed]],
    ["WITH SESSION query_max_run_time = '9h' SELECT 1", [fixed, fixed]],
  ])('gets a warning and no change of a fixed property: %s', async (sql, messages) => {
    const { messages: reported, analyzed } = await warned(sql)
    expect(reported).toEqual(messages)
    if (analyzed.kind === 'query') expect(analyzed.properties).toEqual({})
  })
})
