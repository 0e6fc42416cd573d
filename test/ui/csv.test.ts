import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { csv } from '../../console/api/statement/formats.ts'

/** The texts of a CSV file as RFC 4180 reads them. */
function parsed(file: string): string[][] {
  const records: string[][] = [[]]
  for (const [, quoted, plain, end] of file.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    records.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain!)
    if (end === '\r\n') records.push([])
  }
  return records.slice(0, -1)
}

/** The file of one column, with its name and its values. */
function saved(name: string, values: readonly (string | number | null)[]): string {
  return (
    csv.begin([{ name, type: 'varchar' }]) + values.map((value, index) => csv.row([value], index)).join('') + csv.end()
  )
}

const SIGNS = ['=', '+', '-', '@', '＝', '＋', '－', '＠'] as const
const HIDDEN = ['', ' ', '\t', '\r', '\n', '\u000b', '\u0000', '\u00a0', '\u200b', '\ufeff', ' \u2060\t'] as const

describe('A saved CSV file', () => {
  it.each(SIGNS.flatMap((sign) => HIDDEN.map((hidden) => [hidden + sign] as const)))(
    'has an apostrophe before a text that begins with %j',
    (beginning) => {
      const text = `${beginning}HYPERLINK("http://x","y")`
      expect(parsed(saved(text, [text]))).toEqual([[`'${text}`], [`'${text}`]])
    },
  )

  it.each(['\tx', '\rx', '\nx', '\n'])('has an apostrophe before %j', (text) => {
    expect(parsed(saved(text, [text]))).toEqual([[`'${text}`], [`'${text}`]])
  })

  it.each(['-1', '+1', '-0.5', '-.5', '-12.', '-1e-7', '+1.5E+300', '-Infinity', '', 'a=b', 'x\n=1', '\u00e4', ' a'])(
    'has %j as it is',
    (text) => {
      expect(parsed(saved('n', [text]))).toEqual([['n'], [text]])
    },
  )

  it('has numbers without an apostrophe, and tells NULL from an empty text', () => {
    expect(saved('n', [-1, -2.5e-9, null, ''])).toBe('n\r\n-1\r\n-2.5e-9\r\n\r\n""\r\n')
  })

  it('keeps every text and has no formula among its fields', () => {
    const part = fc.oneof(
      fc.constantFrom(...SIGNS, ...HIDDEN, '"', ',', "'", '1', '\r\n'),
      fc.string({ unit: 'binary' }),
    )
    const text = fc.array(part, { maxLength: 5 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 4 }), ([names, ...rows]) => {
        const columns = names!.map((name) => ({ name, type: 'varchar' }))
        const file = csv.begin(columns) + rows.map((row, index) => csv.row(row, index)).join('') + csv.end()
        const fields = parsed(file).flat()
        const texts = [names!, ...rows].flat()
        expect(fields.map((field, at) => (field === `'${texts[at]}` ? texts[at] : field))).toEqual(texts)
        for (const field of fields) {
          const isNumber = /^[+-]?[\d.]/.test(field) && !Number.isNaN(Number(field))
          const visible = field.replace(/^[\s\p{Cc}\p{Cf}]+/u, '')
          if (!isNumber) expect(SIGNS.some((sign) => visible.startsWith(sign))).toBe(false)
          expect(field).not.toMatch(/^[\t\r\n]/)
        }
      }),
    )
  })
})
