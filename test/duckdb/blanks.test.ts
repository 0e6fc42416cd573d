import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../src/shared/engine-error.ts'
import { dialectBytes, dialectLiteral } from '../support/hostile-texts.ts'
import { openLibraryRunner, type LibraryRunner } from '../support/library-runner.ts'

/** Characters that are blank in JavaScript, but not in Trino. */
const NOT_BLANK = ['\ufeff', '\u00a0', '\u2007', '\u202f']

const casts = [
  ['bigint', '12'],
  ['integer', '12'],
  ['double', '1.5'],
  ['real', '1.5'],
  ['decimal(5,2)', '1.25'],
  ['date', '2024-02-29'],
  ['time(3)', '10:20:30.123'],
  ['time(3) with time zone', '10:20:30.123+01:00'],
  ['timestamp(3)', '2024-02-29 10:20:30.123'],
  ['timestamp(3) with time zone', '2024-02-29 10:20:30.123 Europe/Paris'],
] as const

const literals = [
  (text: string) => `BIGINT ${text}`,
  (text: string) => `DOUBLE ${text}`,
  (text: string) => `DECIMAL ${text}`,
] as const

describe('A character that is blank in JavaScript but not in Trino', () => {
  let runner: LibraryRunner
  beforeAll(async () => {
    runner = await openLibraryRunner()
  })
  afterAll(() => runner.close())

  const outcome = (expression: string): Promise<unknown> =>
    runner.run(`SELECT ${expression}`).then(
      ({ rows }) => rows[0]?.[0],
      (error: unknown) => {
        if (error instanceof EngineError) return error.errorName
        throw error
      },
    )

  it.each(casts)('makes a CAST AS %s fail, for literals and columns', async (type, text) => {
    expect(await outcome(`TRY_CAST(${dialectLiteral(text)} AS ${type}) IS NOT NULL`)).toBe(true)
    for (const blank of NOT_BLANK) {
      for (const broken of [blank + text, text + blank, text.replace(' ', blank), text.replace('+', `${blank}+`)]) {
        if (broken === text) continue
        expect(await outcome(`TRY_CAST(${dialectLiteral(broken)} AS ${type})`)).toBeNull()
        expect(await outcome(`(SELECT TRY_CAST(c AS ${type}) FROM (SELECT ${dialectBytes(broken)} AS c))`)).toBeNull()
      }
    }
  })

  it.each(['bigint', 'double', 'decimal(5,2)'])('makes a CAST of a JSON text AS %s fail', async (type) => {
    const cast = (text: string): string => `TRY_CAST(json_parse(${dialectLiteral(JSON.stringify(text))}) AS ${type})`
    expect(await outcome(`${cast('12')} IS NOT NULL`)).toBe(true)
    for (const blank of NOT_BLANK) expect(await outcome(cast(blank + 12 + blank))).toBeNull()
  })

  it('makes literals of types invalid', async () => {
    for (const [type, text] of casts.slice(5)) {
      const name = type.replace(/\(3\)/, '').replace(' with time zone', '')
      expect(await outcome(`${name} ${dialectLiteral(text)} IS NOT NULL`)).toBe(true)
      for (const blank of NOT_BLANK)
        expect(await outcome(`${name} ${dialectLiteral(blank + text + blank)}`)).toMatch(
          /INVALID_LITERAL|NOT_SUPPORTED/,
        )
    }
    for (const literal of literals) {
      expect(await outcome(`${literal(dialectLiteral('12'))} IS NOT NULL`)).toBe(true)
      for (const blank of NOT_BLANK)
        expect(await outcome(literal(dialectLiteral(`${blank}12${blank}`)))).toBe('INVALID_LITERAL')
    }
    for (const blank of NOT_BLANK)
      expect(await outcome(`INTERVAL ${dialectLiteral(`${blank}1${blank}`)} DAY`)).toBe('INVALID_LITERAL')
  })

  it('is not skipped in JSON paths, in double() of JSON paths and in URLs', async () => {
    for (const blank of NOT_BLANK) {
      const path = (text: string): Promise<unknown> => outcome(`json_value('{"a": 1}', ${dialectLiteral(text)})`)
      expect(await path('lax $.a')).toBe('1')
      expect(await path(`lax${blank}$.a`)).not.toBe('1')
      expect(await outcome(`json_value(${dialectLiteral(JSON.stringify(`${blank}1`))}, 'lax $.double()')`)).toBeNull()
    }
    expect(await outcome(`url_extract_path(${dialectLiteral('http://a/\ufeffb')})`)).toBe('/\ufeffb')
  })

  it('does not change the handling of blanks in Trino', async () => {
    expect(await outcome(`CAST(' 12 ' AS bigint)`)).toBe(12)
    expect(await outcome(`BIGINT ' 12 '`)).toBe(12)
    expect(await outcome(`CAST(' 2024-02-29 ' AS date) = DATE ' 2024-02-29 '`)).toBe(true)
    expect(await outcome(`CAST(${dialectLiteral('\u30002024-02-29\u2028')} AS date) = DATE '2024-02-29'`)).toBe(true)
    expect(await outcome(`CAST(CAST('2024-02-29 10:20:30' AS timestamp) AS varchar)`)).toContain('10:20:30')
  })
})
