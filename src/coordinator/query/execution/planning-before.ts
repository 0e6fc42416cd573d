import { groupedStatement } from '../query-group.ts'
import type { LiveQuery } from '../state.ts'

/**
 * For how long, in milliseconds, coordinators before this one have planned a query that has no plan yet, as its record tells:
 * all its time but what it waited for a place, the time without any coordinator among it. 0 of one that may have waited for
 * its client too (writes, session statements, calls): no event tells since when that client follows.
 *
 * @param now milliseconds since the epoch
 */
export function planningBefore({ created, createdAt, queued, admitted }: LiveQuery, now: number): number {
  const type = groupedStatement(created).queryType()
  if (type !== 'SELECT' && type !== 'DESCRIBE' && type !== 'EXPLAIN') return 0
  const untilQueued = (queued ? Date.parse(queued.at) : now) - Date.parse(createdAt)
  const sinceAdmitted = admitted ? now - Date.parse(admitted.at) : 0
  return Math.max(0, untilQueued) + Math.max(0, sinceAdmitted)
}
