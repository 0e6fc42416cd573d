import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Identity } from '../../../src/security/authorization.ts'
import { namePattern } from '../../../src/security/rules/java-regex.ts'
import { queryRulesOf } from '../../../src/security/rules/query-rules.ts'
import { readRules, readRulesInSlices } from '../../../src/security/rules/read-rules.ts'

/** A file with one rule for each section, from the documentation of Trino. */
const WHOLE = `{
  "catalogs": [{ "user": "admin", "catalog": "(mysql|system)", "allow": "all" }],
  "schemas": [{ "user": "admin", "schema": ".*", "owner": true }],
  "tables": [{ "user": "bob", "table": "t", "privileges": ["SELECT"], "columns": [{ "name": "c", "allow": false }] }],
  "functions": [{ "privileges": ["EXECUTE"] }],
  "procedures": [{ "user": "admin", "privileges": ["EXECUTE"] }],
  "system_session_properties": [{ "property": "resource_overcommit", "allow": true }],
  "catalog_session_properties": [{ "catalog": "hive", "allow": true }],
  "queries": [
    { "user": "bob", "group": null, "allow": ["KILL"] },
    { "allow": ["execute"] }
  ],
  "impersonation": [{ "original_user": "alice", "new_user": "bob" }],
  "system_information": [{ "user": "admin", "allow": ["read", "write"] }],
  "authorization": [{ "original_role": "admin", "new_user": "bob" }],
  "principals": [{ "principal": "([^/]+)(/.*)?@example.com", "principal_to_user": "$1", "allow": true }]
}`

const identity = (user: string, groups: readonly string[] = []): Identity => ({ user, groups })

