import { describe, expect, it } from 'vitest'
import { sessionContext } from '../../../src/coordinator/query/session/session-context.ts'
import { authorizeBy } from '../../../src/security/authorization.ts'
import { queryRulesOf } from '../../../src/security/rules/query-rules.ts'
import { readRules } from '../../../src/security/rules/read-rules.ts'
import type { QueryId } from '../../../src/shared/ids.ts'
import { createStatementPlanner } from '../../../src/planner/statement-planner.ts'
import type { MetadataPort } from '../../../src/sql/front-end.ts'
import { sampleData } from '../../support/query-events.ts'
import { planText } from '../../support/plan-text.ts'

const rules = queryRulesOf(readRules('{"impersonation": [{ "original_user": "ada", "new_user": "etl_.*" }]}'))
const planner = createStatementPlanner()

function become(sql: string, user: string, originalUser?: string) {
  const created = sampleData.QueryCreated
  const { originalUser: _none, ...sample } = created.session
  const session = { ...sample, user, capabilities: ['SESSION_AUTHORIZATION'], ...(originalUser && { originalUser }) }
  const context = sessionContext('q' as QueryId, { session, created }, 0, {
    authorize: authorizeBy(() => rules),
    objectsOf: () => undefined,
    onRuleFault: () => {},
  })
  return planText(planner, sql, { ...context, transactionId: 'NONE' }, {} as MetadataPort)
}

describe('SET SESSION AUTHORIZATION', () => {
  it.each([
    ['ada', undefined, 'etl_nightly'],
    ['ada', undefined, 'ada'],
    ['etl_daily', 'ada', 'etl_nightly'],
    ['etl_daily', 'ada', 'ada'],
  ])('%s, logged in as %s, becomes %s', async (user, original, next) => {
    const changes = [{ kind: 'SetAuthorizationUser', user: next }]
    expect(await become(`SET SESSION AUTHORIZATION ${next}`, user, original)).toMatchObject({ changes })
  })

  it.each([
    ['ada', undefined, 'root', 'ada'],
    ['bob', undefined, 'etl_nightly', 'bob'],
    // The rights of the original user count, also while the user acts as another.
    ['ada', 'bob', 'etl_nightly', 'bob'],
  ])('%s, logged in as %s, does not become %s', async (user, original, next, reported) => {
    await expect(become(`SET SESSION AUTHORIZATION ${next}`, user, original)).rejects.toMatchObject({
      errorName: 'PERMISSION_DENIED',
      message: `Access Denied: User ${reported} cannot impersonate user ${next}`,
    })
  })
})
