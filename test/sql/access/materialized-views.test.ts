import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SessionContext } from '../../../src/sql/front-end.ts'
import { openTableRunner, type TableRunner } from '../../support/table-runner.ts'
import { rightsUnder } from '../../support/rights-under.ts'

function under(tables: readonly object[], user = 'ana'): Partial<SessionContext> {
  return { user, groups: [], rightsOf: rightsUnder({ tables }) }
}

const SELECT = ['SELECT']
const OWNER = { user: 'olga', table: 't', privileges: ['GRANT_SELECT'] }
const denied = (what: string): string => `PERMISSION_DENIED: Access Denied: ${what}`

describe('Access rules on materialized views', { timeout: 300_000 }, () => {
  let runner: TableRunner
  beforeAll(async () => {
    runner = await openTableRunner()
    await runner.createTable('t', "SELECT * FROM (VALUES (1, 'eu'), (2, 'us')) v(id, region)")
    // The stored rows are older than those of the table.
    await runner.createTable('rows', "SELECT * FROM (VALUES (7, 'eu'), (8, 'us')) v(id, region)")
    await runner.createMaterializedView('m', 'SELECT id, region FROM t', 'olga', 'rows')
  })
  afterAll(() => runner.close())

  it('let users with a right to the view read its stored rows, if its owner may grant access to the tables', async () => {
    const view = { user: 'ana', table: 'm', privileges: SELECT }
    expect(await runner.outcome('SELECT * FROM m ORDER BY id', under([OWNER, view]))).toEqual([[7, 'eu'], [8, 'us']]) // prettier-ignore
    expect(await runner.outcome('SELECT id FROM m', under([OWNER]))).toBe(denied('Cannot select from table memory.default.m')) // prettier-ignore
    expect(await runner.outcome('SELECT id FROM m', under([{ ...OWNER, privileges: SELECT }, view]))).toBe(
      denied(
        "View owner does not have sufficient privileges: View owner 'olga' cannot create view that selects from memory.default.t",
      ),
    )
    // Also a column that this statement does not read.
    const hidden = { ...OWNER, columns: [{ name: 'region', allow: false }] }
    expect(await runner.outcome('SELECT id FROM m', under([hidden, view]))).toContain('View owner does not have sufficient privileges') // prettier-ignore
  })

  it('filter and mask the stored rows by the rules on the view', async () => {
    const rule = { user: 'ana', table: 'm', privileges: SELECT, filter: 'id > 7', columns: [{ name: 'region', mask: "CAST('?' AS varchar(2))" }] } // prettier-ignore
    expect(await runner.outcome('SELECT * FROM m', under([OWNER, rule]))).toEqual([[8, '?']])
  })

  it('let a user with the right UPDATE refresh it, with the rows that its owner may see', async () => {
    const owner = { ...OWNER, filter: "region = 'us' AND current_user = 'olga'" }
    const refresher = { user: 'ana', table: 'm', privileges: ['UPDATE'] }
    const sql = 'REFRESH MATERIALIZED VIEW m'
    expect(await runner.written(sql, under([owner, refresher]))).toEqual([[2, 'us']])
    expect(await runner.written(sql, under([owner, { ...refresher, privileges: SELECT }]))).toBe(denied('Cannot refresh materialized view memory.default.m')) // prettier-ignore
    // The rules on the view itself are for its readers.
    const filtered = { ...refresher, filter: 'false', columns: [{ name: 'region', mask: "'?'" }] }
    expect(await runner.written(sql, under([owner, filtered]))).toEqual([[2, 'us']])
  })

  it('do not store rows that only the refreshing user may see', async () => {
    const owner = { ...OWNER, filter: 'contains(current_groups(), region)' }
    const rules = [owner, { user: 'ana', table: 'm|listed', privileges: ['UPDATE'] }]
    const sql = 'REFRESH MATERIALIZED VIEW m'
    expect(await runner.written(sql, { ...under(rules), groups: ['us'] })).toEqual([])
    const olga = under([...rules, { user: 'olga', table: 'm', privileges: ['UPDATE'] }], 'olga')
    expect(await runner.written(sql, { ...olga, groups: ['us'] })).toEqual([[2, 'us']])
    // The rows of such tables are listed for the user of the statement.
    await runner.createMaterializedView('listed', 'SELECT id FROM information_schema.t', 'olga', 'rows')
    expect(await runner.written('REFRESH MATERIALIZED VIEW listed', under(rules))).toBe(
      denied("Cannot refresh materialized view memory.default.listed: it reads memory.information_schema.t, which has other rows for each user; its owner 'olga' can refresh it"), // prettier-ignore
    )
  })

  it.each([
    ['DROP MATERIALIZED VIEW m', 'Cannot drop materialized view memory.default.m'],
    ['ALTER MATERIALIZED VIEW m RENAME TO n', 'Cannot rename materialized view from memory.default.m to memory.default.n'], // prettier-ignore
    ['CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT 1 x', 'Cannot create materialized view memory.default.m'],
  ])('refuse %s to a user without OWNERSHIP', async (sql, message) => {
    const rules = [OWNER, { user: 'ana', table: 'm', privileges: ['SELECT', 'UPDATE', 'INSERT', 'DELETE'] }]
    expect(await runner.written(sql, under(rules))).toBe(denied(message))
  })
})
