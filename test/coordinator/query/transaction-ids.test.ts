import fc from 'fast-check'
import { expect, it } from 'vitest'
import { queryOfTransaction, transactionIdOf } from '../../../src/coordinator/query/session/transaction-ids.ts'
import { createQueryIds, splitQueryId } from '../../../src/shared/ids.ts'

const queryIds = fc
  .record({ epoch: fc.integer({ min: 0, max: 2 ** 32 - 1 }), millis: fc.integer({ min: 0, max: Date.UTC(3000, 0) }) })
  .map(({ epoch, millis }) => createQueryIds(epoch, () => millis)())

it('the id of a transaction is a UUID that names the query that started it', () => {
  fc.assert(
    fc.property(queryIds, (queryId) => {
      const id = transactionIdOf(queryId)
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(queryOfTransaction(id)).toBe(queryId)
      expect(queryOfTransaction(id.toUpperCase())).toBe(queryId)
    }),
  )
  expect(splitQueryId(createQueryIds(7, () => 5000)())).toEqual({ second: 5, counter: 0, epoch: 7 })
})

it('a UUID that no query gave out names no query', () => {
  const uuids = fc.uuid({ version: 4 })
  fc.assert(
    fc.property(uuids, (uuid) => {
      expect(queryOfTransaction(uuid)).toBeUndefined()
    }),
  )
  const given = transactionIdOf(createQueryIds(1, () => 1_700_000_000_000)())
  for (const at of [0, 9, 20, 35]) {
    const digit = given[at] === '0' ? '1' : '0'
    if (given[at] !== '-') expect(queryOfTransaction(given.slice(0, at) + digit + given.slice(at + 1))).toBeUndefined()
  }
})
