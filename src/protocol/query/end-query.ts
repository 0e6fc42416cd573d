import type { Request, RequestHandler } from 'express'
import { endingBy, type EndedHow, type Ending } from '../../coordinator/query/stream/ending.ts'
import type { Canceled } from '../../coordinator/query/results/cancel-query.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import { isQueryId, type QueryId } from '../../shared/ids.ts'
import { HttpProblem } from '../edge/problem.ts'
import { decodeUtf8, readBody } from '../edge/request-body.ts'
import { isPassing } from '../statement/passing-error.ts'

export interface EndQueryDeps {
  /** Ends a query, as `StatementService.cancel` does. */
  readonly end: (queryId: QueryId, ending: Ending) => Promise<Canceled>
  /** @throws HttpProblem 401 */
  readonly identify: (request: Request) => Identity
  readonly authorize: Authorize
}

/** The most bytes of the text that says why a query is killed. */
export const MAX_KILL_MESSAGE_BYTES = 16 * 1024

const NO_BODY = { 'cache-control': 'no-store', 'content-length': 0 }

/** Handlers that end a query by its id, for any caller: DELETE of the query, PUT of `killed` and `preempted`. */
export function createEndings(deps: EndQueryDeps): {
  readonly cancel: RequestHandler
  kill(how: 'killed' | 'preempted'): RequestHandler
} {
  /** Ends the query of the path. @throws HttpProblem 403, 503 */
  async function end(
    request: Request,
    by: Identity,
    how: EndedHow,
    message?: string,
  ): Promise<'done' | 'ended' | 'unknown'> {
    const { queryId } = request.params
    if (typeof queryId !== 'string' || !isQueryId(queryId)) return 'unknown'
    const outcome = await deps
      .end(queryId, endingBy(by, deps.authorize, { how }, message))
      .catch((error: unknown) => (isPassing(error) ? ('waiting' as const) : Promise.reject(error)))
    if (outcome === 'refused') throw new HttpProblem(403, `Access denied: user ${by.user} cannot kill query ${queryId}`)
    if (outcome === 'waiting')
      throw new HttpProblem(503, 'The event log did not answer in time', { 'retry-after': '1' })
    return outcome
  }

  return {
    /** 204 also for an unknown query: clients of the family cancel this way and ignore the result. */
    async cancel(request, response) {
      await end(request, deps.identify(request), 'canceled')
      response.writeHead(204, { 'cache-control': 'no-store' }).end()
    },
    /** Answers as Trino does; the body is the reason, as text. */
    kill: (how) => async (request, response) => {
      const by = deps.identify(request)
      const message = decodeUtf8(await readBody(request, MAX_KILL_MESSAGE_BYTES))
      const outcome = await end(request, by, how, message)
      if (outcome === 'unknown') throw new HttpProblem(410, 'The query does not exist')
      if (outcome === 'ended') throw new HttpProblem(409, 'The query has already ended')
      response.writeHead(202, NO_BODY).end()
    },
  }
}
