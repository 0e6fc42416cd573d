import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { groupPath, groupText } from '../../../../src/coordinator/dispatch/groups/group-path.ts'
import { readGroupRules, readGroupRulesInSlices } from '../../../../src/coordinator/dispatch/groups/group-rules.ts'
import { choose, groupAt } from '../../../../src/coordinator/dispatch/groups/rules-lookup.ts'
import { groupLabel } from '../../../../src/coordinator/dispatch/groups/group-level.ts'
import type { GroupedSession } from '../../../../src/coordinator/dispatch/groups/group-selector.ts'

const documented = readFileSync(new URL('../../../fixtures/resource-groups/documented.json', import.meta.url), 'utf8')

/** The group that the rules choose, as text. */
function chosen(rules: string, session: Partial<GroupedSession>, queryType: string | undefined = 'SELECT'): string {
  const choice = choose(readGroupRules(rules), {
    session: { user: 'ana', groups: [], clientTags: [], resourceEstimates: {}, ...session },
    queryType: () => queryType,
  })
  return typeof choice === 'string' ? choice : groupText(choice.path)
}

describe("The example of Trino's documentation", () => {
  it.each([
    [{ user: 'bob' }, 'SELECT', 'admin'],
    [{ originalUser: 'bob' }, 'SELECT', 'admin'],
    [{ principal: 'bob' }, 'SELECT', 'admin'],
    [{ groups: ['staff', 'admin'] }, 'SELECT', 'admin'],
    [{ source: 'my pipeline 1' }, 'DATA_DEFINITION', 'global.data_definition'],
    [{ source: 'my pipeline 1' }, 'SELECT', 'global.pipeline.pipeline_ana'],
    [
      { source: 'jdbc#powerfulbi', user: 'kayla', clientTags: ['hipri', 'fast'] },
      'SELECT',
      'global.adhoc.bi-powerfulbi.kayla',
    ],
    [{ source: 'jdbc#powerfulbi', clientTags: ['fast'] }, 'SELECT', 'global.adhoc.other.ana'],
    [{ user: 'ana.b%' }, undefined, 'global.adhoc.other.ana%2Eb%25'],
  ])('maps the session %j and the query type %s to the group %s', (session, queryType, group) => {
    expect(chosen(documented, session, queryType)).toBe(group)
  })
})

const GROUP = '"name": "a", "maxQueued": 1, "hardConcurrencyLimit": 1'

function fileWith(group: string, selector = '"group": "a"', more = ''): string {
  return `{ "rootGroups": [\n{ ${group} }],\n"selectors": [\n{ ${selector} }]${more} }`
}

describe('A selector', () => {
  const estimate =
    '"group": "a", "selectorResourceEstimate": { "executionTime": { "min": "1m", "max": "1h" }, "peakMemory": { "max": "1GB" } }'

  it.each([
    [{ EXECUTION_TIME: '1m', PEAK_MEMORY: '1024MB' }, 'a'],
    [{ EXECUTION_TIME: '60m', PEAK_MEMORY: '1B' }, 'a'],
    [{ EXECUTION_TIME: '59s', PEAK_MEMORY: '1B' }, 'none'],
    [{ EXECUTION_TIME: '2m', PEAK_MEMORY: '1.1GB' }, 'none'],
    [{ EXECUTION_TIME: '2m' }, 'none'],
    [{ EXECUTION_TIME: 'soon', PEAK_MEMORY: '1B' }, 'none'],
  ])('matches resource estimates between its minimum and maximum: %j, %s', (resourceEstimates, group) => {
    expect(chosen(fileWith(GROUP, estimate), { resourceEstimates })).toBe(group)
  })

  it('takes group names from named groups of its expressions, and "unnamed" for an empty name', () => {
    const rules = fileWith(
      '"name": "${team}", "maxQueued": 1, "hardConcurrencyLimit": 1',
      '"user": "(?:(?<team>[a-z]+)-)?.*", "group": "${team}"',
    )
    expect(chosen(rules, { user: 'etl-1' })).toBe('etl')
    expect(chosen(rules, { user: '1' })).toBe('unnamed')
  })

  it('does not ask for the query type when another condition already fails', () => {
    const rules = readGroupRules(fileWith(GROUP, '"user": "bob", "queryType": "insert", "group": "a"'))
    const statement = (user: string) => ({
      session: { user, groups: [], clientTags: [], resourceEstimates: {} },
      queryType: (): string => {
        throw new Error('asked')
      },
    })
    expect(choose(rules, statement('ana'))).toBe('none')
    expect(() => choose(rules, statement('bob'))).toThrow('asked')
  })
})

