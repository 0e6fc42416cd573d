import { expect, it } from 'vitest'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import {
  isCommitted,
  isDecided,
  isEnded,
  resultSize,
  writtenBy,
  type KnownQuery,
} from '../../../src/coordinator/query/stream/state.ts'
import type { QueryEvent } from '../../../src/coordinator/query/stream/events.ts'
import { event, QUERY_ID } from '../../support/query-events.ts'

const after = (...events: readonly QueryEvent[]): KnownQuery =>
  foldQuery(QUERY_ID, [event('QueryCreated'), event('QueryPlanned'), ...events]) as KnownQuery
const prepared = event('WritePrepared', 1, { rows: 7, bytes: 70 })

it.each<[string, KnownQuery, { decided: boolean; committed: boolean; rows: number }]>([
  ['without a write', after(), { decided: false, committed: false, rows: 0 }],
  ['with a prepared write', after(prepared), { decided: true, committed: false, rows: 0 }],
  ['with a committed write', after(prepared, event('WriteCommitted', 2, { outcome: 'committed' })), { decided: true, committed: true, rows: 7 }], // prettier-ignore
  ['with an impossible write', after(prepared, event('WriteCommitted', 2, { outcome: 'impossible' })), { decided: false, committed: false, rows: 0 }], // prettier-ignore
])('`isDecided`, `isCommitted` and `writtenBy` are right for a query %s', (_what, query, expected) => {
  const { decided, committed, rows } = expected
  expect([isDecided(query), isCommitted(query)]).toEqual([decided, committed])
  expect(writtenBy(query)).toMatchObject({ rows, bytes: 10 * rows })
})

it('`isEnded` is true after QueryFinished or QueryFailed, and false before', () => {
  expect(isEnded(after())).toBe(false)
  expect(isEnded(after(event('ResultPagesPublished'), event('QueryFinished')))).toBe(true)
  expect(isEnded(after(event('QueryFailed')))).toBe(true)
})

it('`resultSize` sums the rows and bytes of all pages', () => {
  expect(resultSize([])).toEqual({ rows: 0, bytes: 0 })
  const { pages } = after(event('ResultPagesPublished'))
  expect(resultSize([...pages, ...pages])).toEqual({ rows: 6, bytes: 60 })
})
