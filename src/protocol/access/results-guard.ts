import type { IncomingMessage } from 'node:http'
import type { Authorize, QueryOwner } from '../../security/authorization.ts'
import type { QueryId } from '../../shared/ids.ts'
import { HttpProblem } from '../edge/problem.ts'
import type { ActsAs } from './acts-as.ts'

/**
 * Whether who asks may have the results of a query: the address of a page alone does not suffice.
 * @throws HttpProblem 401, 403
 */
export type CheckResults = (request: IncomingMessage, queryId: QueryId, owner: QueryOwner) => void

/** @param configured must clients be known? Without that whoever has the address may have the results */
export function createCheckResults(configured: boolean, actsAs: ActsAs, authorize: Authorize): CheckResults {
  if (!configured) return () => {}
  return (request, queryId, query) => {
    const identity = actsAs(request)
    if (!authorize(identity, { action: 'results', query }))
      throw new HttpProblem(403, `Access Denied: User ${identity.user} cannot have the results of query ${queryId}`)
  }
}

/** Whose a query is, as far as that is known at once or soon; undefined: there is no such query. */
export type OwnerOf = (queryId: QueryId) => QueryOwner | undefined | Promise<QueryOwner | undefined>

/** The same before anything is known of the query, so that who may not ask changes nothing and learns nothing. */
export function createResultsGuard(
  configured: boolean,
  check: CheckResults,
  ownerOf: OwnerOf,
): (request: IncomingMessage, queryId: QueryId) => void | Promise<void> {
  if (!configured) return () => {}
  return (request, queryId) => {
    const owner = ownerOf(queryId)
    if (!(owner instanceof Promise)) return owner && check(request, queryId, owner)
    return owner.then((late) => late && check(request, queryId, late))
  }
}
