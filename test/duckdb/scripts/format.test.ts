import { describe, expect, it } from 'vitest'
import { formatScripts } from '../../../src/duckdb/scripts/format.ts'

const format = formatScripts[0]!.call as unknown as (pattern: string, values: string) => string
const values = JSON.stringify([
  { k: 'integer', v: '-1234567' },
  { k: 'double', v: '3.14159' },
  { k: 'varchar', v: 'text' },
  { k: 'boolean', v: 'true' },
  { k: 'integer', v: null },
])

describe('The format function', () => {
  it.each([
    ['%s|%s', '-1234567|3.14159'],
    ['%,d', '-1,234,567'],
    ['%(,d', '(1,234,567)'],
    ['%010d', '-001234567'],
    ['%-10d|', '-1234567  |'],
    ['%2$.2f %<.3f', '3.14 3.142'],
    ['%2$e', '3.141590e+00'],
    ['%3$S', 'TEXT'],
    ['%3$.2s', 'te'],
    ['%4$b %5$b %5$s', 'true false null'],
    ['%1$x', 'ffffffffffed2979'],
    ['100%%%n', '100%\n'],
  ])('formats %j as %j', (pattern, text) => {
    expect(format(pattern, values)).toBe(text)
  })

  it.each([
    ['%q', `UnknownFormatConversion: Conversion = 'q'`],
    ['50%', `UnknownFormatConversion: Conversion = '%'`],
    ['%9$s', `MissingFormatArgument: Format specifier '%9$s'`],
    ['%3$d', 'IllegalFormatConversion: d != java.lang.String'],
    ['%1$f', 'IllegalFormatConversion: f != java.lang.Long'],
  ])('refuses %j with the error: %s', (pattern, why) => {
    expect(() => format(pattern, values)).toThrow(`Invalid format string: ${pattern} (${why})`)
  })
})
