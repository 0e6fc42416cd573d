import { expect, it } from 'vitest'
import { readGroupRules } from '../../../src/coordinator/dispatch/groups/group-rules.ts'
import { choose } from '../../../src/coordinator/dispatch/groups/rules-lookup.ts'
import { readPropertyRules, ruledSession } from '../../../src/coordinator/dispatch/property-rules.ts'
import { groupedStatement } from '../../../src/coordinator/query/session/query-group.ts'
import { sampleData } from '../../support/query-events.ts'

it('`groupedStatement` parses a text once for all selectors, property rules and the session they make', () => {
  let reads = 0
  const preparedStatements = new Proxy<Record<string, string>>(
    { p: 'DELETE FROM t' },
    {
      getOwnPropertyDescriptor(target, name) {
        reads++
        return Reflect.getOwnPropertyDescriptor(target, name)
      },
    },
  )
  const sent = { ...sampleData.QueryCreated.session, preparedStatements }
  const types = ['EXPLAIN', 'INSERT', 'UPDATE']
  const groups = readGroupRules(
    JSON.stringify({
      rootGroups: [{ name: 'a', maxQueued: 1, hardConcurrencyLimit: 1 }],
      selectors: types.map((queryType) => ({ queryType, group: 'a' })),
    }),
  )
  const rules = readPropertyRules(
    JSON.stringify([...types, 'DELETE'].map((queryType) => ({ queryType, sessionProperties: { query_priority: 2 } }))),
  )
  groupedStatement({ sql: 'EXECUTE p', session: sent }).queryType()
  const once = reads
  expect(once).toBeGreaterThan(0)
  const asked = groupedStatement({ sql: 'EXECUTE p', session: sent })
  expect(choose(groups, asked)).toBe('none')
  const session = ruledSession(rules, asked, { group: 'a', digest: 'd' })(sent)
  expect(session.properties['query_priority']).toBe('2')
  expect(groupedStatement({ sql: 'EXECUTE p', session }).queryType()).toBe('DELETE')
  expect(reads).toBe(once)
  // A text that is no statement has no type.
  const broken = { sql: 'EXECUTE p p', session: sent }
  expect(groupedStatement(broken).queryType()).toBeUndefined()
  expect(groupedStatement({ sql: 'EXECUTE p', session: sent }).queryType()).toBe('DELETE')
})
