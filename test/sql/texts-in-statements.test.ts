import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EngineError } from '../../src/shared/engine-error.ts'
import type { RenderedQuery } from '../../src/planner/planned-statement.ts'
import { analyzeQuery } from '../support/front-end.ts'
import { dialectLiteral, hostileTexts } from '../support/hostile-texts.ts'
import { leaks, marked, plainLike, swapped } from '../support/swapped-texts.ts'
import { textStatements } from '../support/text-expressions.ts'

// From the text of a statement to the SQL of an engine, a literal or a name changes only itself.

const seed = 14
const from = `(VALUES ('a', 1)) t(c, n)`

type Statement = (text: string) => string

/** Returns the SQL and the wire forms of the columns, or undefined for a refused statement. */
async function rendered(statement: string): Promise<string | undefined> {
  let query: RenderedQuery
  try {
    query = (await analyzeQuery(statement)).query
  } catch (error) {
    if (error instanceof EngineError) return undefined
    throw error
  }
  return [query.sql, ...query.wire].join('\n')
}

/** Statements whose rendering depends on the text itself: patterns, paths, formats, zones, units. */
const deciding: Readonly<Record<string, Statement>> = {
  like: (e) => `SELECT c LIKE ${e} FROM ${from}`,
  'like with prefix': (e) => `SELECT c LIKE '%' || ${e}, c LIKE ${e} || '%' FROM ${from}`,
  'like with escape': (e) => `SELECT c LIKE ${e} ESCAPE '!' FROM ${from}`,
  escape: (e) => `SELECT c LIKE 'a' ESCAPE ${e} FROM ${from}`,
  regexp_like: (e) => `SELECT regexp_like(c, ${e}) FROM ${from}`,
  regexp_replace: (e) => `SELECT regexp_replace(c, 'a', ${e}), regexp_replace(c, ${e}, 'a') FROM ${from}`,
  'regexp_replace with lambda': (e) => `SELECT regexp_replace(c, ${e}, x -> ${e}) FROM ${from}`,
  regexp_extract: (e) => `SELECT regexp_extract(c, ${e}), regexp_extract_all(c, ${e}, 1) FROM ${from}`,
  date_format: (e) => `SELECT date_format(TIMESTAMP '2024-02-29 10:20:30', ${e}) FROM ${from}`,
  'date_format with zone': (e) => `SELECT date_format(TIMESTAMP '2024-02-29 10:20:30 UTC', ${e}) FROM ${from}`,
  format_datetime: (e) => `SELECT format_datetime(TIMESTAMP '2024-02-29 10:20:30 UTC', ${e}) FROM ${from}`,
  'format_datetime, quoted': (e) =>
    `SELECT format_datetime(TIMESTAMP '2024-02-29 10:20:30 UTC', '''' || replace(${e}, '''', '''''') || '''') FROM ${from}`,
  date_trunc: (e) => `SELECT date_trunc(${e}, TIMESTAMP '2024-02-29 10:20:30') FROM ${from}`,
  date_add: (e) => `SELECT date_add(${e}, n, DATE '2024-02-29') FROM ${from}`,
  date_diff: (e) => `SELECT date_diff(${e}, DATE '2024-02-29', DATE '2024-02-29') FROM ${from}`,
  'at time zone': (e) => `SELECT TIMESTAMP '2024-02-29 10:20:30 UTC' AT TIME ZONE ${e} FROM ${from}`,
  with_timezone: (e) => `SELECT with_timezone(TIMESTAMP '2024-02-29 10:20:30', ${e}) FROM ${from}`,
  from_unixtime: (e) => `SELECT from_unixtime(n, ${e}) FROM ${from}`,
  json_extract: (e) => `SELECT json_extract(c, ${e}), json_extract_scalar(c, ${e}), json_size(c, ${e}) FROM ${from}`,
  json_value: (e) => `SELECT json_value(c, 'lax $.a ? (@ == "$E$F$1")' DEFAULT ${e} ON EMPTY) FROM ${from}`,
  'json path': (e) => `SELECT json_exists(c, ${e}), json_query(c, ${e}) FROM ${from}`,
  json_table: (e) => `SELECT * FROM JSON_TABLE(${e}, 'lax $[*]' COLUMNS (x varchar PATH ${e} DEFAULT ${e} ON EMPTY))`,
  split_to_map: (e) => `SELECT split_to_map(c, ${e}, '='), array_join(ARRAY[c], ${e}, ${e}) FROM ${from}`,
  listagg: (e) =>
    `SELECT listagg(c, ${e} ON OVERFLOW TRUNCATE ${e} WITH COUNT) WITHIN GROUP (ORDER BY ${e}) FROM ${from}`,
  literals: (e) => `SELECT TRY_CAST(${e} AS json), JSON ${e} FROM ${from}`,
  'literals of types': (e) => `SELECT DATE ${e}, TIME ${e}, TIMESTAMP ${e}, DECIMAL ${e}, UUID ${e} FROM ${from}`,
  char: (e) => `SELECT CHAR ${e}, VARCHAR ${e}, CAST(${e} AS char(5)) FROM ${from}`,
}

