import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fingerprintOf, type Fingerprint } from '../../src/sql/fingerprint.ts'
import { StatementText } from '../../src/sql/parsed-statement.ts'

const AT = { catalog: 'lake', schema: 'shop' }
const made = (sql: string, prepared: Record<string, string> = {}, at = AT): Fingerprint =>
  fingerprintOf(new StatementText(sql, prepared).parse(), at)!

describe('The fingerprint of a statement', () => {
  it.each([
    [
      'literals',
      `SELECT a FROM t WHERE a = 5 AND b = 'x' AND c = 1.5`,
      `SELECT a FROM t WHERE a = -7 AND b = 'it''s' AND c = 2e3`,
    ],
    ['NULL and booleans', 'SELECT a FROM t WHERE f(a, NULL) = true', 'SELECT a FROM t WHERE f(a, 1) = FALSE'],
    ['dates', `SELECT 1 FROM t WHERE d > DATE '2026-01-01'`, `SELECT 1 FROM t WHERE d > DATE '2025-01-01'`],
    ['intervals', `SELECT now() - INTERVAL '1' DAY`, `SELECT now() - INTERVAL '30' DAY`],
    ['IN lists', 'SELECT a FROM t WHERE a IN (1)', 'SELECT a FROM t WHERE a IN (1, 2, 3, 4)'],
    ['arrays', 'SELECT contains(ARRAY[1], a) FROM t', 'SELECT contains(ARRAY[1, 2], a) FROM t'],
    ['VALUES', `INSERT INTO t VALUES (1, 'a')`, `INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)`],
    ['VALUES of one column', 'SELECT * FROM (VALUES 1, 2) AS v(a)', 'SELECT * FROM (VALUES 3, 4, 5) AS v(a)'],
    ['LIMIT', 'SELECT a FROM t LIMIT 5', 'SELECT a FROM t LIMIT 10'],
    ['case and blanks', 'select  A\n\tfrom T where Count(*) > 1', 'SELECT a FROM t WHERE count(*) > 1'],
    ['comments', '/* dbt */ SELECT a -- b\nFROM t', 'SELECT a FROM t'],
    ['parentheses', 'SELECT (a) FROM t WHERE ((a = 1))', 'SELECT a FROM t WHERE a = 1'],
    ['operators', 'SELECT a FROM t WHERE a != 1', 'SELECT a FROM t WHERE a <> 1'],
    [
      'names of tables',
      'SELECT a FROM t JOIN shop.u USING (a)',
      'SELECT a FROM lake.shop.t JOIN lake.shop.u USING (a)',
    ],
    ['written tables', 'INSERT INTO t SELECT 1', 'INSERT INTO lake.shop.T SELECT 2'],
    [
      'separators',
      `SELECT listagg(a, ',') WITHIN GROUP (ORDER BY a) FROM t`,
      `SELECT listagg(a, ';') WITHIN GROUP (ORDER BY a) FROM t`,
    ],
  ])('is the same for other %s', (_, one, other) => {
    expect(made(one).hash).toBe(made(other).hash)
    expect(made(one).query.toLowerCase()).toBe(made(other).query.toLowerCase())
  })

  it.each([
    ['tables', 'SELECT a FROM t', 'SELECT a FROM u'],
    ['columns', 'SELECT a FROM t', 'SELECT b FROM t'],
    ['operators', 'SELECT a FROM t WHERE a < 1', 'SELECT a FROM t WHERE a <= 1'],
    ['numbers of arguments', 'SELECT substr(a, 1) FROM t', 'SELECT substr(a, 1, 2) FROM t'],
    ['lists with columns', 'SELECT a FROM t WHERE a IN (1, b)', 'SELECT a FROM t WHERE a IN (1)'],
    ['types of literals', `SELECT DATE '2026-01-01'`, `SELECT TIMESTAMP '2026-01-01'`],
    ['wider rows', 'INSERT INTO t VALUES (1, 2)', 'INSERT INTO t VALUES (1, 2, 3)'],
    ['kinds of statements', 'SELECT a FROM t', 'EXPLAIN SELECT a FROM t'],
    [
      'common tables',
      'WITH t AS (SELECT 1 AS a) SELECT a FROM t',
      'WITH t AS (SELECT 1 AS a) SELECT a FROM lake.shop.t',
    ],
  ])('differs for other %s', (_, one, other) => {
    expect(made(one).hash).not.toBe(made(other).hash)
  })

  it('has the statement on one line, without texts', () => {
    expect(made(`select a, "B 'c'" from t -- secret\nwhere b like '%x%' and a in (1,2) limit 3`)).toEqual({
      version: 1,
      hash: expect.stringMatching(/^[0-9a-f]{32}$/),
      query: `SELECT a , "B 'c'" FROM lake.shop.t WHERE ((b LIKE ?) AND (a IN (?))) LIMIT ?`,
    })
    expect(made(`SELECT ${'a, '.repeat(3000)}a FROM t`).query).toHaveLength(4096)
  })

  it('equals that of the executed statement for EXECUTE', () => {
    const prepared = { p: 'SELECT a FROM t WHERE a = ? AND b = 3' }
    const plain = made('SELECT a FROM t WHERE a = 1 AND b = 2')
    expect(made('EXECUTE p USING 5', prepared)).toEqual(plain)
    expect(made(`EXECUTE IMMEDIATE 'SELECT a FROM t WHERE a = ? AND b = ?' USING 5, 6`)).toEqual(plain)
    expect(made('EXECUTE q USING 5', prepared).query).toBe('EXECUTE q USING ?')
  })

  it('stays the same in later versions of Quipu', () => {
    expect(
      made('SELECT o.id, count(*) FROM orders o WHERE o.day IN (1, 2) GROUP BY o.id HAVING count(*) > 3').hash,
    ).toBe('2520ab67830cc71c2abb3927912b4f5b')
  })

  it('is absent for a text that is no statement, and never fails for a long one', () => {
    expect(fingerprintOf(new StatementText('SELEC 1').parse(), AT)).toBeUndefined()
    expect(() => made(`SELECT ${'1 + '.repeat(20_000)}1`)).not.toThrow()
    expect(made(`SELECT 1 WHERE 1 IN (${Array.from({ length: 50_000 }, (_, i) => i).join(', ')})`).query).toBe(
      'SELECT ? WHERE (? IN (?))',
    )
  })

  it('does not contain a literal of the statement', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{6,20}$/), fc.integer({ min: 100_000 }), (word, number) => {
        const { query } = made(
          `SELECT a, '${word}' || b AS c FROM t WHERE a = ${number} AND b IN ('${word}', '${word}x') AND c BETWEEN ${number} AND 7`,
        )
        expect(query.includes(word) || query.includes(String(number))).toBe(false)
      }),
    )
  })

  it('takes no longer for each further level of signs and lists', () => {
    const levels = 60
    const { query } = made(`PREPARE p FROM SELECT ${'-ARRAY['.repeat(levels)}- -1${']'.repeat(levels)}`)
    expect(query).toBe(`PREPARE p FROM SELECT ${'-ARRAY['.repeat(levels)}?${']'.repeat(levels)}`)
  })
})
