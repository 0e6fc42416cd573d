import { expect, it } from 'vitest'
import { StatementText } from '../../../src/sql/parsed-statement.ts'
import { queryTypeOf } from '../../../src/sql/statements/query-type.ts'

const prepared = { p: 'DELETE FROM t', again: 'EXECUTE p', loop: 'EXPLAIN ANALYZE EXECUTE loop' }

it.each([
  ['VALUES 1', 'SELECT'],
  ['EXPLAIN SELECT 1', 'EXPLAIN'],
  ['EXPLAIN ANALYZE SELECT 1', 'SELECT'],
  ['SHOW TABLES', 'DESCRIBE'],
  ['DESCRIBE INPUT p', 'DESCRIBE'],
  ['CREATE TABLE t AS SELECT 1 AS a', 'INSERT'],
  ['INSERT INTO t SELECT 1', 'INSERT'],
  ['UPDATE t SET a = 1', 'UPDATE'],
  ['SET SESSION a = 1', 'DATA_DEFINITION'],
  ['CALL system.runtime.kill_query()', 'DATA_DEFINITION'],
  ['EXECUTE p', 'DELETE'],
  ["EXECUTE IMMEDIATE 'DROP TABLE t'", 'DATA_DEFINITION'],
  ['EXECUTE again', undefined],
  ['EXECUTE loop', undefined],
  ['EXECUTE unknown', undefined],
  ['SELEKT 1', undefined],
])('The query type of a statement: %s: %s', (sql, type) => {
  expect(queryTypeOf(new StatementText(sql, prepared))).toBe(type)
})
