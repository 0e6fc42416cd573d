import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { objectRulesOf } from '../../../src/security/rules/object-rules.ts'
import { readRules } from '../../../src/security/rules/read-rules.ts'
import type { CatalogAccess, TablePrivilege } from '../../../src/shared/object-rights.ts'

const rights = (rules: object, user: string, groups: readonly string[] = []) =>
  objectRulesOf(readRules(JSON.stringify(rules)))({ user, groups })

const USERS = ['ada', 'bob', 'eve']
const CATALOGS = ['lake', 'hive', 'system']
const SCHEMAS = ['a', 'b']
const TABLES = ['t', 'u']

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const subject = {
  user: optional(fc.constantFrom('ada', 'bob|eve', '.*')),
  group: optional(fc.constantFrom('staff', 'st.*', 'nobody')),
  role: fc.option(fc.constantFrom('admin'), { nil: undefined, freq: 9 }),
}
const catalog = optional(fc.constantFrom('lake', 'hive|lake', '(?i)LAKE'))
const schema = optional(fc.constantFrom('a', 'a|b'))
const table = optional(fc.constantFrom('t', '[tu]'))
const access = fc.constantFrom('all', 'READ-ONLY', 'none', 'owner', true, false)
const privileges = fc.subarray(['SELECT', 'INSERT', 'OWNERSHIP', 'GRANT_SELECT'] as const)
const rules = fc.record({
  catalogs: optional(fc.array(fc.record({ ...subject, catalog, allow: access }), { maxLength: 4 })),
  schemas: optional(fc.array(fc.record({ ...subject, catalog, schema, owner: fc.boolean() }), { maxLength: 3 })),
  tables: optional(fc.array(fc.record({ ...subject, catalog, schema, table, privileges }), { maxLength: 4 })),
  catalog_session_properties: optional(
    fc.array(fc.record({ ...subject, catalog, allow: fc.boolean() }), { maxLength: 2 }),
  ),
})

/** A plain model of the rules in the documentation of Trino. */
function model(sections: Readonly<Record<string, readonly Record<string, unknown>[] | undefined>>, user: string) {
  const matches = (regex: unknown, names: readonly string[]): boolean => {
    if (regex === undefined) return true
    const text = String(regex)
    const plain = text.replace('(?i)', '')
    return names.some((name) => new RegExp(`^(?:${plain})$`, text === plain ? '' : 'i').test(name))
  }
  const first = (section: string, names: Readonly<Record<string, string>>) =>
    sections[section]?.find(
      (rule) =>
        rule['role'] === undefined &&
        matches(rule['user'], [user]) &&
        matches(rule['group'], ['staff']) &&
        Object.entries(names).every(([key, name]) => matches(rule[key], [name])),
    )
  const level = (name: string): CatalogAccess => {
    if (sections['catalogs'] === undefined) return 'all'
    const allow = first('catalogs', { catalog: name })?.['allow'] ?? (name === 'system' ? 'all' : 'none')
    return typeof allow === 'boolean' ? (allow ? 'all' : 'none') : (String(allow).toLowerCase() as CatalogAccess)
  }
  return {
    level,
    owns: (name: string, of: string) =>
      ['all', 'owner'].includes(level(name)) &&
      (sections['schemas'] === undefined || first('schemas', { catalog: name, schema: of })?.['owner'] === true),
    privileges: (name: string, of: string, named: string): readonly TablePrivilege[] =>
      sections['tables'] === undefined
        ? ['SELECT', 'INSERT', 'DELETE', 'UPDATE', 'OWNERSHIP', 'GRANT_SELECT']
        : ((first('tables', { catalog: name, schema: of, table: named })?.['privileges'] ?? []) as TablePrivilege[]),
  }
}

