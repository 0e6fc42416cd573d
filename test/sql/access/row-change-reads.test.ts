import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SessionContext } from '../../../src/sql/front-end.ts'
import { openTableRunner, type TableRunner } from '../../support/table-runner.ts'
import { rightsUnder } from '../../support/rights-under.ts'

const DENIED = 'PERMISSION_DENIED: Access Denied: Cannot select from table memory.default.t'
const WRITES = ['INSERT', 'UPDATE', 'DELETE']

/** A user with these rights on table t who may read every other table. */
function under(rule: object): Partial<SessionContext> {
  const rules = { tables: [{ user: 'ana', table: 't', ...rule }, { privileges: ['SELECT'] }] }
  return { user: 'ana', rightsOf: rightsUnder(rules) }
}

const noSelect = { privileges: WRITES }
const hiddenV = { privileges: ['SELECT', ...WRITES], columns: [{ name: 'v', allow: false }] }

/** Changes of t that read its column v. */
const readingV = [
  "UPDATE t SET k = 1 WHERE v = 'secret'",
  'UPDATE t SET k = length(v)',
  'UPDATE t SET v = v',
  "UPDATE t SET k = 1 / (CASE WHEN v = 'secret' THEN 0 ELSE 1 END)",
  'UPDATE t SET k = (SELECT max(id) FROM s WHERE s.tag = t.v)',
  'UPDATE t SET k = 1 WHERE EXISTS (SELECT t.v FROM s)',
  'UPDATE t SET k = 1 WHERE false AND v IS NULL',
  "UPDATE t SET k = cardinality(filter(ARRAY['a'], x -> x = v))",
  "DELETE FROM t WHERE v LIKE 's%'",
  'DELETE FROM t WHERE v IN (SELECT tag FROM s)',
  'DELETE FROM t WHERE t.v IS NULL',
  'MERGE INTO t USING s ON t.v = s.tag WHEN NOT MATCHED THEN INSERT (k) VALUES (1)',
  "MERGE INTO t USING s ON v = 'secret' WHEN MATCHED THEN DELETE",
  'MERGE INTO t USING s ON s.id = 1 AND EXISTS (SELECT 1 FROM s o WHERE o.tag = t.v) WHEN MATCHED THEN DELETE',
  "MERGE INTO t USING s ON false WHEN MATCHED AND v = 'secret' THEN UPDATE SET k = 1",
  "MERGE INTO t USING s ON false WHEN MATCHED AND v = 'secret' THEN DELETE",
  'MERGE INTO t USING s ON false WHEN NOT MATCHED AND v IS NULL THEN INSERT (k) VALUES (1)',
  'MERGE INTO t USING s ON false WHEN MATCHED THEN UPDATE SET k = length(v)',
  'MERGE INTO t USING s ON false WHEN NOT MATCHED THEN INSERT (k, v) VALUES (1, v)',
  'MERGE INTO t AS a USING s ON s.tag = a.v WHEN MATCHED THEN DELETE',
]

/** Changes of t that read none of its columns, with the number of rows that they write. */
const readingNothing: readonly (readonly [string, number])[] = [
  ['DELETE FROM t', 2],
  ['DELETE FROM t WHERE 1 = (SELECT count(*) FROM s)', 2],
  ['UPDATE t SET k = 123', 2],
  ["UPDATE t SET k = 1, v = 'x' WHERE true", 2],
  ['UPDATE t SET k = (SELECT max(id) FROM s)', 2],
  ['MERGE INTO t USING s ON s.id = 1 WHEN MATCHED THEN UPDATE SET v = s.tag', 2],
  ['MERGE INTO t USING s ON s.id = 1 WHEN MATCHED THEN DELETE', 2],
  ['MERGE INTO t USING s ON false WHEN NOT MATCHED AND s.id = 1 THEN INSERT VALUES (s.id, s.tag)', 1],
]

