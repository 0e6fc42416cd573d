import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseStatement } from '../../../src/sql/syntax/parser.ts'
import { printStatement } from '../../../src/sql/syntax/printer.ts'
import { secretNodes, type ParameterSecrets } from '../../../src/sql/syntax/secret-literals.ts'
import { isSuspicious } from '../../../src/sql/syntax/secret-names.ts'
import { arbitraryStatement } from '../../support/sql/arbitrary-statement.ts'
import { propertyRuns } from '../../support/full-tests.ts'

/** Prepared statements and executed texts contain no secrets. */
const plain: ParameterSecrets = {
  intoSecrets: false,
  ofPrepared: () => false,
  ofText: () => ({ text: false, parameters: false }),
}

const found = (sql: string, given: Partial<ParameterSecrets> = {}) =>
  secretNodes(parseStatement(sql), { ...plain, ...given })
const valuesIn = (sql: string, given: Partial<ParameterSecrets> = {}): readonly string[] =>
  found(sql, given).nodes.map(({ value }) => value)

describe('Secret literals in a term that names a secret', () => {
  it.each([
    ["SELECT password = 'a' AND name = 'b'", ['a']],
    ["SELECT 'a' = lower(concat(x, password)) OR y = 'b'", ['a']],
    ["SELECT NOT (password = 'a' AND name = 'b')", ['a']],
    ["SELECT f('a', g('b', token)), h('c')", ['a', 'b']],
    ["SELECT 'a' || 'password=' || x || 'b'", ['a', 'password=', 'b']],
    ["SELECT element_at(m, 'password') = 'a', element_at(m, 'name') = 'b'", ['password', 'a']],
    ["SELECT MAP(ARRAY['password', 'name'], ARRAY['a', 'b'])", ['password', 'name', 'a', 'b']],
    ["SELECT ROW('password', 'a'), ROW('name', 'b')", ['password', 'a']],
    ["SELECT x IN (SELECT token FROM t WHERE name = 'b') AND y = 'c'", ['b']],
    ["SELECT 'a' IN (SELECT name FROM t WHERE token = 'b')", ['b']],
    ["SELECT 1 WHERE EXISTS (SELECT password FROM t) AND 'a' = name", []],
    ["SELECT 'a' AS password, 'b' AS name", ['a']],
    ["SELECT CAST(ROW('a') AS ROW(password varchar)), CAST(ROW('b') AS ROW(name varchar))", ['a']],
    ["SET SESSION c.api_key = 'a'", ['a']],
    ["CREATE TABLE t (x varchar WITH (secret_key = 'a', size = 'b'))", ['a']],
  ])('%s', (sql, values) => expect(valuesIn(sql)).toEqual(values))
})

describe('Numbers near the name of a secret', () => {
  it.each([
    ['SELECT pin_token = 1234, 56', ['1234']],
    ['SELECT pin_token IN (1, 2.5, 3e0)', ['1', '2.5', '3e0']],
    ['SELECT substr(token, 1, 8), sum(tokens) / 1000', []],
    ['SELECT verify(token, 12, 123456)', ['123456']],
    ['SELECT token FROM t OFFSET 5 LIMIT 6', []],
  ])('are secrets if they are compared, or are long arguments: %s', (sql, values) =>
    expect(valuesIn(sql)).toEqual(values),
  )
})

describe('A CASE or IF with a secret', () => {
  it.each([
    ["SELECT if(password = 'a', 'b', 'c')", ['a']],
    ["SELECT if(x = 'a', password, 'c')", ['c']],
    ["SELECT CASE WHEN token = 'a' THEN 'b' WHEN y = 'c' THEN 'd' END", ['a']],
    ["SELECT CASE password WHEN 'a' THEN 'b' ELSE 'c' END", ['a']],
    ["SELECT CASE x WHEN 'a' THEN token ELSE 'c' END", ['c']],
  ])('does not mix its conditions with its results: %s', (sql, values) => expect(valuesIn(sql)).toEqual(values))
})

describe('A literal that is compared with a secret under another name', () => {
  it.each([
    ["SELECT * FROM t JOIN (VALUES ('a')) v (x) ON t.password = v.x", ['a']],
    ["SELECT * FROM t JOIN (VALUES ('a')) v (x) ON t.name = v.x", []],
    ["SELECT 1 FROM (SELECT 'a' AS x) s, t WHERE t.secret = s.x", ['a']],
    ["SELECT * FROM t CROSS JOIN UNNEST(ARRAY['a']) u (x) WHERE x = t.api_key AND name = 'b'", ['a']],
    ["WITH FUNCTION f() RETURNS varchar RETURN 'a' SELECT password = f()", ['a']],
    ["WITH FUNCTION f() RETURNS varchar RETURN 'a' SELECT name = f()", []],
    ["WITH FUNCTION f(password varchar) RETURNS boolean RETURN true SELECT f('a')", ['a']],
  ])('is a secret where it is written: %s', (sql, values) => expect(valuesIn(sql)).toEqual(values))
})