describe('Rights over catalogs and their objects', () => {
  it('are those of the first matching rule of each section', () => {
    fc.assert(
      fc.property(rules, fc.constantFrom(...USERS), (given, user) => {
        const own = rights(given, user, ['staff'])
        const expected = model(given, user)
        for (const name of CATALOGS) {
          expect(own.catalog(name)).toBe(expected.level(name))
          for (const of of SCHEMAS) {
            expect(own.ownsSchema(name, of)).toBe(expected.owns(name, of))
            for (const named of TABLES) {
              expect([...own.table(name, of, named).privileges]).toEqual(expected.privileges(name, of, named))
              // A user sees each object on which they have rights.
              const seen = expected.privileges(name, of, named).length > 0 && expected.level(name) !== 'none'
              if (seen || expected.owns(name, of)) {
                expect([own.showsCatalog(name), own.showsSchema(name, of)]).toEqual([true, true])
              }
            }
          }
          if (expected.level(name) === 'none') {
            expect([own.showsCatalog(name), own.showsSchema(name, 'a'), own.setsCatalogProperty(name, 'x')]).toEqual([
              false,
              false,
              false,
            ])
          }
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it('allow everything in a missing section, except functions and procedures that are not built in', () => {
    const own = rights({}, 'ada')
    expect([own.catalog('lake'), own.ownsSchema('lake', 'a'), own.setsSystemProperty('x')]).toEqual(['all', true, true])
    expect(own.functionPrivileges('system', 'builtin', 'abs').has('EXECUTE')).toBe(true)
    expect(own.functionPrivileges('lake', 'a', 'f').size).toBe(0)
    expect(own.procedurePrivileges('system', 'runtime', 'kill_query').size).toBe(0)
    expect(rights({ tables: [] }, 'ada').table('lake', 'a', 't').privileges.size).toBe(0)
    expect(rights({ catalogs: [] }, 'ada').catalog('system')).toBe('all')
  })

  it('ignore the case of names of columns, and keep masks and filters unchanged', () => {
    const own = rights(
      {
        tables: [
          {
            privileges: ['SELECT'],
            filter: 'a > 1',
            filter_environment: { user: 'root' },
            columns: [
              { name: 'Pay', allow: false },
              { name: 'name', mask: `'*'`, mask_environment: { user: null } },
            ],
          },
        ],
      },
      'ada',
    ).table('lake', 'a', 't')
    expect(own).toEqual({
      privileges: new Set(['SELECT']),
      restricted: new Set(['pay']),
      filter: { sql: 'a > 1', user: 'root' },
      masks: new Map([['name', { sql: `'*'` }]]),
    })
  })

  it('are computed once for a user, and cached for a limited number of users', () => {
    const own = objectRulesOf(readRules(JSON.stringify({ tables: [{ table: 't.*', privileges: ['SELECT'] }] })))
    const ada = own({ user: 'ada', groups: [] })
    expect(own({ user: 'ada', groups: [] })).toBe(ada)
    for (let i = 0; i < 3_000; i++) own({ user: `u${i}`, groups: [] })
    expect(own({ user: 'ada', groups: [] })).not.toBe(ada)
  })
})

it('object rules answer for many tables and users with ten thousand rules, and share equal rights between users', () => {
  const tables = Array.from({ length: 10_000 }, (_, i) => ({
    user: 'ada|bob.*',
    catalog: 'lake',
    schema: `s${i % 100}`,
    table: `t${i}_.*`,
    privileges: ['SELECT'],
  }))
  const objects = objectRulesOf(readRules(JSON.stringify({ tables })))
  const ada = objects({ user: 'ada', groups: [] })
  let selected = 0
  for (let i = 0; i < 1_000; i++) selected += ada.table('lake', 's7', `t${i}_x`).privileges.size
  expect(selected).toBe(10)
  const rights = Array.from({ length: 3 }, (_, i) =>
    objects({ user: `bob${i}`, groups: [] }).table('lake', 's7', 't7_x'),
  )
  expect(new Set(rights).size).toBe(1)
})

describe('The ownership of an object', () => {
  it('can be transferred if the first rule that matches owner and new owner allows it', () => {
    const authorization = [
      { originalUser: 'eve', new_user: '.*', allow: false },
      { original_role: '.*', new_user: '.*' },
      { original_group: 'staff', new_user: 'bob|ada' },
      { original_user: 'ada', newRole: 'r.*' },
    ]
    const gives = (user: string, kind: 'USER' | 'ROLE', name: string, groups = ['staff']) =>
      rights({ authorization }, user, groups).givesTo({ kind, name })
    expect([gives('ada', 'USER', 'bob'), gives('ada', 'USER', 'zoe'), gives('ada', 'USER', 'bob', [])]).toEqual([true, false, false]) // prettier-ignore
    expect([gives('ada', 'ROLE', 'r1'), gives('ada', 'USER', 'r1'), gives('eve', 'USER', 'bob')]).toEqual([true, false, false]) // prettier-ignore
    expect(rights({}, 'ada').givesTo({ kind: 'USER', name: 'bob' })).toBe(false)
  })
})
