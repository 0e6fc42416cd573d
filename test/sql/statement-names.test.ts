import { describe, expect, it } from 'vitest'
import { StatementText } from '../../src/sql/parsed-statement.ts'
import { namesIn, readsOnly } from '../../src/sql/statement-names.ts'

const prepared = { p: 'INSERT INTO c.s.t SELECT * FROM other', again: 'EXECUTE p' }
const textOf = (sql: string) => new StatementText(sql, prepared)

/** The names of a statement, as `catalog.schema.table`. */
function names(sql: string) {
  const { reads, writes, catalogs } = namesIn(textOf(sql).parse())
  return [reads.map((parts) => parts.join('.')), writes.map((parts) => parts.join('.')), catalogs]
}

describe('`namesIn` lists the tables that a statement reads and writes, and the catalogs that it names', () => {
  it.each<[string, readonly string[], readonly string[], readonly string[]]>([
    ['SELECT 1', [], [], []],
    ['SELECT * FROM A JOIN "S".b ON x = y, Lake.s.c', ['a', 's.b', 'lake.s.c'], [], ['lake']],
    ['WITH a AS (SELECT * FROM b) SELECT * FROM a, s.a', ['b', 's.a'], [], []],
    ['SELECT * FROM t WHERE x IN (SELECT y FROM u) AND c.s.f(x)', ['t', 'u'], [], ['c']],
    ['SELECT * FROM TABLE(pg.system.query(query => 1))', [], [], ['pg']],
    ['INSERT INTO t SELECT * FROM t, u', ['t', 'u'], ['t'], []],
    ['CREATE TABLE c.s.t AS SELECT * FROM u', ['u'], ['c.s.t'], ['c']],
    ['CREATE TABLE t (LIKE c.s.u)', ['c.s.u'], ['t'], ['c']],
    ['UPDATE t SET a = (SELECT max(b) FROM u)', ['u'], ['t'], []],
    ['MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE', ['u'], ['t'], []],
    ['ALTER TABLE a RENAME TO b', [], ['a', 'b'], []],
    ['COMMENT ON COLUMN c.s.t.x IS NULL', [], ['c.s.t'], ['c']],
    ['GRANT SELECT ON SCHEMA c.s TO u', [], [], ['c']],
    ['SHOW COLUMNS FROM c.s.t', ['c.s.t'], [], ['c']],
    ['SHOW CREATE SCHEMA c.s', [], [], ['c']],
    ['SHOW STATS FOR t', ['t'], [], []],
    ['SHOW SCHEMAS FROM C', [], [], ['c']],
    ['SHOW TABLES FROM c.s', [], [], ['c']],
    ['USE c.s', [], [], ['c']],
    ['SET SESSION lake.x = 1', [], [], ['lake']],
    ['CREATE FUNCTION c.s.f(x bigint) RETURNS bigint RETURN x', [], [], ['c']],
    ['DROP FUNCTION c.s.f(bigint)', [], [], ['c']],
    ['CALL c.s.p()', [], [], ['c']],
    ['EXPLAIN ANALYZE SELECT * FROM t', ['t'], [], []],
    ['EXECUTE P', ['other'], ['c.s.t'], ['c']],
    ["EXPLAIN EXECUTE IMMEDIATE 'SELECT * FROM t'", ['t'], [], []],
    ['EXECUTE again', [], [], []],
    ['EXECUTE unknown', [], [], []],
    ['PREPARE q FROM SELECT * FROM t', [], [], []],
    ['SELECT FROM', [], [], []],
  ])('%s', (sql, reads, writes, catalogs) => {
    expect(names(sql)).toEqual([reads, writes, catalogs])
  })
})

it.each([
  ['SELECT * FROM t FOR VERSION AS OF 3', true],
  ['CREATE TABLE u AS SELECT * FROM (SELECT a FROM t FOR TIMESTAMP AS OF now())', true],
  ['SELECT * FROM t', false],
])('`namesIn` tells whether a statement names a version of a table: %s', (sql, versions) => {
  expect(namesIn(textOf(sql).parse()).namesVersions).toBe(versions)
})

it.each([
  ['SELECT * FROM t', true],
  ['SHOW TABLES', true],
  ['EXPLAIN INSERT INTO t SELECT 1', true],
  ['EXPLAIN ANALYZE INSERT INTO t SELECT 1', false],
  ['EXECUTE p', false],
  ['SET SESSION a = 1', false],
  ['SELECT FROM', false],
])('`readsOnly` says whether a statement only reads: %s: %s', (sql, only) => {
  expect(readsOnly(textOf(sql))).toBe(only)
})