describe('A rules file', () => {
  it('is read completely if it is a file of Trino', () => {
    const rules = queryRulesOf(readRules(WHOLE))
    expect(rules.queries(identity('bob'), 'kill', 'alice')).toBe(true)
    expect(rules.execute(identity('bob'))).toBe(false)
    expect(rules.execute(identity('eve'))).toBe(true)
    expect(rules.impersonation(identity('alice'), 'bob')).toBe(true)
    expect(rules.impersonation(identity('bob'), 'alice')).toBe(false)
    expect(rules.system(identity('admin'), 'write')).toBe(true)
    expect(rules.setUser('ada/host@example.com', 'ada')).toBe(true)
  })

  it.each<[string, RegExp]>([
    ['', /^line 1: The file is not JSON/],
    ['{\n  "queries": [\n}', /^line 3: The file is not JSON/],
    ['{\n  // why\n  "queries": []\n}', /^line 2: The file is not JSON/],
    ['[]', /^line 1: /],
    ['{\n\n  "querys": []\n}', /^line 3: .*querys/],
    ['{\n "queries": [],\n "queries": []\n}', /^line 3: The key "queries" occurs twice/],
    ['{\n "__proto__": []\n}', /^line 2: The key "__proto__" is not known/],
    ['{"queries": [\n{"allow": ["view"]},\n{"user": "a"}]}', /^line 3: queries, 2, allow: /],
    ['{"queries": [\n{"allow": ["veiw"]}]}', /^line 2: queries, 1, allow, 1: /],
    ['{"queries": [\n{\n"allow": [],\n"queryowner": "x"}]}', /^line 4: queries, 1: .*queryowner/],
    ['{"queries": [\n{"allow": ["execute"],\n"queryOwner": "x"}]}', /^line 3: .*cannot allow 'execute'/],
    [
      '{"queries": [{"allow": [],\n"user": "(a"}]}',
      /^line 2: queries, 1, user: '\(a' is not a supported regular expression/,
    ],
    ['{"queries": [{"allow": [],\n"user": "(?!root).*"}]}', /^line 2: /],
    ['{"queries": [{"allow": [],\n"user": "(a)\\\\1"}]}', /^line 2: /],
    ['{"queries": [{"allow": [],\n"user": "a++"}]}', /^line 2: /],
    ['{"queries": [{"allow": [],\n"user": "[a-z&&[^b]]"}]}', /^line 2: .*classes within classes/],
    ['{"queries": [{"allow": [],\n"user": 7}]}', /^line 2: /],
    ['{"catalogs": [\n{"allow": "some"}]}', /^line 2: catalogs, 1, allow: /],
    ['{"catalogs": [\n{"user": "a"}]}', /^line 2: catalogs, 1, allow: /],
    ['{"tables": [\n{"table": "a"}]}', /^line 2: tables, 1, privileges: /],
    ['{"tables": [{"privileges": [\n"select"]}]}', /^line 2: tables, 1, privileges, 1: /],
    [
      '{"tables": [{"privileges": [], "columns": [{"name": "a"},\n{"name": "a"}]}]}',
      /^line 2: .*column a occurs twice/,
    ],
    ['{"tables": [{"privileges": [],\n"filters": "true"}]}', /^line 2: .*filters/],
    ['{"functions": [{"privileges": [],\n"function_kinds": ["SCALAR"]}]}', /^line 2: .*no longer supported/],
    ['{"system_information": [\n{"user": "a"}]}', /^line 2: system_information, 1, allow: /],
    ['{"system_information": [\n{"allow": ["reed"]}]}', /^line 2: system_information, 1, allow, 1: /],
    ['{"authorization": [\n{"original_user": "a"}]}', /^line 2: authorization, 1: new_user or new_role is missing/],
    ['{"principals": [\n{"principal": "a"}]}', /^line 2: principals, 1: A principal rule needs user/],
    ['{"principals": [{"user": ".*",\n"principal": "(a"}]}', /^line 2: .*not a supported regular expression/],
    ['{"principals": [{"principal": "(a)",\n"principal_to_user": "$2"}]}', /^line 2: .*names a group/],
    ['{"principals": [{"principal": "a",\n"principal_to_user": "${x}"}]}', /^line 2: .*names a group/],
    ['{"principals": [{"principal": "a",\n"principal_to_user": "a\\\\"}]}', /^line 2: .*ends with a backslash/],
    ['{"impersonation": [\n{"original_user": "a"}]}', /^line 2: impersonation, 1: new_user is missing/],
    ['{"impersonation": [\n{"original_user": "a(.*)",\n"new_user": "$2"}]}', /^line 3: .*names the group 2/],
    ['{"impersonation": [\n{"original_user": "a(.*)",\n"new_user": "${x}"}]}', /^line 3: .*names the group x/],
  ])('%j is refused with the number of the wrong line', (text, message) => {
    expect(() => readRules(text)).toThrow(message)
  })

  it('matches whole names, with regular expressions in the syntax of Java', () => {
    expect(namePattern('a|b').matches('ab')).toBe(false)
    expect(namePattern('(?i)ADA').matches('ada')).toBe(true)
    expect(namePattern('\\Qa.b\\E[]]').matches('a.b]')).toBe(true)
    expect(namePattern('[^]a]\\[x\\&&y').matches('b[x&&y')).toBe(true)
    for (const [text, ...names] of [
      ['a-b', 'a-b'],
      ['ab?', 'a', 'ab'],
      ['ab*c', 'ac', 'abc', 'abbc'],
      ['ab{0}', 'a'],
      ['ab+', 'ab', 'abb'],
      ['a|b.', 'a', 'bx'],
      ['ab(?i)C', 'abc'],
      ['a-b.*|c', 'a-b', 'a-bc', 'c'],
      ['a.*', 'a', 'ab', 'ac', 'abb', 'abc', 'abbc', 'a-b', 'a-bc', 'a|b'],
      ['b.*|ac|ab.*', 'ab', 'ac', 'abb', 'abc', 'abbc', 'bx'],
    ] as const) {
      const all = ['a', 'a\n', 'ab\nc', 'ab', 'ac', 'abb', 'abc', 'abbc', 'a-b', 'a-bc', 'bx', 'c', '', 'AB', 'a|b']
      expect(all.filter((name) => namePattern(text).matches(name))).toEqual(all.filter((name) => (names as readonly string[]).includes(name))) // prettier-ignore
    }
    // A backtracking engine would not finish this match.
    expect(namePattern('(a+)+b').matches('a'.repeat(50_000))).toBe(false)
  })
})

