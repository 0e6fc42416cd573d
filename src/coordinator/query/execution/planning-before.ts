import type { QueryType } from '../../../sql/front-end.ts'
import type { LiveQuery } from '../stream/state.ts'

/**
 * How long earlier coordinators have planned a query that has no plan yet, in milliseconds, by its record: all its time
 * except the wait for a slot, including the time without any coordinator. 0 for a query that may also have waited for
 * its client (writes, session statements, calls): no event says when that client began to follow.
 *
 * @param now milliseconds since the epoch
 */
export function planningBefore(
  { createdAt, queued, admitted }: LiveQuery,
  type: QueryType | undefined,
  now: number,
): number {
  if (type !== 'SELECT' && type !== 'DESCRIBE' && type !== 'EXPLAIN') return 0
  const untilQueued = (queued ? Date.parse(queued.at) : now) - Date.parse(createdAt)
  const sinceAdmitted = admitted ? now - Date.parse(admitted.at) : 0
  return Math.max(0, untilQueued) + Math.max(0, sinceAdmitted)
}
