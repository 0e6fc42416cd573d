import { expect, it } from 'vitest'
import { pricesSchema } from '../../../src/readmodels/history/prices.ts'

it.each([
  ['a time that the database has not', { currency: 'EUR', periods: [{ from: '0000-01-01T00:00:00Z' }] }],
  ['a later time', { currency: 'EUR', periods: [{ from: '9999-12-31T23:59:59-01:00' }] }],
  ['U+0000 in the currency', { currency: 'E\0R', periods: [{ from: '2026-01-01T00:00:00Z' }] }],
  [
    'U+0000 in the name of a cluster',
    { currency: 'EUR', periods: [{ from: '2026-01-01T00:00:00Z', clusterHours: { 'a\0': 1 } }] },
  ],
  [
    'a price whose sums are no numbers',
    { currency: 'EUR', periods: [{ from: '2026-01-01T00:00:00Z', cpuSecond: 1e308 }] },
  ],
])('A file of prices with %s is refused, because no cost could be read', (_, file) => {
  expect(pricesSchema.safeParse(file).success).toBe(false)
  const valid = {
    currency: 'EUR',
    periods: [{ from: '0001-01-01T00:00:00Z', cpuSecond: 1e15, clusterHours: { a: 1 } }],
  }
  expect(pricesSchema.safeParse(valid).success).toBe(true)
})
