import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { canCast, canCoerce, canInsert, commonSuperType } from '../../../src/sql/types/coercion.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import { typeInStatement, typeName, typeText } from '../../../src/sql/types/type-text.ts'

interface Pair {
  readonly from: string
  readonly to: string
  readonly implicit: boolean
  readonly explicit: boolean
  readonly common: string | undefined
  readonly insert: boolean
}

// The answers of a Trino server for each pair of types. A pair without a row has neither a coercion nor a cast.
const pairs: readonly Pair[] = readFileSync(new URL('coercions.tsv', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [from = '', to = '', implicit, explicit, notes = ''] = line.split('\t')
    return {
      from,
      to,
      implicit: implicit === 'yes',
      explicit: explicit === 'yes',
      common: /common=([^;]+)/.exec(notes)?.[1],
      insert: /insert=yes/.test(notes) || (implicit === 'yes' && !/insert=no/.test(notes)),
    }
  })

const nothing = { implicit: false, explicit: false, common: undefined, insert: false }
const types = [...new Set(pairs.flatMap(({ from, to }) => [from, to]))]
const cells = types.flatMap((from) =>
  types
    .filter((to) => to !== from)
    .map((to) => pairs.find((pair) => pair.from === from && pair.to === to) ?? { from, to, ...nothing }),
)

describe('The coercions between all recorded types', () => {
  it("include Trino's implicit coercions and no others", () => {
    expect(
      disagreeing(({ from, to, implicit }) => canCoerce(parseTypeText(from), parseTypeText(to)) === implicit),
    ).toEqual([])
  })
  it("include Trino's casts and no others", () => {
    expect(
      disagreeing(({ from, to, explicit }) => canCast(parseTypeText(from), parseTypeText(to)) === explicit),
    ).toEqual([])
  })
  it("give Trino's common type", () => {
    expect(
      disagreeing(({ from, to, implicit, common }) => {
        const expected = common ?? (implicit ? typeText(parseTypeText(to)) : undefined)
        const found = commonSuperType(parseTypeText(from), parseTypeText(to))
        return expected === undefined || (found !== undefined && typeText(found) === expected)
      }),
    ).toEqual([])
  })
  it('allow INSERT for the same types as Trino', () => {
    expect(disagreeing(({ from, to, insert }) => canInsert(parseTypeText(from), parseTypeText(to)) === insert)).toEqual(
      [],
    )
  })
})

function disagreeing(agrees: (pair: Pair) => boolean): string[] {
  return cells.filter((pair) => !agrees(pair)).map(({ from, to }) => `${from} -> ${to}`)
}

describe('The text of a type', () => {
  it.each(types)('%s parses, and survives printing', (text) => {
    const type = parseTypeText(text)
    expect(parseTypeText(typeText(type))).toEqual(type)
    expect(parseTypeText(typeName(type))).toEqual(type)
  })
})

describe('A type in a statement', () => {
  it.each([
    ['decimal(10,2)', 'decimal(10, 2)'],
    ['row(x integer,"a b" varchar(3))', 'ROW(x integer, "a b" varchar(3))'],
    ['array(map(varchar,row(y decimal(3,1))))', 'array(map(varchar, ROW(y decimal(3, 1))))'],
    ['timestamp(6) with time zone', 'timestamp(6) with time zone'],
    ['interval day to second', 'INTERVAL DAY TO SECOND'],
  ])('is printed as Trino formats it: %s', (type, text) => {
    expect(typeInStatement(parseTypeText(type))).toBe(text)
  })
})
