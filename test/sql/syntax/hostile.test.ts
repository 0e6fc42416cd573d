import { describe, expect, it } from 'vitest'
import { EngineError } from '../../../src/shared/engine-error.ts'
import { tokenize } from '../../../src/sql/syntax/lexer.ts'
import { parseStatement } from '../../../src/sql/syntax/parser.ts'
import { printStatement } from '../../../src/sql/syntax/printer.ts'
import { redactSecrets } from '../../../src/sql/syntax/redact-secrets.ts'

function outcome(sql: string): string {
  try {
    printStatement(parseStatement(sql))
    return 'parsed'
  } catch (error) {
    if (error instanceof EngineError) return `${error.errorName}: ${error.message}`
    throw error
  }
}

const times = (text: string, count: number): string => text.repeat(count)
const chain = (operator: string, count: number): string =>
  Array.from({ length: count }, (_, index) => `a${index}`).join(` ${operator} `)

describe('The parser refuses deep nesting with a clear error', () => {
  it.each([
    ['parentheses', `SELECT ${times('(', 10_000)}1${times(')', 10_000)}`],
    ['open parentheses', `SELECT ${times('(', 500_000)}`],
    ['parentheses in FROM', `SELECT * FROM ${times('(', 10_000)}SELECT 1${times(')', 10_000)}`],
    ['NOT', `SELECT ${times('NOT ', 10_000)}true`],
    ['minus', `SELECT ${times('- ', 10_000)}x`],
    ['calls', `SELECT ${times('f(', 10_000)}1${times(')', 10_000)}`],
    ['CASE', `SELECT ${times('CASE WHEN a THEN ', 10_000)}1${times(' END', 10_000)}`],
    ['brackets', `SELECT ${times('[', 100_000)}`],
    ['subscripts', `SELECT a${times('[1]', 100_000)}`],
    ['fields', `SELECT a${times('.a', 100_000)}`],
    ['lambdas', `SELECT ${times('x -> ', 10_000)}1`],
    ['subqueries', `SELECT * FROM ${times('(SELECT * FROM ', 5_000)}t${times(')', 5_000)}`],
    ['EXISTS', `SELECT ${times('EXISTS (SELECT 1 WHERE ', 5_000)}true${times(')', 5_000)}`],
    ['IN', `SELECT 1 WHERE 1 ${times('IN (SELECT 1 WHERE 1 ', 5_000)}= 1${times(')', 5_000)}`],
    ['joins on the right', `SELECT 1 FROM t${times(' JOIN t', 5_000)}${times(' ON true', 5_000)}`],
    ['joins', `SELECT 1 FROM t${times(' CROSS JOIN t', 5_000)}`],
    ['UNION', `SELECT 1${times(' UNION ALL SELECT 1', 5_000)}`],
    ['types', `SELECT CAST(NULL AS ${times('ARRAY(', 10_000)}int${times(')', 10_000)})`],
    ['row types', `CREATE TABLE t (a ${times('ROW(', 300_000)}`],
    ['array types', `SELECT CAST(NULL AS int${times(' ARRAY', 10_000)})`],
    [
      'patterns',
      `SELECT * FROM t MATCH_RECOGNIZE (PATTERN (${times('(', 10_000)}a${times(')', 10_000)}) DEFINE a AS true)`,
    ],
    ['PREPARE', `${times('PREPARE a FROM ', 5_000)}SELECT 1`],
    ['EXPLAIN', `${times('EXPLAIN ', 5_000)}SELECT 1`],
    ['blocks', `CREATE FUNCTION f() RETURNS int ${times('BEGIN ', 5_000)}`],
    ['windows', `SELECT ${times('sum(1) OVER (ORDER BY ', 5_000)}`],
    ['POSITION', `SELECT ${times('position(', 100_000)}`],
    ['+', `SELECT ${chain('+', 5_000)}`],
    ['||', `SELECT ${chain('||', 5_000)}`],
  ])('%s', (_, sql) => {
    expect(outcome(sql)).toMatch(/^SYNTAX_ERROR: line \d+:\d+: statement is too large \(nested /)
  })
})

it('The tokenizer stops at the first parenthesis beyond the limit of nesting', () => {
  expect(tokenize(`SELECT ${times('([', 500_000)}`).types).toHaveLength(1_002)
  expect(tokenize(`SELECT ${times('()', 5_000)}`).tooDeepAt).toBeUndefined()
  expect(outcome(`SELECT\n${times('(', 2_000)}`)).toContain('line 2:1001: statement is too large')
})

describe('The parser accepts long statements that are not deep', () => {
  it.each([
    ['OR', `SELECT ${chain('OR', 5_000)}`],
    ['AND', `SELECT ${chain('AND', 5_000)}`],
    ['IN', `SELECT 1 WHERE 1 IN (${Array.from({ length: 100_000 }, (_, index) => index).join(',')})`],
    ['columns', `SELECT ${chain(',', 50_000)}`],
    ['CASE', `SELECT CASE ${times('WHEN 1 THEN 2 ', 50_000)}END`],
    ['a string', `SELECT '${times("it''s ", 150_000)}'`],
    ['blanks', `SELECT ${times(' \n', 450_000)}1`],
    ['comments', `SELECT ${times('/**/', 200_000)}1 ${times('--\n', 50_000)}`],
    ['+', `SELECT ${chain('+', 500)}`],
    ['parentheses', `SELECT ${times('(', 400)}1${times(')', 400)}`],
    ['subqueries', `SELECT * FROM ${times('(SELECT * FROM ', 150)}t${times(')', 150)}`],
  ])('%s', (_, sql) => expect(outcome(sql)).toBe('parsed'))
})

describe("The parser's errors for malformed texts", () => {
  it.each([
    ['', "line 1:1: mismatched input '<EOF>'. Expecting: 'ALTER'"],
    [' \n\n -- nothing\n', "line 4:1: mismatched input '<EOF>'"],
    ['SELECT /* open', "line 1:8: mismatched input '/'"],
    ["SELECT 'open", "line 1:8: mismatched input '''"],
    ['SELECT "open', "line 1:8: mismatched input '\"'"],
    ['SELECT U&', "line 1:9: mismatched input '&'"],
    ['SELECT 😀', "line 1:8: mismatched input '😀'"],
    ["SELECT '😀é' x y", "line 1:15: mismatched input 'y'"],
    ["SELECT\r\n  '😀'\n, ,", "line 3:3: mismatched input ','"],
    ['SELECT `a`', 'line 1:8: backquoted identifiers are not supported; use double quotes to quote identifiers'],
    ['SELECT ""', 'line 1:8: Zero-length delimited identifier not allowed'],
    ['SELECT 1a', 'line 1:8: identifiers must not start with a digit; surround the identifier with double quotes'],
    ["SELECT U&'\\d800'", 'line 1:8: Invalid escaped character: d800. Escaped character is a surrogate'],
    ["SELECT U&'\\+110000'", 'line 1:8: Invalid escaped character: 110000'],
    ["SELECT U&'x' UESCAPE ''", 'line 1:8: Empty Unicode escape character'],
    [`SELECT ${'9'.repeat(1_000_000)}`, 'line 1:8: Invalid numeric literal: 999'],
    ['SELECT coalesce(1) FROM', "line 1:24: mismatched input '<EOF>'"],
    ['SELECT a IN (1, b IN (2 3))', "line 1:10: mismatched input 'IN'"],
    ['SELECT 1;', "line 1:9: mismatched input ';'"],
    ['\u0000', "line 1:1: mismatched input '\u0000'"],
    [times('SELECT /*a', 100_000), "line 1:8: mismatched input '/'"],
    ['\ud800', 'line 1:1: mismatched input'],
  ])('%j', (sql, message) => expect(outcome(sql)).toContain(message))

  it('have locations that count from the origin of a text inside another one', () => {
    const parse = (): unknown => parseStatement('SELEC\n x', { lineNumber: 3, columnNumber: 20 })
    expect(parse).toThrow(/^line 3:20: /)
    expect(() => parseStatement('SELECT\n  FROM', { lineNumber: 3, columnNumber: 20 })).toThrow(/^line 4:3: /)
  })
})

describe('The redaction of secrets keeps the text short for hostile input', () => {
  it.each([
    ['quotes', `password '${times("''", 300_000)}`],
    ['open strings', `password ${times('"', 300_001)}`],
    ['URIs', `password ${times('://', 200_000)}`],
    ['blanks', `'password${times(' ', 900_000)}'`],
    ['names', `password${times('=password', 100_000)}`],
    ['a long name', `${times('aA', 400_000)} password`],
    ['comments', times('/*password=', 90_000)],
  ])('%s', (_, sql) => expect(redactSecrets(sql).sql.length).toBeLessThan(sql.length + 10 ** 6))
})
