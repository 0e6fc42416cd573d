import type { IncomingMessage, ServerResponse } from 'node:http'
import type { StatementService } from '../../coordinator/query/results/statement-service.ts'
import type { QueryId } from '../../shared/ids.ts'
import { guardWithin, type ResultsOf } from '../access/results-guard.ts'
import { endpoint, findEndpoint, type Endpoint, type Handler } from '../edge/endpoint.ts'
import { HttpProblem } from '../edge/problem.ts'
import { createCancelStatement } from './cancel-statement.ts'
import { stagePath, statementPath, type StagePath, type StatementPath } from './next-uri.ts'
import { isPassing } from './passing-error.ts'
import { createPollStatement, type PollStatementDeps } from './poll-statement.ts'
import { createPostStatement, type PostStatementDeps } from './post-statement.ts'

export interface StatementRouteDeps extends PostStatementDeps, PollStatementDeps {
  readonly service: StatementService
  /** Throws for a user who may not read a query's results, or end it. */
  readonly guard: (request: IncomingMessage, asked: ResultsOf) => void | Promise<void>
  readonly spans: PostStatementDeps['spans'] & PollStatementDeps['spans']
  readonly limits: PostStatementDeps['limits'] &
    PollStatementDeps['limits'] & {
      readonly deleteValidityWaitMs: number
    }
}

/**
 * The statement resource on bare `node:http`: no library slows down a small statement.
 * Rejects with HttpProblem (or a bug): the caller answers it.
 * @returns false when the path is not this resource's
 */
export type StatementRoutes = (request: IncomingMessage, response: ServerResponse, path: string) => Promise<boolean>

const NO_BODY = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

export function createStatementRoutes(deps: StatementRouteDeps): StatementRoutes {
  const endpoints = statementEndpoints(deps)
  return async (request, response, path) => {
    const answer = findEndpoint(endpoints, path)
    if (!answer) return false
    await answer(request, response)
    return true
  }
}

export function statementEndpoints(deps: StatementRouteDeps): readonly Endpoint[] {
  const { service, uris, limits } = deps

  /** Handles the heartbeat of clients that still process the rows that they have. */
  async function heartbeat(request: IncomingMessage, response: ServerResponse, path: StatementPath): Promise<void> {
    const page = uris.verifyPage(path)
    const known =
      page !== undefined &&
      ((await mayHave(request, page.queryId)) === 'unknown' ||
        (await service
          .heartbeat(page.queryId, page.relayed)
          .catch((error: unknown) => isPassing(error) || Promise.reject(error))))
    response.writeHead(known ? 200 : 404, NO_BODY).end()
  }

  /**
   * Whether the caller may have the results; `unknown` while the owner is unknown. Throws HttpProblem for a user who
   * may not.
   */
  function mayHave(request: IncomingMessage, queryId: QueryId): 'granted' | Promise<'granted' | 'unknown'> {
    const guarded = deps.guard(request, { queryId, action: 'results' })
    if (!guarded) return 'granted'
    return guardWithin(guarded, limits.longPollMs).then(
      () => 'granted',
      (error: unknown) => {
        if (isPassing(error)) return 'unknown'
        throw error
      },
    )
  }

  async function cancelStage(request: IncomingMessage, response: ServerResponse, path: StagePath): Promise<void> {
    const found = uris.verifyStage(path)
    if (!found) throw new HttpProblem(404, 'Query not found')
    await deps.guard(request, { queryId: found.queryId, action: 'cancel' })
    const canceled = await service.cancelStage(found.queryId, found.stage)
    if (canceled === 'unknown') throw new HttpProblem(404, 'Query not found')
    if (canceled === 'writes') throw new HttpProblem(409, 'A query that writes has no partial result')
    response.writeHead(204, NO_BODY).end()
  }

  return [
    endpoint(
      '/v1/statement',
      (path) => path === '/v1/statement' || path === '/v1/statement/' || undefined,
      { POST: createPostStatement(deps), OPTIONS: options('POST, OPTIONS') },
      'Use POST for a statement',
    ),
    endpoint(
      '/v1/statement/{queryId}/{token}',
      statementPath,
      {
        GET: createPollStatement(deps, mayHave),
        HEAD: heartbeat,
        DELETE: createCancelStatement(deps),
        OPTIONS: options('GET, HEAD, DELETE, OPTIONS'),
      },
      'Use GET to fetch a result, and DELETE to cancel it',
    ),
    endpoint('/v1/stage/{stageId}/{mac}', stagePath, { DELETE: cancelStage }, 'Use DELETE to cancel a stage'),
  ]
}

function options(allow: string): Handler<unknown> {
  return (_request, response) => void response.writeHead(204, { ...NO_BODY, allow }).end()
}