describe('Changes of rows under access rules', { timeout: 300_000 }, () => {
  let runner: TableRunner
  beforeAll(async () => {
    runner = await openTableRunner()
    await runner.createTable('t', `SELECT * FROM (VALUES (1, 'secret'), (2, 'other')) x(k, v)`)
    await runner.createTable('s', `SELECT * FROM (VALUES (1, 'secret')) x(id, tag)`)
  })
  afterAll(() => runner.close())

  const rowsOf = async (sql: string, as: Partial<SessionContext>): Promise<unknown> => {
    const outcome = await runner.written(sql, as)
    return Array.isArray(outcome) ? outcome.length : outcome
  }

  it.each(readingV)('%s needs SELECT on the column that it reads', async (sql) => {
    expect(await rowsOf(sql, under(noSelect))).toBe(DENIED)
    expect(await rowsOf(sql, under(hiddenV))).toBe(DENIED)
    expect(String(await rowsOf(sql, under({ privileges: ['SELECT', ...WRITES] })))).not.toMatch(/PERMISSION_DENIED/)
  })

  it.each(readingNothing)('%s needs no SELECT on its table', async (sql, rows) => {
    expect(await rowsOf(sql, under(noSelect))).toBe(rows)
    expect(await rowsOf(sql, under(hiddenV))).toBe(rows)
  })

  it('need SELECT only on the columns that they read', async () => {
    for (const sql of [
      'UPDATE t SET v = NULL WHERE k = 1',
      'DELETE FROM t WHERE k = 1',
      'MERGE INTO t USING s ON t.k = s.id WHEN MATCHED THEN UPDATE SET v = s.tag',
    ]) {
      expect(await rowsOf(sql, under(noSelect)), sql).toBe(DENIED)
      expect(await rowsOf(sql, under(hiddenV)), sql).toBe(1)
    }
  })

  it('need SELECT on the table if a query in the statement reads it, even if no condition names a column', async () => {
    expect(await rowsOf('DELETE FROM t WHERE EXISTS (SELECT 1 FROM t)', under(noSelect))).toBe(DENIED)
    expect(await rowsOf('MERGE INTO t USING t s ON false WHEN MATCHED THEN DELETE', under(noSelect))).toBe(DENIED)
  })

  it('need SELECT in EXPLAIN and as prepared statements too', async () => {
    const preparedStatements = {
      u: 'UPDATE t SET k = ? WHERE v = ?',
      m: 'MERGE INTO t USING s ON t.v = ? WHEN MATCHED THEN DELETE',
      n: 'UPDATE t SET k = ?',
    }
    const as = { ...under(noSelect), preparedStatements }
    expect(await rowsOf("EXECUTE u USING 1, 'secret'", as)).toBe(DENIED)
    expect(await rowsOf("EXECUTE m USING 'secret'", as)).toBe(DENIED)
    expect(await rowsOf('EXECUTE n USING 1', as)).toBe(2)
    expect(await rowsOf("EXECUTE IMMEDIATE 'DELETE FROM t WHERE v = ?' USING 'secret'", as)).toBe(DENIED)
    for (const type of ['', '(TYPE VALIDATE) ', '(TYPE IO) ', '(TYPE LOGICAL) ']) {
      expect(await runner.outcome(`EXPLAIN ${type}DELETE FROM t WHERE v = 'secret'`, as), type).toBe(DENIED)
      expect(await runner.outcome(`EXPLAIN ${type}EXECUTE m USING 'secret'`, as), type).toBe(DENIED)
    }
  })

  it('do not need SELECT on the columns that a row filter reads', async () => {
    const filter = "v = 'secret'"
    expect(await rowsOf('DELETE FROM t', under({ ...noSelect, filter }))).toBe(1)
    expect(await rowsOf('DELETE FROM t', under({ ...hiddenV, filter }))).toBe(1)
    expect(await rowsOf('DELETE FROM t WHERE k = 1', under({ ...hiddenV, filter }))).toBe(1)
    expect(await rowsOf('DELETE FROM t WHERE k = 1', under({ ...noSelect, filter }))).toBe(DENIED)
    expect(await rowsOf("DELETE FROM t WHERE v = 'x'", under({ ...hiddenV, filter }))).toBe(DENIED)
  })
})
