import { expect, it } from 'vitest'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import { queryInfo } from '../../../src/protocol/query/query-info.ts'
import { liveRow } from '../../../src/protocol/query/query-list.ts'
import { event } from '../../support/query-events.ts'
import { testQueryId } from '../../support/query-life.ts'

it('The body of a query has the fingerprint that lists and the history have', () => {
  const queryId = testQueryId(1)
  const fingerprint = { version: 1, hash: 'a1b2', query: 'SELECT ?' }
  const query = foldQuery(queryId, [event('QueryCreated'), event('QueryPlanned', 1, { fingerprint })])
  if (query.kind === 'NONE') throw new Error('the query was created')
  const view = { query, sequence: 2, liveStats: new Map() }
  const info = queryInfo(view, { baseUri: 'http://here', now: Date.now(), seesEnder: () => true })
  expect(info.fingerprint).toBe('v1-a1b2')
})

it('The bodies of a query that waits have the time since it began to wait', () => {
  const query = foldQuery(testQueryId(1), [event('QueryCreated'), event('QueryQueued', 1)])
  if (query.kind === 'NONE' || !query.queued) throw new Error('the query waits')
  const view = { query, sequence: 2, liveStats: new Map() }
  const now = Date.parse(query.queued.at) + 90_000
  const info = queryInfo(view, { baseUri: 'http://here', now, seesEnder: () => true })
  expect(info.queryStats.queuedTime).toBe('1.50m')
  expect(liveRow(view, now).queued_ms).toBe(90_000)
})
