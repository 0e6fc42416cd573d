import { expect, it, vi } from 'vitest'
import { readGroupRules } from '../../../src/coordinator/dispatch/groups/group-rules.ts'
import { choose } from '../../../src/coordinator/dispatch/groups/rules-lookup.ts'
import { readPropertyRules, ruledSession } from '../../../src/coordinator/dispatch/property-rules.ts'
import {
  findSecrets,
  recordedSubmission,
  sealedSubmission,
} from '../../../src/coordinator/query/secrets/query-secrets.ts'
import { RecordedType } from '../../../src/coordinator/query/session/recorded-type.ts'
import { createStatementPlanner } from '../../../src/planner/statement-planner.ts'
import { StatementText } from '../../../src/sql/parsed-statement.ts'
import { tablesOfBareInserts } from '../../../src/sql/syntax/redact-secrets.ts'
import { session, shopMetadata } from '../../support/front-end.ts'
import { sampleData } from '../../support/query-events.ts'

const { session: sent, ...rest } = sampleData.QueryCreated

const typeOf = (sql: string, preparedStatements: Record<string, string> = {}) => {
  const posted = { ...sent, preparedStatements }
  const { created, type } = sealedSubmission(new StatementText(sql, preparedStatements), posted, rest)
  return { posted: type.get(), recorded: recordedSubmission(created).type.get() }
}

it('a posted statement is parsed once for its secrets, its type and its meaning', async () => {
  const preparedStatements = { p: 'SELECT id FROM orders WHERE id = ? -- no token' }
  const text = new StatementText('EXECUTE p USING 1', preparedStatements)
  const posted = { ...sent, preparedStatements }
  expect(tablesOfBareInserts(text)).toEqual([])
  const { type } = sealedSubmission(text, posted, rest, findSecrets(text, posted))
  const { parsed } = text
  const inner = text.prepared.find('p')
  const prepared = inner?.parsed
  expect([parsed?.kind, prepared?.kind]).toEqual(['valid', 'valid'])
  expect(type.get()).toBe('SELECT')
  const planner = createStatementPlanner()
  const as = { ...session, preparedStatements }
  expect(planner.parse(text, as)).toBe(parsed)
  expect((await planner.plan(planner.parse(text, as), { session: as, metadata: shopMetadata() })).kind).toBe('query')
  expect(text.parsed).toBe(parsed)
  expect(inner?.parsed).toBe(prepared)
  text.forget()
  expect([text.parsed, inner?.parsed]).toEqual([undefined, undefined])
})

it('the type of a statement is found once for all selectors and property rules', () => {
  const find = vi.fn(() => 'DELETE' as const)
  const type = new RecordedType(find)
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
  const statement = { session: sent, queryType: () => type.get() }
  expect(choose(groups, statement)).toBe('none')
  expect(ruledSession(rules, statement, { group: 'a', digest: 'd' })(sent).properties['query_priority']).toBe('2')
  expect(find).toHaveBeenCalledTimes(1)
})

it.each([
  ['EXECUTE p', 'DELETE'],
  ["SELECT 'x' AS password", 'SELECT'],
  // The recorded text of these is another one: a restart must not change the type.
  ["EXECUTE IMMEDIATE 'SELECT ''x'' AS password'", undefined],
  ["SELECT password = '", 'SELECT'],
  ['EXECUTE p p', undefined],
])('the type of a statement is the same before and after a restart: %s', (sql, type) => {
  expect(typeOf(sql, { p: 'DELETE FROM t' })).toEqual({ posted: type, recorded: type })
})