it.each([
  ['{', 'line 1: The file is not JSON'],
  ['{ "rootGroups": [] }', 'line 1: selectors: '],
  [fileWith(`${GROUP}, "color": "red"`), 'line 2: rootGroups, 1: Unrecognized key: "color"'],
  [fileWith(`${GROUP}, "maxQueued": 2`), 'line 2: The key "maxQueued" occurs twice'],
  [fileWith('"name": "a", "maxQueued": 1'), 'line 2: rootGroups, 1: hardConcurrencyLimit is missing'],
  [fileWith('"name": "a", "maxQueued": -1, "hardConcurrencyLimit": 1'), 'line 2: rootGroups, 1, maxQueued: '],
  [fileWith(`${GROUP}, "softConcurrencyLimit": 2`), 'line 2: rootGroups, 1, softConcurrencyLimit: '],
  [fileWith(`${GROUP}, "softMemoryLimit": "101%"`), 'over 100%'],
  [fileWith(`${GROUP}, "softMemoryLimit": "much"`), "'much' is neither a data size nor a percentage"],
  [fileWith(`${GROUP}, "hardCpuLimit": "1h"`), 'CPU limits need a cpuQuotaPeriod'],
  [
    fileWith(`${GROUP}, "softCpuLimit": "1h"`, undefined, ', "cpuQuotaPeriod": "1h"'),
    'softCpuLimit needs a hardCpuLimit',
  ],
  [
    fileWith(`${GROUP}, "softCpuLimit": "2h", "hardCpuLimit": "1h"`, undefined, ', "cpuQuotaPeriod": "1h"'),
    'softCpuLimit is greater than hardCpuLimit',
  ],
  [fileWith(`${GROUP}, "hardPhysicalDataScanLimit": "1GB"`), 'A scan limit needs a physicalDataScanQuotaPeriod'],
  [
    fileWith(GROUP, undefined, ', "cpuQuotaPeriod": "1 fortnight"'),
    "line 4: cpuQuotaPeriod: '1 fortnight' is not a duration",
  ],
  [fileWith(`${GROUP}, "schedulingPolicy": "random"`), 'line 2: rootGroups, 1, schedulingPolicy: '],
  [
    fileWith(`${GROUP}, "schedulingPolicy": "fair", "subGroups": [{ ${GROUP}, "schedulingWeight": 2 }]`),
    'needs the schedulingPolicy',
  ],
  [
    fileWith(`${GROUP}, "schedulingPolicy": "query_priority", "subGroups": [{ ${GROUP}, "schedulingPolicy": "fair" }]`),
    'so this one must, too',
  ],
  [
    fileWith(
      `${GROUP}, "schedulingPolicy": "weighted", "subGroups": [{ ${GROUP}, "schedulingWeight": 2 }, { ${GROUP.replace('"a"', '"b"')} }]`,
    ),
    'Either all sub-groups have a schedulingWeight or none',
  ],
  [fileWith(`${GROUP}, "subGroups": [{ ${GROUP} }, { ${GROUP} }]`), "The group 'a' occurs twice"],
  [fileWith(GROUP, '"group": "b"'), 'line 4: selectors, 1, group: The group does not exist'],
  [fileWith(GROUP, '"user": "(", "group": "a"'), 'line 4: selectors, 1, user: '],
  [fileWith(GROUP, '"queryType": "SHOW", "group": "a"'), 'line 4: selectors, 1, queryType: '],
  [
    fileWith('"name": "${x}", "maxQueued": 1, "hardConcurrencyLimit": 1', '"group": "${x}"'),
    "No expression defines '${x}'",
  ],
  [fileWith(GROUP, '"user": "(?<x>.*)", "source": "(?<x>.*)", "group": "a"'), "Several expressions define 'x'"],
])('`readGroupRules` refuses %s', (text, message) => {
  expect(() => readGroupRules(text)).toThrow(message)
})