/** Statements whose rendering does not depend on their text, besides those of each function. */
const plainStatements: Readonly<Record<string, Statement>> = {
  routine: (e) => `WITH FUNCTION f(x varchar) RETURNS varchar RETURN x || ${e} SELECT f(c), f(f(${e})) FROM ${from}`,
  'routine with statements': (e) =>
    `WITH FUNCTION f(x varchar) RETURNS varchar BEGIN DECLARE y varchar DEFAULT ${e}; IF x = ${e} THEN SET y = ${e} || y; END IF; RETURN y || ${e}; END SELECT f(c) FROM ${from}`,
  'several uses of one value': (e) => `SELECT nullif(upper(${e} || c), ${e}), if(${e} = c, ${e}, c) FROM ${from}`,
  'heavy operands': (e) =>
    `SELECT substr(substr(substr(substr(${e} || c, 1), 1), 1), 1) = substr(substr(c || ${e}, 1), 1) FROM ${from}`,
  'grouping sets': (e) =>
    `SELECT d, count(*) FILTER (WHERE d = ${e}) FROM (SELECT c || ${e} AS d FROM ${from}) GROUP BY GROUPING SETS ((d), ()) HAVING max(d) <> ${e}`,
  'order and limit': (e) => `SELECT c FROM ${from} ORDER BY c || ${e} DESC, ${e} LIMIT 1`,
  'distinct and union': (e) => `SELECT DISTINCT ${e} FROM ${from} UNION SELECT c FROM ${from} EXCEPT SELECT ${e}`,
  join: (e) => `SELECT 1 FROM ${from} LEFT JOIN (VALUES ${e}) u(d) ON t.c = u.d || ${e}`,
  lateral: (e) => `SELECT * FROM ${from} CROSS JOIN LATERAL (SELECT c || ${e}) u(d)`,
  unnest: (e) => `SELECT * FROM ${from} CROSS JOIN UNNEST(ARRAY[c, ${e}], MAP(ARRAY[${e}], ARRAY[1])) WITH ORDINALITY`,
  'recursive query': (e) =>
    `WITH RECURSIVE w(x) AS (SELECT CAST(${e} AS varchar) UNION ALL SELECT x || ${e} FROM w WHERE x <> ${e}) SELECT * FROM w`,
  match_recognize: (e) =>
    `SELECT * FROM ${from} MATCH_RECOGNIZE (PARTITION BY c ORDER BY n MEASURES last(a.c) || ${e} AS m PATTERN (a+) DEFINE a AS a.c <> ${e})`,
  'window of aggregates': (e) => `SELECT max(${e}) OVER (PARTITION BY c || ${e} ORDER BY ${e} || c) FROM ${from}`,
  'named window': (e) => `SELECT lag(c, 1, ${e}) OVER w FROM ${from} WINDOW w AS (PARTITION BY ${e} ORDER BY c)`,
}

