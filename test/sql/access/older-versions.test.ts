import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SessionContext } from '../../../src/sql/front-end.ts'
import { openTableRunner, type TableRunner } from '../../support/table-runner.ts'
import { rightsUnder } from '../../support/rights-under.ts'

/** The session of a user under one rule for table `t`; there are no rights on other tables. */
function under(rule: object): Partial<SessionContext> {
  const rightsOf = rightsUnder({ tables: [{ table: 't', privileges: ['SELECT'], ...rule }] })
  return { user: 'ana', groups: [], rightsOf }
}
const masked = (name: string, mask: string): object => ({ columns: [{ name, mask }] })
const forbidden = (name: string): object => ({ columns: [{ name, allow: false }] })

describe('Access rules on older versions of a table', { timeout: 300_000 }, () => {
  let runner: TableRunner
  // Since version 1 `pay` got the name `salary`, `code` was dropped with the name `key`, `region` was dropped, and a new
  // `region` was added.
  beforeAll(async () => {
    runner = await openTableRunner()
    await runner.createTable('t', "SELECT * FROM (VALUES (1, 10, 'eu')) v(id, salary, region)")
    await runner.createTable('old', "SELECT * FROM (VALUES (1, 10, CAST('k1' AS varchar), 'us'), (2, 20, 'k2', 'eu')) v(id, pay, code, region)") // prettier-ignore
    runner.createVersion('t', 1, 'old', {
      id: { nameToday: 'id' },
      pay: { nameToday: 'salary' },
      code: { lastName: 'key' },
      region: { lastName: 'region' },
    })
  })
  afterAll(() => runner.close())

  const version = 't FOR VERSION AS OF 1'

  it.each([
    ['of the name that the column has today', masked('salary', 'salary * -1'), 'pay', [[-10], [-20]]],
    ['of the name that the column had then', masked('pay', 'pay * -2'), 'pay', [[-20], [-40]]],
    ['of the last name of a dropped column', masked('key', "key || '?'"), 'code', [['k1?'], ['k2?']]],
    ['of the name that a dropped column had then', masked('code', "'none'"), 'code', [['none'], ['none']]],
    ['of another column that has the name today', masked('region', "'?'"), 'region', [['?'], ['?']]],
    ['that reads other columns by their names of today', masked('id', 'id + salary'), 'id', [[11], [22]]],
  ])('apply a mask %s', async (_, rule, column, rows) => {
    const sorted = `SELECT ${column} FROM ${version} ORDER BY abs(CAST(id AS bigint))`
    expect(await runner.outcome(sorted, under(rule))).toEqual(rows)
  })

  it.each([
    ['today', 'salary', 'pay'],
    ['then', 'pay', 'pay'],
    ['at last', 'key', 'code'],
    ['then, before it was dropped', 'code', 'code'],
  ])('forbid a column by the name that it had %s', async (_, name, column) => {
    const refused = 'PERMISSION_DENIED: Access Denied: Cannot select from table memory.default.t'
    expect(await runner.outcome(`SELECT ${column} FROM ${version}`, under(forbidden(name)))).toBe(refused)
    expect(await runner.outcome(`SELECT 1 FROM ${version} WHERE ${column} IS NULL`, under(forbidden(name)))).toBe(refused) // prettier-ignore
    expect(await runner.outcome(`SELECT id FROM ${version} ORDER BY id`, under(forbidden(name)))).toEqual([[1], [2]])
  })

  it('apply filters that name columns by their present names', async () => {
    expect(await runner.outcome(`SELECT id FROM ${version}`, under({ filter: 'salary > 10' }))).toEqual([[2]])
    expect(await runner.outcome(`SELECT id FROM ${version}`, under({ filter: "key = 'k1'" }))).toEqual([[1]])
  })

  it('refuse a filter over a column that the version does not have', async () => {
    // The version's own `region` is another column.
    const rule = under({ filter: "region = 'eu'" })
    expect(await runner.outcome(`SELECT id FROM ${version}`, rule)).toMatch(/^COLUMN_NOT_FOUND: .*Invalid row filter/)
  })

  it('tell only users that may read the table which versions it has', async () => {
    const reading = 'SELECT 1 FROM t FOR VERSION AS OF 77'
    const none = 'INVALID_ARGUMENTS: Iceberg snapshot ID does not exists: 77'
    expect(await runner.outcome(reading, under({}))).toBe(none)
    expect(await runner.outcome(reading, under({ privileges: [] }))).toBe(
      'PERMISSION_DENIED: Access Denied: Cannot select from table memory.default.t',
    )
  })
})