describe('Rules that are read in slices', () => {
  it('are equal to the rules that are read at once', async () => {
    const tables = Array.from({ length: 1_000 }, (_, n) => ({
      user: `u${n}|v.*`,
      table: `t${n}`,
      privileges: ['SELECT'],
    }))
    const text = JSON.stringify({ ...JSON.parse(WHOLE), tables, schemas: null })
    let slices = 0
    const read = await readRulesInSlices(text, async () => void slices++)
    expect(slices).toBeGreaterThanOrEqual(10)
    const plain = (rules: object): unknown =>
      JSON.parse(JSON.stringify(rules, (_, value: unknown) => (value instanceof Set ? [...value] : value)))
    expect(plain(read)).toEqual(plain(readRules(text)))
    const [of, at] = [queryRulesOf(read), queryRulesOf(readRules(text))]
    for (const user of ['bob', 'eve']) expect(of.execute(identity(user))).toBe(at.execute(identity(user)))
  })
})

describe('Impersonation', () => {
  const rules = (...impersonation: object[]) => queryRulesOf(readRules(JSON.stringify({ impersonation })))

  it('inserts groups of the original user as literal text', () => {
    const { impersonation } = rules({ original_user: '(.*)@(?<org>[a-z]+)', new_user: 'svc_$1|${org}_ops|[$1]|\\$1' })
    expect(impersonation(identity('ada@acme'), 'svc_ada')).toBe(true)
    expect(impersonation(identity('ada@acme'), 'acme_ops')).toBe(true)
    expect(impersonation(identity('ada@acme'), '$')).toBe(true)
    expect(impersonation(identity('ada@acme'), '$1')).toBe(true)
    expect(impersonation(identity('ada@acme'), 'svc_bob')).toBe(false)
    expect(impersonation(identity('.*@acme'), 'svc_root')).toBe(false)
    expect(impersonation(identity('.*@acme'), 'svc_.*')).toBe(true)
    expect(impersonation(identity('a\\Eb@acme'), 'svc_a\\Eb')).toBe(true)
    expect(impersonation(identity('x|root@acme'), 'root')).toBe(false)
  })

  it('follows the first matching rule, ignores rules with a role, and is refused without a match', () => {
    const { impersonation } = rules(
      { original_user: 'etl', new_user: 'root', allow: false },
      { original_user: 'etl', new_user: '.*' },
      { original_role: '.*', new_user: '.*' },
      { new_user: 'guest' },
    )
    expect(['root', 'bob'].map((user) => impersonation(identity('etl'), user))).toEqual([false, true])
    expect(['guest', 'bob'].map((user) => impersonation(identity('eve'), user))).toEqual([true, false])
    expect(queryRulesOf(readRules('{}')).impersonation(identity('etl'), 'bob')).toBe(false)
  })
})

describe('The rules for system information', () => {
  it('follow the first matching rule, and allow nothing if the section is missing', () => {
    const rules = queryRulesOf(
      readRules(
        JSON.stringify({
          system_information: [
            { role: '.*', allow: ['read', 'write'] },
            { user: 'ops', allow: ['READ', 'write'] },
            { user: 'eve', allow: [] },
            { allow: ['read'] },
          ],
        }),
      ),
    )
    const of = (user: string) => (['read', 'write'] as const).filter((access) => rules.system(identity(user), access))
    expect([of('ops'), of('eve'), of('bob')]).toEqual([['read', 'write'], [], ['read']])
    expect(queryRulesOf(readRules('{}')).system(identity('ops'), 'read')).toBe(false)
  })
})

