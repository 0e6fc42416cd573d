import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { typeSignature, wireTypeText } from '../../../src/sql/types/type-signature.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'

interface Recorded {
  readonly type: string
  readonly typeSignature: unknown
}

const recorded = (JSON.parse(readFileSync(new URL('wire-types.json', import.meta.url), 'utf8')) as Recorded[]).filter(
  ({ type }, i, all) => all.findIndex((other) => other.type === type) === i,
)

describe('The types of columns in the client protocol', () => {
  it.each(recorded)("$type has Trino's text and signature", ({ type, typeSignature: expected }) => {
    const parsed = parseTypeText(type)
    expect(wireTypeText(parsed, { parametricDatetime: true })).toBe(type)
    expect(typeSignature(parsed, { parametricDatetime: true, prestoFamily: false })).toEqual(expected)
  })

  it('have no precision for clients that do not support it', () => {
    const type = parseTypeText('map(timestamp(6), array(time(9) with time zone))')
    const options = { parametricDatetime: false, prestoFamily: false }
    expect(wireTypeText(type, options)).toBe('map(timestamp, array(time with time zone))')
    expect(typeSignature(parseTypeText('timestamp(6)'), options)).toEqual({ rawType: 'timestamp', arguments: [] })
  })

  it('have the empty fields of older versions for clients of the Presto family', () => {
    expect(typeSignature(parseTypeText('bigint'), { parametricDatetime: false, prestoFamily: true })).toEqual({
      rawType: 'bigint',
      arguments: [],
      typeArguments: [],
      literalArguments: [],
    })
  })
})
