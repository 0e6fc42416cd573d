import type { IncomingMessage } from 'node:http'
import type { Authorize, QueryOwner } from '../../security/authorization.ts'
import type { QueryId } from '../../shared/ids.ts'
import { withDeadline } from '../../shared/deadline.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import { HttpProblem } from '../edge/problem.ts'
import type { ActsAs } from './acts-as.ts'

/** What the address of a page is used for: to have it, or to end the query. */
export type ResultsAction = 'results' | 'cancel'

export interface ResultsOf {
  readonly queryId: QueryId
  readonly action: ResultsAction
}

/**
 * Whether who asks may have the results of a query, or end it: the address of a page alone does not suffice.
 * @throws HttpProblem 401, 403
 */
export type CheckResults = (request: IncomingMessage, asked: ResultsOf, owner: QueryOwner) => void

/** @param configured must clients be known? Without that whoever has the address may have the results */
export function createCheckResults(configured: boolean, actsAs: ActsAs, authorize: Authorize): CheckResults {
  if (!configured) return () => {}
  return (request, { queryId, action }, query) => {
    const identity = actsAs(request)
    if (authorize(identity, { action, query, queryId })) return
    const what = action === 'results' ? 'have the results of' : 'cancel'
    throw new HttpProblem(403, `Access Denied: User ${identity.user} cannot ${what} query ${queryId}`)
  }
}

/** Whose a query is, as far as that is known at once or soon; undefined: there is no such query. */
export type OwnerOf = (queryId: QueryId) => QueryOwner | undefined | Promise<QueryOwner | undefined>

/** The same before anything is known of the query, so that who may not ask changes nothing and learns nothing. */
export function createResultsGuard(
  configured: boolean,
  check: CheckResults,
  ownerOf: OwnerOf,
): (request: IncomingMessage, asked: ResultsOf) => void | Promise<void> {
  if (!configured) return () => {}
  return (request, asked) => {
    const owner = ownerOf(asked.queryId)
    if (!(owner instanceof Promise)) return owner && check(request, asked, owner)
    return owner.then((late) => late && check(request, asked, late))
  }
}

/** Whose a query is was not said in time. */
class OwnerUnknown extends QuipuError {
  readonly retry = 'later'
}

/** Gives a guard so long to find out whose the query is. @throws a passing error when it takes longer */
export async function guardWithin(guarded: void | Promise<void>, ms: number): Promise<void> {
  if (guarded) await withDeadline(guarded, ms, () => new OwnerUnknown())
}