it('`groupText` escapes a dot in a group name, and `groupPath` reads it back', () => {
  for (const path of [['a', 'b'], ['a.b'], ['a%2Eb', '%', '.'], []]) expect(groupPath(groupText(path))).toEqual(path)
  expect(groupText(['global', 'ana.b'])).toBe('global.ana%2Eb')
})

it('`groupAt` finds the rules of a path, names before templates; `groupLabel` is the same for one template', () => {
  const { rootGroups } = readGroupRules(documented)
  const made = (path: string[]) =>
    groupAt(path, rootGroups).levels.map(({ label, rule }) => [label, rule?.hardConcurrencyLimit])
  expect(made(['global', 'adhoc', 'bi-x', 'kayla'])).toEqual([
    ['global', 100],
    ['global.adhoc', 50],
    ['global.adhoc.bi-${toolname}', 10],
    ['global.adhoc.bi-${toolname}.${USER}', 3],
  ])
  expect(made(['global', 'gone', 'kayla'])).toEqual([
    ['global', 100],
    ['global.gone', undefined],
    ['global.gone.kayla', undefined],
  ])
  expect(groupLabel(['global', 'adhoc', 'other', 'ana'], rootGroups)).toBe('global.adhoc.other.${USER}')
  expect(groupLabel(['gone'], rootGroups)).toBe('other')
  expect(groupLabel([], rootGroups)).toBe('none')
})

describe('`readGroupRulesInSlices`', () => {
  /** The rules as JSON without functions. An absent limit is Infinity. */
  const plain = (rules: object): string =>
    JSON.stringify(rules, (_, value: unknown) =>
      value === Infinity ? 'none' : value instanceof Set ? [...value] : value,
    )
  const sessions = ['u1', 'u42', 'ana', 'zoe'].map((user) => ({
    user,
    source: 'cli x',
    groups: ['staff'],
    clientTags: [],
    resourceEstimates: {},
  }))
  const led = (rules: ReturnType<typeof readGroupRules>): readonly unknown[] =>
    sessions.map((session) => choose(rules, { session, queryType: () => 'SELECT' }))

  it('gives the same rules as `readGroupRules`, and yields at least once per 100 groups', async () => {
    const limits = { maxQueued: 3, hardConcurrencyLimit: 2 }
    const policies = fc.constantFrom('fair', 'query_priority', undefined)
    const file = fc.record({
      policy: policies,
      below: fc.integer({ min: 0, max: 250 }),
      deeper: fc.integer({ min: 1, max: 130 }),
      softMemoryLimit: fc.constantFrom('10%', '1GB', null),
      hardCpuLimit: fc.constantFrom('1h', undefined),
    })
    await fc.assert(
      fc.asyncProperty(file, async ({ policy, below, deeper, softMemoryLimit, hardCpuLimit }) => {
        const groups = (count: number, of: string, subGroups: readonly object[] = []) =>
          Array.from({ length: count }, (_, n) => ({
            ...limits,
            softMemoryLimit,
            hardCpuLimit,
            name: `${of}${n}`,
            ...(n === 0 ? { subGroups } : {}),
          }))
        const all = {
          ...limits,
          name: 'all',
          subGroups: [...groups(below, 'g', groups(deeper, 'd')), { ...limits, name: '${USER}' }],
        }
        const text = JSON.stringify({
          rootGroups: [{ ...all, schedulingPolicy: policy }],
          selectors: [
            ...Array.from({ length: below }, (_, n) => ({ user: `u${n}`, group: n === 0 ? 'all.g0.d0' : `all.g${n}` })),
            { source: 'cli (?<what>.*)', group: 'all.${USER}' },
          ],
          cpuQuotaPeriod: '1h',
        })
        let slices = 0
        const read = await readGroupRulesInSlices(text, async () => void slices++)
        expect(slices).toBeGreaterThanOrEqual(5 + Math.floor(below / 100) + Math.floor(deeper / 100))
        expect(plain(read)).toBe(plain(readGroupRules(text)))
        expect(plain(led(read))).toBe(plain(led(readGroupRules(text))))
      }),
      { numRuns: 15 },
    )
    const read = await readGroupRulesInSlices(documented, async () => {})
    expect(plain(read)).toBe(plain(readGroupRules(documented)))
    expect(plain(led(read))).toBe(plain(led(readGroupRules(documented))))
  })
})
