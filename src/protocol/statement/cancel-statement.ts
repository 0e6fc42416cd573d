import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { canceledByClient } from '../../coordinator/query/stream/ending.ts'
import type { Canceled } from '../../coordinator/query/results/cancel-query.ts'
import type { StatementService } from '../../coordinator/query/results/statement-service.ts'
import type { QueryId } from '../../shared/ids.ts'
import { guardWithin, type ResultsOf } from '../access/results-guard.ts'
import type { Handler } from '../edge/endpoint.ts'
import { HttpProblem } from '../edge/problem.ts'
import type { StatementPath, StatementUris } from './next-uri.ts'
import { isPassing } from './passing-error.ts'

export interface CancelStatementDeps {
  readonly service: Pick<StatementService, 'cancel'>
  readonly uris: Pick<StatementUris, 'verifyPage'>
  /** Throws HttpProblem for a user who may not end the query, and a passing error while its owner is unknown. */
  readonly guard: (request: IncomingMessage, asked: ResultsOf) => void | Promise<void>
  readonly limits: { readonly deleteValidityWaitMs: number }
}

/** How long a cancel that the log did not accept in time is tried again, milliseconds. */
const TRIED_FOR_MS = 60_000
const AGAIN_MS = 200
/** The most cancels that are tried again at the same time. Beyond that, clients get 503 and must cancel again. */
const MOST_TRIED = 10_000

/**
 * Makes the handler of `DELETE /v1/statement/{queryId}/{token}`: 204 once the query has ended. While the log is
 * unreachable, or the owner of the query is unknown, the answer is 204 as well, and the coordinator continues the
 * cancel. A coordinator that dies meanwhile forgets it; the query then ends because its client does not come back.
 */
export function createCancelStatement({ service, uris, guard, limits }: CancelStatementDeps): Handler<StatementPath> {
  let goingOn = 0

  async function attempt(request: IncomingMessage, queryId: QueryId): Promise<Canceled> {
    try {
      await guardWithin(guard(request, { queryId, action: 'cancel' }), limits.deleteValidityWaitMs)
      return await service.cancel(queryId, canceledByClient, limits.deleteValidityWaitMs)
    } catch (error) {
      if (isPassing(error)) return 'waiting'
      throw error
    }
  }

  /** Tries again until the cancel is settled, in any way. No client waits for the outcome. */
  async function goOn(request: IncomingMessage, queryId: QueryId): Promise<void> {
    goingOn++
    try {
      for (let left = TRIED_FOR_MS; left > 0; left -= AGAIN_MS + limits.deleteValidityWaitMs) {
        await sleep(AGAIN_MS, undefined, { ref: false })
        if ((await attempt(request, queryId)) !== 'waiting') return
      }
    } catch {
      // A user who may not end the query changes nothing.
    } finally {
      goingOn--
    }
  }

  return async (request: IncomingMessage, response: ServerResponse, path: StatementPath) => {
    const page = uris.verifyPage(path)
    if (!page) throw new HttpProblem(404, 'Query not found')
    const outcome = await attempt(request, page.queryId)
    if (outcome === 'unknown') throw new HttpProblem(404, 'Query not found')
    if (outcome === 'waiting') {
      if (goingOn >= MOST_TRIED)
        throw new HttpProblem(503, 'Too many cancels wait for the event log: try again later', { 'retry-after': '1' })
      void goOn(request, page.queryId)
    }
    response.writeHead(204, { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }).end()
  }
}
