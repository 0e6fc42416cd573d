import { describe, expect, it } from 'vitest'
import { checkLimits, checkTextLength, flattenTerms, syntaxLimits } from '../../../src/sql/syntax/limits.ts'
import { parseExpressionText, parseStatement } from '../../../src/sql/syntax/parser.ts'

const check = (sql: string) => (): void => checkLimits(sql, parseStatement(sql))
const times = (text: string, count: number): string => text.repeat(count)

describe('The limits on a syntax tree', () => {
  it.each([
    ['200 calls', `SELECT ${times('abs(', 200)}1${times(')', 200)}`],
    ['900 additions', `SELECT a${times(' + a', 900)}`],
    ['5,000 terms of AND', `SELECT a${times(' AND a <> 1', 5_000)}`],
    ['500 terms of OR', `SELECT a${times(' OR (a = 1 AND b <> 2)', 499)}`],
    ['5,000 terms of OR with constants', `SELECT a = 0${times(" OR a = 'x'", 4_999)}`],
    ['an IN list', `SELECT a IN (1${times(', 1', 50_000)})`],
    ['a chain of ||', `SELECT a${times(' || a', 900)}`],
    ['40 joins', `SELECT 1 FROM t${times(' CROSS JOIN t', 40)}`],
    ['30 joins on either side of UNION', `SELECT 1 FROM t${times(', t', 30)} UNION SELECT 1 FROM t${times(', t', 30)}`],
    [
      'many queries with a join',
      `WITH ${Array.from({ length: 60 }, (_, i) => `t${i} AS (SELECT 1 FROM a, b)`).join()} SELECT 1`,
    ],
    ['500 queries in UNION', `SELECT 1${times(' UNION SELECT 1', 500)}`],
  ])('accept %s', (_, sql) => expect(check(sql)).not.toThrow())

  it.each([
    ['251 calls', `SELECT ${times('abs(', 260)}1${times(')', 260)}`, /nested expressions/],
    ['additions and subtractions', `SELECT a${times(' + a - a', 130)}`, /nested expressions/],
    ['2001 terms of OR', `SELECT a${times(' OR (a = 1 AND b <> 2)', 2_001)}`, /terms in one OR \(use IN/],
    [
      'terms in parentheses',
      `SELECT (a${times(' OR a > b', 1_200)}) OR (a${times(' OR a > b', 1_200)})`,
      /terms in one OR/,
    ],
    ['terms with constants', `SELECT a = 0${times(' OR a = 1', 5_001)}`, /terms in one OR/],
    ['41 joins', `SELECT 1 FROM t${times(' CROSS JOIN t', 41)}`, /joins: 41, at most 40/],
    ['41 joins through queries', `SELECT 1 FROM t${times(' JOIN (SELECT 1 FROM a, b) x ON true', 21)}`, /joins/],
  ])('refuse %s', (_, sql, message) => {
    expect(check(sql)).toThrow(expect.objectContaining({ errorName: 'QUERY_EXCEEDED_COMPILER_LIMIT' }))
    expect(check(sql)).toThrow(message)
    expect(check(sql)).toThrow(/^line 1:\d+: /)
  })

  it('accept a text of at most 1,000,000 characters', () => {
    expect(() => checkTextLength(times('x', syntaxLimits.textLength))).not.toThrow()
    expect(() => checkTextLength(times('x', syntaxLimits.textLength + 1))).toThrow(
      expect.objectContaining({ errorName: 'QUERY_TEXT_TOO_LARGE' }),
    )
  })

  it('count the terms of one operator through parentheses, in order', () => {
    const expression = parseExpressionText('(a OR (b OR c)) OR (d AND e) OR f')
    if (expression.kind !== 'LogicalExpression') throw new Error('not logical')
    const kinds = flattenTerms(expression).map((term) => (term.kind === 'Identifier' ? term.value : term.kind))
    expect(kinds).toEqual(['a', 'b', 'c', 'LogicalExpression', 'f'])
  })

  it.each([
    'SELECT 1 AS @',
    'SELECT @ FROM t',
    'SELECT * FROM @',
    'SELECT * FROM a.@.c',
    'SELECT * FROM t AS @ (x)',
    'SELECT * FROM t AS x (@)',
    'WITH @ AS (SELECT 1) SELECT 1',
    'SELECT @(1)',
    'SELECT r.@ FROM t',
    'SELECT CAST(a AS ROW(@ integer))',
    'CREATE TABLE @ AS SELECT 1',
    'CREATE VIEW v.@ AS SELECT 1',
    'CREATE SCHEMA c.@',
    'USE @.s',
    'SET SESSION @ = 1',
    'PREPARE @ FROM SELECT 1',
    'SET ROLE @ IN c',
    'SELECT sum(x) OVER @ FROM t WINDOW @ AS (ORDER BY x)',
  ])('refuse a name of more than 1,024 bytes: %s', (sql) => {
    const named = (name: string): string => sql.replaceAll('@', () => name)
    for (const name of ['a'.repeat(1024), `"${'本'.repeat(340)}"`])
      expect(() => parseStatement(named(name))).not.toThrow()
    for (const name of ['a'.repeat(1025), `"${'本'.repeat(342)}"`])
      expect(() => parseStatement(named(name))).toThrow(
        expect.objectContaining({
          errorName: 'SYNTAX_ERROR',
          message: expect.stringMatching(/longer than 1024 bytes/),
        }),
      )
  })
})
