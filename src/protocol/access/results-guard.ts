import type { IncomingMessage } from 'node:http'
import type { Authorize, QueryOwner } from '../../security/authorization.ts'
import type { QueryId } from '../../shared/ids.ts'
import { withDeadline } from '../../shared/deadline.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import { HttpProblem } from '../edge/problem.ts'
import type { ActsAs } from './acts-as.ts'

/** The use of a page's address: to read the page, or to end the query. */
export type ResultsAction = 'results' | 'cancel'

export interface ResultsOf {
  readonly queryId: QueryId
  readonly action: ResultsAction
}

/**
 * Checks whether the caller may have the results of a query, or end it. The address of a page alone does not suffice.
 * @throws HttpProblem 401, 403
 */
export type CheckResults = (request: IncomingMessage, asked: ResultsOf, owner: QueryOwner) => void

/** @param configured whether clients must authenticate. Otherwise everybody with the address may have the results */
export function createCheckResults(configured: boolean, actsAs: ActsAs, authorize: Authorize): CheckResults {
  if (!configured) return () => {}
  return (request, { queryId, action }, query) => {
    const identity = actsAs(request)
    if (authorize(identity, { action, query, queryId })) return
    const what = action === 'results' ? 'have the results of' : 'cancel'
    throw new HttpProblem(403, `Access Denied: User ${identity.user} cannot ${what} query ${queryId}`)
  }
}

/** The owner of a query, at once or soon; undefined: there is no such query. */
export type OwnerOf = (queryId: QueryId) => QueryOwner | undefined | Promise<QueryOwner | undefined>

/**
 * Makes the same check before the query is looked up, so that a caller without the right changes nothing and learns
 * nothing.
 */
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

/** The owner of a query was not found in time. */
class OwnerUnknown extends QuipuError {
  readonly retry = 'later'
}

/**
 * Waits at most `ms` milliseconds for a guard to find the owner.
 * @throws OwnerUnknown, a passing error, when it takes longer
 */
export async function guardWithin(guarded: void | Promise<void>, ms: number): Promise<void> {
  if (guarded) await withDeadline(guarded, ms, () => new OwnerUnknown())
}
