import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SessionContext } from '../../../src/sql/front-end.ts'
import { openTableRunner, type TableRunner } from '../../support/table-runner.ts'
import { rightsUnder } from '../../support/rights-under.ts'

const SELECT = ['SELECT']

/** A session of a user under rules. A user's groups are looked up by name. */
function under(rules: object, user = 'ana', faults: string[] = []): Partial<SessionContext> {
  const groups = ['staff', "it's"]
  return {
    user,
    groups,
    rightsOf: rightsUnder(rules),
    onRuleFault: (text) => faults.push(text),
  }
}

describe('Statements over tables under access rules', { timeout: 300_000 }, () => {
  let runner: TableRunner
  beforeAll(async () => {
    runner = await openTableRunner()
    await runner.createTable('t', `SELECT * FROM (VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 0)) v(id, name, pay)`)
    await runner.createTable('u', `SELECT * FROM (VALUES (1, 'x'), (3, 'y')) v(id, tag)`)
    await runner.createView('v', 'SELECT id, name, pay * 2 AS twice FROM t', { owner: 'olga' })
    await runner.createView('w', 'SELECT id, pay FROM t', { runAsInvoker: true, owner: 'olga' })
  })
  afterAll(() => runner.close())

  const denied = (what: string): string => `PERMISSION_DENIED: Access Denied: ${what}`

  const noPay = { tables: [{ table: 't', privileges: SELECT, columns: [{ name: 'pay', allow: false }] }] }

  it.each([
    'SELECT pay FROM t',
    'SELECT * FROM t',
    'SELECT t.* FROM t',
    'TABLE t',
    'SELECT id FROM t WHERE pay > 3',
    'SELECT count(pay) FROM t',
    'SELECT count(*) FROM t GROUP BY pay',
    'SELECT id FROM t ORDER BY pay',
    'SELECT id FROM (SELECT id, pay FROM t)',
    'SELECT id FROM (SELECT id FROM t ORDER BY pay)',
    'SELECT 1 FROM t a JOIN t b USING (pay)',
    'SELECT 1 WHERE EXISTS (SELECT pay FROM t)',
    'WITH q AS (TABLE t) SELECT id FROM q',
    'SELECT max_by(id, pay) FROM t',
    'SELECT row_number() OVER (ORDER BY pay) FROM t',
    'SELECT (SELECT max(t.pay) FROM t) ',
    'SELECT id FROM w WHERE id IN (SELECT pay FROM w)',
    'SELECT * FROM t MATCH_RECOGNIZE (ORDER BY id MEASURES A.pay AS p PATTERN (A) DEFINE A AS true)',
    'SELECT * FROM TABLE(exclude_columns(TABLE(t), DESCRIPTOR(name)))',
    'EXPLAIN SELECT pay FROM t',
  ])('%s is refused if a column may not be selected', async (sql) => {
    expect(await runner.outcome(sql.replace('EXPLAIN ', ''), under(noPay))).toBe(
      denied(`Cannot select from table memory.default.t`),
    )
  })

  it.each([
    ['SELECT count(*) FROM t', [[3]]],
    ['SELECT id, name FROM t WHERE id = 2', [[2, 'b']]],
    ['SELECT * FROM TABLE(exclude_columns(TABLE(t), DESCRIPTOR(pay))) WHERE id = 1', [[1, 'a']]],
    ['SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM t) AND id = 3', [[1]]],
  ])('%s is accepted, since it does not read the forbidden column', async (sql, rows) => {
    expect(await runner.outcome(sql, under(noPay))).toEqual(rows)
  })

  it('use the first rule that matches, after the rules of the catalog', async () => {
    const rules = { tables: [{ user: 'bob', privileges: [] }, { privileges: SELECT }] }
    expect(await runner.outcome('SELECT count(*) FROM t', under(rules))).toEqual([[3]])
    expect(await runner.outcome('SELECT count(*) FROM t', under(rules, 'bob'))).toBe(
      denied('Cannot select from table memory.default.t'),
    )
    const closed = { ...rules, catalogs: [{ user: 'olga', allow: 'all' }] }
    expect(await runner.outcome('SELECT count(*) FROM t', under(closed))).toBe(denied('Cannot access catalog memory'))
    expect(await runner.outcome('SELECT nobody FROM t', under(closed))).toMatch(/^COLUMN_NOT_FOUND/)
  })

  it("run a view with its owner's rights, which must be grantable, or with those of the invoker", async () => {
    const rules = (privileges: readonly string[]): object => ({
      tables: [
        { user: 'olga', privileges },
        { user: 'ana', table: 'v|w', privileges: SELECT },
      ],
    })
    expect(await runner.outcome('SELECT twice FROM v WHERE id = 2', under(rules(['GRANT_SELECT'])))).toEqual([[40]])
    expect(await runner.outcome('SELECT twice FROM v', under(rules(SELECT)))).toBe(
      denied(
        `View owner does not have sufficient privileges: View owner 'olga' cannot create view that selects from memory.default.t`,
      ),
    )
    expect(await runner.outcome('SELECT count(*) FROM v', under(rules([])))).toBe(
      denied('View owner does not have sufficient privileges: Cannot select from table memory.default.t'),
    )
    expect(await runner.outcome('SELECT id FROM w', under(rules(['GRANT_SELECT'])))).toBe(
      denied('Cannot select from table memory.default.t'),
    )
    expect(await runner.outcome('SELECT twice FROM v WHERE id = 1', under(rules(SELECT), 'olga'))).toEqual([[20]])
  })

  it.each([
    ['SCHEMA memory.default', 'bob', 'schema memory.default', 'USER bob'],
    ['TABLE t', 'USER bob', 'table memory.default.t', 'USER bob'],
    ['VIEW v', 'bob', 'view memory.default.v', 'USER bob'],
  ])('ALTER %s SET AUTHORIZATION %s needs ownership and an authorization rule', async (entity, owner, shown, named) => {
    const sql = `ALTER ${entity} SET AUTHORIZATION ${owner}`
    const refusal = denied(`Cannot set authorization for ${shown} to ${named}`)
    const gives = { authorization: [{ original_user: 'ana', new_user: 'bob' }] }
    expect(await runner.outcome(sql, under({}))).toBe(refusal)
    expect(await runner.outcome(sql, under({ ...gives, schemas: [], tables: [{ privileges: SELECT }] }))).toBe(refusal)
    expect(await runner.outcome(sql.replace('bob', 'zoe'), under(gives))).toBe(refusal.replace('bob', 'zoe'))
    expect(await runner.outcome(sql, under(gives))).toBe(
      `NOT_SUPPORTED: This connector does not support setting an owner on a ${entity.split(' ')[0]!.toLowerCase()}`,
    )
    expect(await runner.outcome(`ALTER ${entity} SET AUTHORIZATION ROLE r`, under(gives))).toMatch(
      /^ROLE_NOT_FOUND: .*Role 'r' does not exist$/,
    )
  })

  const filtered = (filter: string, more: object = {}): object => ({
    tables: [{ table: 't', privileges: SELECT, filter, ...more }, { privileges: ['SELECT', 'GRANT_SELECT'] }],
  })

  it.each([
    ['pay <> 0', 'SELECT count(*) FROM t', [[2]]],
    ['pay <> 0', 'SELECT sum(100 / pay) FROM t', [[15]]],
    ['pay <> 0', 'SELECT count(*) FROM t WHERE 100 / pay > 5', [[1]]],
    ['pay <> 0', `SELECT count(*) FROM t WHERE 1 / coalesce(nullif(pay, 7), 0) = 0`, [[2]]],
    ['pay <> 0', 'SELECT count(*) FROM t JOIN u ON t.id = u.id AND 100 / t.pay > 5', [[1]]],
    ['pay <> 0', 'SELECT count(*) FROM u LEFT JOIN t ON 100 / t.pay = u.id * 10', [[2]]],
    ['pay <> 0', 'SELECT count(*) FROM (SELECT 100 / pay AS q FROM t) WHERE q > 0', [[2]]],
    ['pay <> 0', 'SELECT id FROM t WHERE 100 / pay > 0 ORDER BY 100 / pay LIMIT 1', [[2]]],
    ['pay <> 0', `SELECT count(*) FROM t WHERE CAST(substr('0a', 1, 1) AS bigint) < 100 / pay`, [[2]]],
    ['pay <> 0', 'SELECT count(*) FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.id = u.id AND 100 / t.pay > 0)', [[1]]],
    ['abs(pay) > 0 AND length(name) = 1', 'SELECT count(*) FROM t WHERE 100 % pay = 0', [[2]]],
    ['id IN (SELECT id FROM u)', 'SELECT id FROM t ORDER BY 1', [[1], [3]]],
    ['EXISTS (SELECT 1 FROM u WHERE u.id = t.id)', 'SELECT id FROM t ORDER BY 1', [[1], [3]]],
    [`cardinality(current_groups()) = 2 AND contains(current_groups(), 'it''s')`, 'SELECT count(*) FROM t', [[3]]],
    [`name = 'a' OR current_user = 'bob'`, 'SELECT a.id, b.id FROM t a CROSS JOIN t b', [[1, 1]]],
    ['NULL', 'SELECT count(*) FROM t', [[0]]],
    ['id < 3', 'SELECT twice FROM v ORDER BY 1', [[0], [20], [40]]],
    ['id < 3', 'SELECT pay FROM w ORDER BY 1', [[10], [20]]],
    ['id < 3', 'WITH q AS (SELECT * FROM t) SELECT count(*) FROM q a, q b', [[4]]],
    ['id < 3', 'SELECT id FROM t UNION ALL SELECT id FROM t WHERE id > 1 ORDER BY 1', [[1], [2], [2]]],
    [
      'id < 3',
      'SELECT m FROM t MATCH_RECOGNIZE (ORDER BY id MEASURES max(A.pay) AS m PATTERN (A+) DEFINE A AS true)',
      [[20]],
    ],
  ])('apply the filter %s: %s', async (filter, sql, rows) => {
    const rules = filtered(filter)
    const forOwners = {
      tables: [{ user: 'olga', privileges: ['GRANT_SELECT'] }, ...(rules as { tables: object[] }).tables],
    }
    expect(await runner.outcome(sql, under(forOwners))).toEqual(rows)
  })

  const masked = (mask: string, more: object = {}): object => ({
    tables: [{ table: 't', privileges: SELECT, columns: [{ name: 'pay', mask }], ...more }, { privileges: SELECT }],
  })

  it.each([
    ['NULL', 'SELECT max(pay) FROM t', [[null]]],
    ['-pay', 'SELECT pay FROM t WHERE pay < -5 ORDER BY pay', [[-20], [-10]]],
    ['pay + 1', 'SELECT max(100 / pay) FROM t', [[100]]],
    ['pay + 1', 'SELECT count(*) FROM t WHERE 100 / pay > 5', [[2]]],
    [
      '(SELECT max(id) FROM u WHERE u.id <= t.id)',
      'SELECT id, pay FROM t ORDER BY id',
      [
        [1, 1],
        [2, 1],
        [3, 3],
      ],
    ],
    ['CAST(1 AS tinyint)', 'SELECT DISTINCT pay FROM t', [[1]]],
  ])('apply the mask %s: %s', async (mask, sql, rows) => {
    expect(await runner.outcome(sql, under(masked(mask)))).toEqual(rows)
  })

  it.each([
    "SELECT count(*) FROM t WHERE (ROW(id, -IF(pay = 0, INTEGER '-2147483648', pay))) IS NOT NULL",
    `SELECT count(*) FROM t WHERE (IF(pay = 0, interval '178956970' year, interval '1' year) * 2) IS NOT NULL`,
    `SELECT count(*) FROM t WHERE (IF(pay = 0, DATE '290000-01-01', DATE '2020-01-01') + IF(pay = 0, interval '178956970' year, interval '1' year)) IS NOT NULL`,
  ])('%s does not evaluate the condition for rows that a filter removes', async (sql) => {
    expect(await runner.outcome(sql, under(filtered('abs(pay) > 0')))).toEqual([[2]])
  })

  it.each([
    ['abs(pay) > 0', 'SELECT count(*) FROM t JOIN u ON t.pay = u.id WHERE u.id = 3', [[0]]],
    ['abs(pay) > 0', 'SELECT count(*) FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.pay = u.id)', [[0]]],
  ])('do not evaluate a mask for rows that a filter removes: %s: %s', async (filter, sql, rows) => {
    expect(await runner.outcome(sql, under(masked('100 / pay', { filter })))).toEqual(rows)
  })

  it.each([
    ['v', 'DEFINER AS\nSELECT id, name, pay * 2 AS twice FROM t'],
    ['w', 'INVOKER AS\nSELECT id, pay FROM t'],
  ])('SHOW CREATE VIEW %s shows the security mode', async (view, text) => {
    expect(await runner.outcome(`SHOW CREATE VIEW ${view}`)).toEqual([
      [`CREATE VIEW memory.default.${view} SECURITY ${text}`],
    ])
  })

  it.each([
    `ARRAY[1, NULL]`,
    `MAP(ARRAY['a', 'b'], ARRAY[1, NULL])`,
    `CAST(ROW(1, NULL) AS row(a bigint, b varchar))`,
    `ARRAY[MAP(ARRAY[ROW(1)], ARRAY[nan()])]`,
    `JSON '{"a": [1, null]}'`,
    `UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59'`,
    `TIMESTAMP '2020-01-01 01:02:03.123456789012 Europe/Berlin'`,
    `TIMESTAMP '2020-01-01 01:02:03.123456789'`,
    `TIME '01:02:03.123456789 +05:30'`,
    `INTERVAL '3' MONTH`,
    `INTERVAL '1' SECOND`,
    `nan()`,
    `CAST('-0.0' AS double)`,
    `CAST('ab' AS char(4))`,
    `X'00ff'`,
    `DECIMAL '12345678901234567890123456789012345678'`,
    `DATE '-0044-03-15'`,
    `IPADDRESS '10.0.0.1'`,
    `approx_set(1)`,
    `true`,
  ])('keep a value of any type through a filter: %s', async (value) => {
    const table = `SELECT id, ${value} AS v FROM (VALUES 1, 2) x(id)${value.startsWith('approx') ? ' GROUP BY id' : ''}`
    await runner.createTable('typed', table)
    const rules = { tables: [{ table: 'typed', privileges: SELECT, filter: 'id < 2' }] }
    const shown = value.startsWith('approx') ? 'cardinality(v)' : 'v, CAST(v IS NULL AS varchar), typeof(v)'
    const plain = await runner.rows(`SELECT ${shown} FROM typed WHERE id < 2`)
    expect(plain).toHaveLength(1)
    expect(await runner.outcome(`SELECT ${shown} FROM typed`, under(rules))).toEqual(plain)
  })

  it('filter by stored values, not by masked values', async () => {
    expect(await runner.outcome('SELECT id, pay FROM t', under(masked('0', { filter: 'pay = 20' })))).toEqual([[2, 0]])
  })

  it.each([
    ['filter', 'pay +', 'INVALID_ROW_FILTER'],
    ['filter', 'salary = 3', 'COLUMN_NOT_FOUND'],
    ['filter', 'pay', 'TYPE_MISMATCH'],
    ['filter', 'count(*) > 3', 'EXPRESSION_NOT_SCALAR'],
    ['filter', 'id IN (SELECT id FROM t)', 'INVALID_ROW_FILTER'],
    ['filter', 'id IN (SELECT id FROM missing)', 'TABLE_NOT_FOUND'],
    ['mask', `'x'`, 'TYPE_MISMATCH'],
    ['mask', 'salary', 'COLUMN_NOT_FOUND'],
    ['mask', '(SELECT max(pay) FROM t)', 'INVALID_COLUMN_MASK'],
  ])('report a wrong %s %s in full only to the keeper of the rules', async (kind, text, errorName) => {
    const faults: string[] = []
    const rules = kind === 'filter' ? filtered(text) : masked(text)
    const outcome = String(await runner.outcome('SELECT pay FROM t', under(rules, 'ana', faults)))
    expect(outcome.startsWith(`${errorName}: `)).toBe(true)
    expect(outcome).not.toMatch(/salary|missing|count/)
    expect(faults.length).toBeGreaterThan(0)
  })

  it.each([
    ['SELECT name FROM t', ['name']],
    ['SELECT count(*) FROM t WHERE length(name) > id', ['id', 'name']],
    ['WITH q AS (SELECT id, max(name) AS m FROM t GROUP BY id) SELECT m FROM q', ['id', 'name']],
    ['SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t o WHERE o.id = t.id)', ['id']],
  ])('%s does not report the columns that only filters and masks read', async (sql, columns) => {
    const rule = {
      ...noPay.tables[0],
      columns: [
        ...noPay.tables[0]!.columns,
        { name: 'name', mask: "IF(pay > 3, name, 'x')", mask_environment: { user: 'root' } },
      ],
      filter: 'pay >= 0',
      filter_environment: { user: 'root' },
    }
    const rules = { tables: [{ user: 'ana', ...rule }, { privileges: SELECT }] }
    const { reads, plan } = await runner.reported(sql, under(rules))
    expect(reads.map((read) => read.columns.toSorted())).toEqual([columns])
    expect(plan).not.toContain('pay')
    expect((await runner.reported('SELECT id FROM t WHERE pay > 1', under(rules, 'root'))).plan).toContain('pay')
  })

  it('read the tables in a rule with the user of its environment', async () => {
    const rules = (environment?: object): object => ({
      tables: [
        {
          user: 'ana',
          table: 't',
          privileges: SELECT,
          filter: 'id IN (SELECT id FROM u)',
          filter_environment: environment,
        },
        { user: 'root', privileges: SELECT },
      ],
    })
    expect(await runner.outcome('SELECT id FROM t', under(rules()))).toBe(
      denied('Cannot select from table memory.default.u'),
    )
    expect(await runner.outcome('SELECT id FROM t ORDER BY 1', under(rules({ user: 'root' })))).toEqual([[1], [3]])
  })
})