describe('The rules for principals', () => {
  const rules = (...principals: object[]) => queryRulesOf(readRules(JSON.stringify({ principals })))

  it('map a principal to the users that the first matching rule allows', () => {
    const { setUser } = rules(
      { principal: 'eve@.*', user: '.*', allow: false },
      { principal: '([^@]+)@(?<org>[a-z]+)', principal_to_user: '${org}_$1', allow: true },
      { principal: '(.*)@acme', user: 'guest|\\$1', allow: true },
      { principal: 'bob@acme', principal_to_user: 'bo\\$b' },
      { principal: '(.*)', principal_to_user: '$1x', allow: true },
    )
    const become = (principal: string | undefined, ...users: string[]) =>
      users.filter((user) => setUser(principal, user))
    expect(become('ada@acme', 'acme_ada', 'ada', 'guest', '$1', 'root')).toEqual(['acme_ada', 'guest', '$1'])
    expect(become('bob@acme', 'bo$b', 'bo')).toEqual([])
    expect(become('eve@acme', 'acme_eve', 'guest')).toEqual([])
    // Like replaceAll of Java, which matches once more at the end.
    expect(become('zoe', 'zoex', 'zoexx')).toEqual(['zoexx'])
    expect(become(undefined, 'guest')).toEqual([])
  })

  it('allow any user if missing, and also allow impersonation if they are the only section', () => {
    expect(queryRulesOf(readRules('{}')).setUser(undefined, 'root')).toBe(true)
    expect(queryRulesOf(readRules('{}')).impersonation(identity('etl'), 'bob')).toBe(false)
    expect(rules({ principal: '.*', user: '.*', allow: true }).impersonation(identity('etl'), 'bob')).toBe(true)
  })
})

describe('The rules for queries', () => {
  const names = ['ada', 'bob', 'eve']
  const rule = fc.record({
    user: fc.option(fc.constantFrom('ada', 'bob|eve', '.*'), { nil: undefined }),
    group: fc.option(fc.constantFrom('staff', '.*'), { nil: undefined }),
    role: fc.option(fc.constantFrom('admin'), { nil: undefined, freq: 9 }),
    queryOwner: fc.option(fc.constantFrom('ada', 'eve|ada', '.*'), { nil: undefined }),
    modes: fc.subarray(['execute', 'view', 'kill'] as const),
  })

  it('follow the first matching rule', () => {
    const section = fc.option(fc.array(rule, { maxLength: 5 }), { nil: undefined })
    const groups = fc.subarray(['staff', 'night'])
    fc.assert(
      fc.property(section, fc.constantFrom(...names), groups, (given, user, of) => {
        const written = given?.map(({ modes, ...one }) => ({
          ...one,
          allow: modes.filter((mode) => mode !== 'execute' || one.queryOwner === undefined),
        }))
        const rules = queryRulesOf(readRules(JSON.stringify({ queries: written })))
        const fits = (regex: string | undefined, all: readonly string[]) =>
          regex === undefined || all.some((one) => new RegExp(`^(?:${regex})$`).test(one))
        const mine = written?.filter((one) => one.role === undefined && fits(one.user, [user]) && fits(one.group, of))
        const self = identity(user, of)
        const first = (owner: string) => mine?.find((one) => fits(one.queryOwner, [owner]))
        for (const owner of names)
          for (const action of ['view', 'kill'] as const) {
            const allowed = first(owner)?.allow.includes(action) ?? false
            expect(rules.queries(self, action, owner)).toBe(given === undefined || allowed)
            expect(rules.results(self, action, owner)).toBe(given !== undefined && allowed)
          }
        expect(rules.execute(self)).toBe(
          mine?.find((one) => one.queryOwner === undefined)?.allow.includes('execute') ?? given === undefined,
        )
        // The owners include a user that no rule names.
        const seen = [...names, 'somebody'].map((owner) => rules.queries(self, 'view', owner))
        const sight = rules.sight(self)
        if (sight === 'all') expect(seen).not.toContain(false)
        if (sight === 'own') expect(seen).not.toContain(true)
      }),
      { numRuns: 500 },
    )
  })

  it('tell whether a user sees all queries, some, or only their own', () => {
    const sight = (...queries: object[]) =>
      queryRulesOf(readRules(JSON.stringify({ queries }))).sight(identity('auditor', ['audit']))
    expect(sight({ user: 'auditor', queryOwner: '.*', allow: ['view'] })).toBe('all')
    expect(sight({ group: 'audit', allow: ['view'] })).toBe('all')
    expect(sight({ queryOwner: 'root', allow: [] }, { group: 'audit', allow: ['view'] })).toBe('some')
    expect(sight({ user: 'other', allow: ['view'] }, { allow: ['execute'] })).toBe('own')
  })
})
