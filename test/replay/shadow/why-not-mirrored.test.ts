import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { whyNotMirrored } from '../../../src/replay/shadow/why-not-mirrored.ts'
import { sampleData } from '../../support/query-events.ts'

const { session } = sampleData.QueryCreated
const reasonOf = (sql: string, more: Partial<typeof session> = {}) =>
  whyNotMirrored({ sql, session: { ...session, ...more } })

const READS = [
  'SELECT a FROM t',
  'WITH q AS (SELECT 1) SELECT * FROM q',
  'VALUES 1, 2',
  'TABLE t',
  'SELECT * FROM TABLE(sequence(1, 3))',
  'SHOW TABLES',
  'DESCRIBE t',
  'SHOW CREATE TABLE t',
  'EXPLAIN SELECT 1',
]
const WRITES = [
  'INSERT INTO t SELECT 1',
  'CREATE TABLE t AS SELECT 1 a',
  'CREATE TABLE t (a bigint)',
  'DELETE FROM t',
  'UPDATE t SET a = 1',
  'MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE',
  'DROP TABLE t',
  'CREATE VIEW v AS SELECT 1 a',
  'REFRESH MATERIALIZED VIEW v',
  'ALTER TABLE t EXECUTE optimize',
  'TRUNCATE TABLE t',
  "CALL system.runtime.kill_query('q', 'no')",
  'ANALYZE t',
  'GRANT SELECT ON t TO USER u',
  "SET SESSION query_max_run_time = '1m'",
  'USE c.s',
  'START TRANSACTION',
]
const EFFECTS = [
  `SELECT * FROM TABLE(pg.system.query(query => 'DELETE FROM t'))`,
  `SELECT * FROM (SELECT 1) a, TABLE(f(x => TABLE(t)))`,
  `SELECT 1 WHERE EXISTS (SELECT 1 FROM TABLE(remote('x')))`,
]

describe('`whyNotMirrored`', () => {
  it.each(READS)('lets the read pass: %s', (sql) => {
    expect(reasonOf(sql)).toBeUndefined()
  })

  it.each(WRITES)('refuses the write: %s', (sql) => {
    expect(reasonOf(sql)).toBe('write')
  })

  it.each(EFFECTS)('refuses a table function that may have effects: %s', (sql) => {
    expect(reasonOf(sql)).toBe('effects')
  })

  it('refuses a write and an effect in every form in which a statement executes or explains it', () => {
    const quoted = (sql: string): string => `'${sql.replaceAll("'", "''")}'`
    const form = fc.constantFrom<(sql: string) => { sql: string; prepared?: string }>(
      (sql) => ({ sql: `EXPLAIN ANALYZE ${sql}` }),
      (sql) => ({ sql: `EXPLAIN ${sql}` }),
      (sql) => ({ sql: `EXECUTE IMMEDIATE ${quoted(sql)}` }),
      (sql) => ({ sql: `EXPLAIN EXECUTE IMMEDIATE ${quoted(sql)}` }),
      (sql) => ({ sql: `PREPARE p FROM ${sql}` }),
      (sql) => ({ sql: 'EXECUTE p', prepared: sql }),
      (sql) => ({ sql: 'execute P', prepared: `/* SELECT 1 */ ${sql}` }),
      (sql) => ({ sql: 'EXPLAIN ANALYZE EXECUTE p', prepared: sql }),
    )
    fc.assert(
      fc.property(fc.constantFrom(...WRITES, ...EFFECTS), form, (bad, make) => {
        const { sql, prepared } = make(bad)
        expect(reasonOf(sql, { preparedStatements: prepared === undefined ? {} : { p: prepared } })).toBeDefined()
      }),
    )
  })

  it.each([
    ['text that does not parse', 'SELECT FROM WHERE', {}, 'notAnalysed'],
    ['EXECUTE of a statement that the client did not send', 'EXECUTE p', {}, 'write'],
    [
      'statement of a session with names that differ only in their case',
      'EXECUTE "P"',
      { preparedStatements: { p: 'SELECT 1', P: 'DELETE FROM t' } },
      'notAnalysed',
    ],
    ['statement of a transaction', 'SELECT 1', { transactionId: 'f3a4' }, 'transaction'],
    ['EXPLAIN ANALYZE', 'EXPLAIN ANALYZE SELECT 1', {}, 'notAQuery'],
  ])('refuses a %s', (_, sql, more, reason) => {
    expect(reasonOf(sql, more)).toBe(reason)
  })

  it('lets a statement outside of a transaction and a prepared read pass', () => {
    expect(reasonOf('SELECT 1', { transactionId: 'NONE' })).toBeUndefined()
    expect(reasonOf('EXECUTE p USING 1', { preparedStatements: { p: 'SELECT ?' } })).toBeUndefined()
  })
})
