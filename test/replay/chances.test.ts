import { describe, expect, it } from 'vitest'
import { borderQuestions, chanceIn } from '../../src/replay/chances.ts'
import { withCatalogs } from '../../src/replay/replayed-text.ts'
import { functionFamilies, nameOf } from '../../src/sql/functions/function-table.ts'
import { parseStatement } from '../../src/sql/syntax/parser.ts'

describe('The chance that `chanceIn` finds in a statement', () => {
  it.each<[string, object | undefined]>([
    ['SELECT a FROM t', undefined],
    ['SELECT array_agg(a ORDER BY b) FROM t', undefined],
    ['SELECT array_agg(a), Rand() FROM t', { kind: 'functions', names: ['array_agg', 'rand'] }],
    ['SELECT 1 FROM (SELECT a FROM t TABLESAMPLE BERNOULLI (10))', { kind: 'functions', names: ['TABLESAMPLE'] }],
    ['SELECT a FROM t WHERE b < current_date OR now() > c', { kind: 'clock', names: ['current_date', 'now'] }],
    ['SELECT LOCALTIMESTAMP', { kind: 'clock', names: ['localtimestamp'] }],
    ['SELECT * FROM system.runtime.nodes', { kind: 'server', names: ['system.runtime.nodes'] }],
    ['SELECT 1 FROM tpch.information_schema.tables', { kind: 'server', names: ['tpch.information_schema.tables'] }],
    ['WITH x AS (SELECT uuid() u) SELECT * FROM x', { kind: 'functions', names: ['uuid'] }],
  ])('%s', (sql, chance) => expect(chanceIn(parseStatement(sql))).toEqual(chance))
})

describe('The chance of a statement that calls a function', () => {
  const all = Object.values(functionFamilies()).flat()
  const chancesOf = (names: readonly string[]) =>
    names.map((name) => [name, chanceIn(parseStatement(`SELECT ${name}(a) FROM t`))])
  const namesOf = (is: (one: (typeof all)[number]) => boolean) => [...new Set(all.filter(is).map(nameOf))]
  const expected = (names: readonly string[]) => names.map((name) => [name, { kind: 'functions', names: [name] }])

  it('has kind "functions" if the function table calls the function not deterministic', () => {
    const names = namesOf(({ deterministic }) => !deterministic)
    expect(names).toContain('uuid')
    expect(chancesOf(names)).toEqual(expected(names))
  })

  it('has kind "functions" if the function depends on the order of rows and the call has no ORDER BY', () => {
    // A call of listagg always has an order.
    const names = namesOf(({ orderSensitive }) => orderSensitive).filter((name) => name !== 'listagg')
    expect(names).toContain('array_agg')
    expect(chancesOf(names)).toEqual(expected(names))
  })
})

describe('The questions that `borderQuestions` asks about a LIMIT', () => {
  it.each<[string, string[]]>([
    ['SELECT a FROM t', []],
    ['SELECT a FROM t LIMIT ALL', []],
    ['SELECT a FROM t ORDER BY b FETCH FIRST 2 ROWS WITH TIES', []],
    ['SELECT a FROM t LIMIT 3', ['limit 3 SELECT count(*) FROM (SELECT a FROM t) q']],
    [
      'SELECT a FROM t ORDER BY b DESC LIMIT 3',
      ['tie 3 SELECT count(*) FROM (SELECT a FROM t ORDER BY b DESC FETCH FIRST 3 ROWS WITH TIES) q'],
    ],
    [
      'SELECT a FROM t ORDER BY b FETCH FIRST ROW ONLY',
      ['tie 1 SELECT count(*) FROM (SELECT a FROM t ORDER BY b ASC FETCH FIRST ROW WITH TIES) q'],
    ],
    [
      'WITH x AS (SELECT 1 a) SELECT * FROM (SELECT a FROM x ORDER BY a LIMIT 2) y',
      [
        'tie 2 WITH x AS (SELECT 1 a) SELECT count(*) FROM (SELECT a FROM x ORDER BY a ASC FETCH FIRST 2 ROWS WITH TIES) q',
      ],
    ],
    ['SELECT a FROM t ORDER BY a OFFSET 2 LIMIT 3', []],
    ['SHOW TABLES', []],
  ])('%s', (sql, asked) => {
    const questions = borderQuestions(parseStatement(sql))
    const texts = questions.map(
      ({ kind, kept, sql: question }) => `${kind} ${kept} ${question.replaceAll(/\s+/g, ' ')}`,
    )
    expect(texts.map((text) => text.replaceAll(/\( /g, '(').replaceAll(/ \)/g, ')').trim())).toEqual(asked)
  })
})

describe('`withCatalogs` with a catalog that has another name on the other server', () => {
  const catalogs = new Map([['lake', 'Other "one"']])
  it.each<[string, string | RegExp]>([
    ['SELECT lake.a FROM other.s.t lake', 'SELECT lake.a FROM other.s.t lake'],
    ["SELECT 'lake.s.t' FROM LAKE.s.t", /'lake\.s\.t'[^]*"Other ""one"""\.s\.t/],
    ['SELECT 1 FROM a WHERE x IN (SELECT y FROM lake.s.t)', /"Other ""one"""\.s\.t/],
    ['SELECT 1 FROM lake.t', 'SELECT 1 FROM lake.t'],
  ])('%s', (sql, there) => {
    const renamed = withCatalogs(sql, catalogs)
    if (typeof there === 'string') expect(renamed).toBe(there)
    else expect(renamed).toMatch(there)
    parseStatement(renamed)
  })
})
