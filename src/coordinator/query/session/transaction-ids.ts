import { createHash } from 'node:crypto'
import { isQueryId, queryIdOf, splitQueryId, type QueryId } from '../../../shared/ids.ts'

// A transaction's id is a UUID (version 8) that holds the id of the query that started it, and a checksum. So it is the
// same after a restart, and any coordinator knows whether an id was ever given out.

/** Hexadecimal digits of the query's second, counter and epoch, and of the checksum. */
const SECOND = 9
const COUNTER = 5
const EPOCH = 8
const CHECK = 8

/** The id of the transaction that a query starts. */
export function transactionIdOf(queryId: QueryId): string {
  const { second, counter, epoch } = splitQueryId(queryId)
  const digits = hex(second, SECOND) + hex(counter, COUNTER) + hex(epoch, EPOCH) + checkOf(queryId)
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-8${digits.slice(12, 15)}-a${digits.slice(15, 18)}-${digits.slice(18)}`
}

/** The query that started a transaction; undefined for a UUID that no query got as the id of a transaction. */
export function queryOfTransaction(transactionId: string): QueryId | undefined {
  const [first = '', second = '', third = '', fourth = '', last = ''] = transactionId.toLowerCase().split('-')
  const digits = first + second + third.slice(1) + fourth.slice(1) + last
  const number = (from: number, length: number): number => Number.parseInt(digits.slice(from, from + length), 16)
  const [at, counter] = [number(0, SECOND), number(SECOND, COUNTER)]
  const queryId = queryIdOf({ second: at, counter, epoch: number(SECOND + COUNTER, EPOCH) })
  return isQueryId(queryId) && transactionIdOf(queryId) === transactionId.toLowerCase() ? queryId : undefined
}

function hex(value: number, length: number): string {
  return value.toString(16).padStart(length, '0').slice(-length)
}

function checkOf(queryId: QueryId): string {
  return createHash('sha256').update(`transaction/${queryId}`).digest('hex').slice(0, CHECK)
}