/** Statements with a name. The argument `name` is already quoted. */
const names: Readonly<Record<string, Statement>> = {
  alias: (name) => `SELECT c AS ${name} FROM ${from} ORDER BY ${name}`,
  table: (name) => `SELECT ${name}.c FROM (SELECT c FROM ${from}) ${name}`,
  columns: (name) => `SELECT ${name} FROM (VALUES 1) t(${name}) WHERE ${name} > 1 GROUP BY ${name}`,
  'common table': (name) => `WITH ${name}(${name}) AS (SELECT c FROM ${from}) SELECT ${name}.${name} FROM ${name}`,
  'recursive table': (name) =>
    `WITH RECURSIVE ${name}(${name}) AS (SELECT 1 UNION ALL SELECT ${name} + 1 FROM ${name} WHERE ${name} < 3) SELECT * FROM ${name}`,
  'row field': (name) =>
    `SELECT CAST(ROW(c) AS ROW(${name} varchar)).${name}, CAST(ROW(c) AS ROW(${name} varchar)) FROM ${from}`,
  'row field as json': (name) =>
    `SELECT CAST(CAST(ROW(c) AS ROW(${name} varchar)) AS json), CAST(JSON '{}' AS ROW(${name} bigint)) FROM ${from}`,
  lambda: (name) => `SELECT transform(ARRAY[c], ${name} -> ${name} || 'a') FROM ${from}`,
  window: (name) => `SELECT rank() OVER ${name} FROM ${from} WINDOW ${name} AS (ORDER BY c)`,
  'json parameter': (name) =>
    `SELECT json_exists(c, 'lax $ ? (@ == $x)' PASSING c AS ${name}, 'a' AS "x") FROM ${from}`,
  'json column': (name) => `SELECT ${name} FROM JSON_TABLE('[1]', 'lax $[*]' COLUMNS (${name} bigint PATH 'lax $'))`,
  function: (name) =>
    `WITH FUNCTION ${name}(${name} varchar) RETURNS varchar RETURN ${name} || 'a' SELECT ${name}(c) FROM ${from}`,
  pattern: (name) =>
    `SELECT * FROM ${from} MATCH_RECOGNIZE (ORDER BY n MEASURES classifier() AS ${name} PATTERN (${name}+) DEFINE ${name} AS ${name}.n > 0)`,
}

const quotedName = (text: string): string => `"${text.replaceAll('"', '""')}"`

/** Texts that a name in a statement may contain. */
const nameTexts = hostileTexts.filter((text) => !/[\0-\x1f]/.test(text))

async function expectSwapped(statement: Statement, text: string): Promise<void> {
  const [hostile, plain] = [marked(text), marked(plainLike(text))]
  const expected = await rendered(statement(dialectLiteral(plain)))
  const actual = await rendered(statement(dialectLiteral(hostile)))
  expect(actual).toBe(expected && swapped(expected, plain, hostile))
}

const withoutNul = hostileTexts.filter((text) => !text.includes('\0'))

describe('A literal changes only its own place in the rendered SQL', () => {
  const statements = [
    ...Object.entries(plainStatements).map(([name, of]) => ({ name, of })),
    ...textStatements
      // The rendering depends on a pattern or a format.
      .filter(({ name }) => !/LIKE e|LIKE ee|regexp_(?:like|replace)|date_parse/.test(name))
      .map(({ name, of }) => ({ name, of: (e: string): string => of(e, from) })),
  ]

  it.each(statements)('$name', async ({ of }) => {
    for (const text of withoutNul) await expectSwapped(of, text)
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'binary' }).filter((text) => !text.includes('\0')),
        (text) => expectSwapped(of, text),
      ),
      { seed, numRuns: 3 },
    )
  })

  it('every statement of this test is rendered with a harmless text', async () => {
    const refused: string[] = []
    for (const { name, of } of statements) if ((await rendered(of(`'abc'`))) === undefined) refused.push(name)
    expect(refused).toEqual([])
  })
})

describe('A literal that decides about the rendering stays data', () => {
  it.each(Object.entries(deciding))('%s', async (_name, of) => {
    const check = async (text: string): Promise<void> => {
      for (const each of [text, marked(text)]) {
        const made = await rendered(of(dialectLiteral(each)))
        if (made !== undefined && leaks(made)) expect(made).toBe('SQL with the text as data')
      }
    }
    for (const text of hostileTexts) await check(text)
    await fc.assert(fc.asyncProperty(fc.string({ unit: 'binary' }), check), { seed, numRuns: 3 })
  })

  it('every statement of this test but one accepts some text', async () => {
    const refused: string[] = []
    for (const [name, of] of Object.entries(deciding)) {
      const tried = [
        'a',
        '$.a',
        'UTC',
        'hour',
        'day',
        'lax $',
        '1',
        '2024-02-29',
        '!',
        '00:00',
        '12151fd2-7586-11e9-8f9e-2a86e4085a59',
      ]
      const made = await Promise.all(tried.map((text) => rendered(of(dialectLiteral(text)))))
      if (made.every((each) => each === undefined)) refused.push(name)
    }
    expect(refused).toEqual(['literals of types'])
  })
})

describe('A name in a statement stays data', () => {
  it.each(Object.entries(names))('%s', async (_name, of) => {
    expect(await rendered(of('"abc"'))).toBeDefined()
    for (const text of nameTexts) {
      const made = await rendered(of(quotedName(marked(text))))
      if (made !== undefined && leaks(made)) expect(made).toBe('SQL with the name as data')
    }
  })
})
