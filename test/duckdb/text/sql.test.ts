import { describe, expect, it } from 'vitest'
import {
  code,
  codeOfModule,
  codeOfSource,
  digits,
  EMPTY,
  endOfModules,
  formOf,
  integer,
  isEmpty,
  joined,
  literal,
  name,
  plainName,
  sameSql,
  sql,
  tokensOfSql,
  toText,
  type Sql,
} from '../../../src/duckdb/text/sql.ts'
import { template, templateParts } from '../../../src/duckdb/text/template.ts'

describe('A piece of SQL', () => {
  it('is converted to text by `toText`', () => {
    const value = sql`upper(${literal(`it's $E`)})`
    expect(toText(sql`SELECT ${value} AS ${name('a "b"')} LIMIT ${integer(-1)}`)).toBe(
      `SELECT upper('it''s $E') AS "a ""b""" LIMIT -1`,
    )
    expect(toText(joined([plainName('a'), EMPTY, digits('1.50')], ', '))).toBe('a, , 1.50')
  })

  it('throws when it is converted to a string', () => {
    const piece = literal('a')
    expect(() => `${piece as unknown as string}`).toThrow(TypeError)
    expect(() => String(piece)).toThrow(TypeError)
    expect(() => [piece].join(', ')).toThrow(TypeError)
  })

  it.each(['', `'`, `''`, '\\', `a'--`, '$1$E', '\u{10ffff}'])('quotes the literal %j', (text) => {
    const quoted = toText(literal(text))
    expect(quoted.slice(1, -1).replaceAll("''", "'")).toBe(text)
    expect(formOf(literal(text))).toBe(`''`)
  })

  it('contains NUL as an expression, and a name with NUL is refused', () => {
    expect(toText(literal(`a\0'\0`))).toBe(`('a'||chr(0)||''''||chr(0)||'')`)
    expect(() => name('a\0')).toThrow('NUL cannot be read')
  })

  it.each(['', 'a b', '1a', 'a"', 'a;', 'ä', 'a\n'])('cannot be made by `plainName` from %j', (text) => {
    expect(() => plainName(text)).toThrow(TypeError)
  })

  it.each(['', 'e3', '1 ', '--1', '1.', '.', '1e', '0x1', 'NaN', '1\n', '1 OR 1'])(
    'cannot be made by `digits` from %j',
    (text) => {
      expect(() => digits(text)).toThrow(TypeError)
    },
  )

  it('can be made by `integer` only from safe integers and bigints', () => {
    for (const value of [1.5, NaN, Infinity, 2 ** 53]) expect(() => integer(value)).toThrow(TypeError)
    expect(toText(integer(-9223372036854775808n))).toBe('-9223372036854775808')
  })

  it('cannot be made from a string as code', () => {
    // The types check this; the test never makes the calls.
    const refused = (text: string, some: 'a' | `b${string}`): unknown => [
      // @ts-expect-error a string must become a literal or a name first
      sql`SELECT ${text}`,
      // @ts-expect-error the type is not a constant of the source
      code(text),
      // @ts-expect-error the text contains a string
      code(`u_${text}`),
      // @ts-expect-error the text may contain a string
      code(some),
      // @ts-expect-error the type is not a constant of the source
      joined([], text),
    ]
    expect(refused).toBeTypeOf('function')
  })

  it('has a form without the values of its names and literals', () => {
    const piece = sql`f(${name('x"y')}, ${literal('CASE q_x(')}, ${integer(-5)}, ${plainName('v1')})`
    expect(formOf(piece)).toBe(`f(x, '', -0, x)`)
    expect(formOf(piece, 2)).toBe('f(')
  })

  it('is split into tokens, and known pieces are found by identity', () => {
    const [a, b] = [literal('same'), literal('same')]
    const kinds = (piece: Sql, known: Sql): readonly string[] =>
      tokensOfSql(piece, new Map([[known, 0]])).map((token) => (token.kind === 'code' ? token.text : token.kind))
    expect(kinds(sql`f(${a}, ${b}) + ${code('g(')}${a})`, a)).toEqual([
      'f(',
      'known',
      ', ',
      'leaf',
      ') + g(',
      'known',
      ')',
    ])
    expect(sameSql(a, b)).toBe(true)
    expect(sameSql(a, literal('else'))).toBe(false)
    expect(isEmpty(sql``)).toBe(true)
    expect(sql`${a}`).toBe(a)
  })
})

describe('A template', () => {
  it('is parsed into its parts', () => {
    expect(
      template('f($D$2, $T1$O)$F($10)$E$R$N$F').parts.map((part) => ('kind' in part ? part : toText(part))),
    ).toEqual([
      'f(',
      { kind: 'distinct' },
      { kind: 'argument', index: 1 },
      ', ',
      { kind: 'argumentType', index: 0 },
      { kind: 'orderBy' },
      ')',
      { kind: 'ownFilter' },
      { kind: 'argument', index: 9 },
      ')',
      { kind: 'over' },
      { kind: 'resultType' },
      { kind: 'ignoreNulls' },
      { kind: 'filterAndOver' },
    ])
  })

  it('cannot be made from strings that are not in the source', () => {
    const made = Object.assign(['$E'], { raw: ['$E'] }) as unknown as TemplateStringsArray
    expect(() => templateParts(made)).not.toThrow()
    const withCode = Object.assign(['DROP'], { raw: ['DROP'] }) as unknown as TemplateStringsArray
    expect(() => templateParts(withCode)).toThrow(TypeError)
    expect(() => codeOfSource(withCode, 0, 0, 4)).toThrow(TypeError)
  })

  it('can be made only while the program starts', () => {
    expect(toText(codeOfModule('a'))).toBe('a')
    endOfModules()
    expect(() => codeOfModule('a')).toThrow('while the program starts')
    expect(() => template('a')).toThrow('while the program starts')
  })
})
