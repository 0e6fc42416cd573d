import { describe, expect, it } from 'vitest'
import { isComparable, isOrderable, sameType, typeContains } from '../../../src/sql/types/sql-type.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'

/** Types that all differ. Some differ in only one part of a nested type. */
const distinct = [
  'bigint',
  'integer',
  'varchar',
  'varchar(3)',
  'varchar(4)',
  'char(3)',
  'decimal(5,2)',
  'decimal(5,3)',
  'decimal(6,2)',
  'time(3)',
  'time(3) with time zone',
  'timestamp(3)',
  'timestamp(6)',
  'timestamp(3) with time zone',
  'array(bigint)',
  'array(integer)',
  'qdigest(bigint)',
  'map(varchar,bigint)',
  'map(varchar,integer)',
  'map(char(3),bigint)',
  'row(bigint)',
  'row(a bigint)',
  'row(b bigint)',
  'row(a integer)',
  'row(a bigint,b bigint)',
]

it('`sameType` is true for a type that is parsed again, and false for all other types', () => {
  for (const a of distinct)
    for (const b of distinct) expect(sameType(parseTypeText(a), parseTypeText(b)), `${a} = ${b}`).toBe(a === b)
})

describe('Predicates over types', () => {
  it.each([
    ['bigint', true, true],
    ['varchar', true, true],
    ['json', true, false],
    ['map(varchar,bigint)', true, false],
    ['array(map(varchar,bigint))', true, false],
    ['array(array(date))', true, true],
    ['row(a bigint,b map(varchar,bigint))', true, false],
    ['row(a bigint,b HyperLogLog)', false, false],
    ['map(varchar,tdigest)', false, false],
    ['array(qdigest(bigint))', false, false],
    ['color', true, false],
  ])('say that %s is comparable: %s, orderable: %s', (text, comparable, orderable) => {
    const type = parseTypeText(text)
    expect([isComparable(type), isOrderable(type)]).toEqual([comparable, orderable])
  })

  it('find a part at any depth with `typeContains`', () => {
    const isDate = (part: { readonly kind: string }) => part.kind === 'date'
    for (const text of [
      'date',
      'array(date)',
      'map(date,bigint)',
      'map(bigint,array(date))',
      'row(a bigint,b row(date))',
    ])
      expect(typeContains(parseTypeText(text), isDate), text).toBe(true)
    expect(typeContains(parseTypeText('map(bigint,row(a varchar))'), isDate)).toBe(false)
  })
})