describe('Quoted names', () => {
  it('are secrets if they contain a secret, not if they name one', () => {
    expect(found('SELECT "db-password", "https://bob:hunter2@host/x" FROM t').nodes).toMatchObject([
      { kind: 'name', value: 'https://bob:hunter2@host/x' },
    ])
  })
})

describe('Parameters of a statement', () => {
  it.each([
    ['SELECT * FROM t WHERE password = ?', true],
    ['SELECT * FROM t WHERE password = 1 AND name = ?', false],
    ['INSERT INTO t (name, token) VALUES (?, ?)', true],
    ['SELECT ? AS name', false],
  ])('are secrets if a literal in the same position is a secret: %s', (sql, stand) => {
    expect(found(sql).parameters).toBe(stand)
  })

  it('are secrets for EXECUTE if the prepared statement says so', () => {
    const asked: string[] = []
    const ofPrepared = (name: string): boolean => asked.push(name) > 0 && name === 'hidden'
    expect(valuesIn("EXECUTE hidden USING 'a'", { ofPrepared })).toEqual(['a'])
    expect(valuesIn("EXECUTE plain USING 'a'", { ofPrepared })).toEqual([])
    // An EXECUTE without arguments does not look up the prepared statement.
    expect(valuesIn('EXECUTE hidden', { ofPrepared })).toEqual([])
    expect(asked).toEqual(['hidden', 'plain'])
  })

  it.each([
    [{ text: false, parameters: false }, []],
    [{ text: false, parameters: true }, ['SELECT ?', 'a']],
    [{ text: true, parameters: false }, ['SELECT ?']],
  ])('are secrets for EXECUTE IMMEDIATE if its text says so: %o', (said, values) => {
    const sql = "EXECUTE IMMEDIATE 'SELECT ?' USING 'a'"
    expect(valuesIn(sql, { ofText: (text) => (text === 'SELECT ?' ? said : plain.ofText(text)) })).toEqual(values)
  })

  it('are secrets for an INSERT without columns if the caller says that its table holds secrets', () => {
    const sql = "INSERT INTO t VALUES ('a')"
    expect(valuesIn(sql)).toEqual([])
    expect(valuesIn(sql, { intoSecrets: true })).toEqual(['a'])
    expect(valuesIn("INSERT INTO t (name) VALUES ('a')", { intoSecrets: true })).toEqual([])
  })
})

describe('The secret nodes of a random statement', () => {
  it('have positions in the text that are in order and do not overlap', () => {
    fc.assert(
      fc.property(arbitraryStatement, fc.boolean(), (statement, secret) => {
        const sql = printStatement(statement)
        const all = {
          intoSecrets: secret,
          ofPrepared: () => secret,
          ofText: () => ({ text: secret, parameters: secret }),
        }
        let from = 0
        for (const { kind, start, end } of secretNodes(parseStatement(sql), all).nodes) {
          expect(start).toBeGreaterThanOrEqual(from)
          expect(sql.slice(start, end)).toMatch(kind === 'name' ? /^"[^]*"$/ : /'$|^[\d.]|[\w"]$/)
          from = end
        }
      }),
      { numRuns: propertyRuns(300) },
    )
  })

  it('are absent if no word of the text can name a secret', () => {
    fc.assert(
      fc.property(arbitraryStatement, (statement) => {
        const sql = printStatement(statement)
        fc.pre(!isSuspicious(sql))
        expect(found(sql)).toEqual({ nodes: [], parameters: false })
      }),
      { numRuns: propertyRuns(300) },
    )
  })

  it('include all literals of an INSERT into a table or a column of secrets', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme-ascii' }), { minLength: 1, maxLength: 4 }), (texts) => {
        const list = texts.map((text) => `lower('${text.replaceAll("'", "''")}')`).join(', ')
        expect(valuesIn(`INSERT INTO passwords VALUES (${list})`)).toEqual(texts)
        expect(valuesIn(`INSERT INTO p (a, password) SELECT ${list}`)).toEqual(texts)
      }),
      { numRuns: propertyRuns(100) },
    )
  })
})
