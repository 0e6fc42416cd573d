import type { Request, Router } from 'express'
import { z } from 'zod'
import type { ForgetOutcome } from '../../coordinator/system/forget-query.ts'
import { isQueryId, type QueryId } from '../../shared/ids.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { keyNeeded } from '../task/internal-request.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'

export interface AuditRoutesDeps {
  /** Does the request carry the cluster's secret? */
  readonly isInternal: (request: Request) => boolean
  /** Resolves when the read models have forgotten it too. @throws HttpProblem 409 where the log cannot forget */
  readonly forget: (queryId: QueryId, by: string) => Promise<ForgetOutcome>
  readonly rebuilt: (rebuilt: { readonly events: number; readonly milliseconds: number }) => Promise<void>
  readonly onError?: (error: unknown) => void
}

const MAX_BODY_BYTES = 4096
const forgetBody = z.object({ by: z.string().min(1).max(200) })
const rebuiltBody = z.object({ events: z.number().int().min(0), milliseconds: z.number().min(0) })

/** What commands ask of the coordinator that writes the log: `/v1/query/{queryId}/forget`, `/v1/system/rebuilt`. */
export function createAuditRoutes(deps: AuditRoutesDeps): Router {
  const router = resourceRouter()

  async function bodyOf<T>(request: Request, schema: z.ZodType<T>): Promise<T> {
    if (!deps.isInternal(request)) throw keyNeeded()
    const parsed = schema.safeParse(await readJson(request, MAX_BODY_BYTES))
    if (!parsed.success) throw new HttpProblem(400, z.prettifyError(parsed.error).replaceAll('\n', ' '))
    return parsed.data
  }

  resource(router, '/v1/query/:queryId/forget', {
    async POST(request, response) {
      const { by } = await bodyOf(request, forgetBody)
      const { queryId } = request.params
      const known = typeof queryId === 'string' && isQueryId(queryId)
      const outcome = known ? await deps.forget(queryId, by) : ({ kind: 'unknown' } as const)
      if (outcome.kind === 'unknown') throw new HttpProblem(404, 'Query not found')
      if (outcome.kind === 'open') throw new HttpProblem(409, 'The query has not ended: cancel it first')
      sendJson(response, { events: outcome.events })
    },
  })

  resource(router, '/v1/system/rebuilt', {
    async POST(request, response) {
      await deps.rebuilt(await bodyOf(request, rebuiltBody))
      response.writeHead(204, { 'cache-control': 'no-store' }).end()
    },
  })

  router.use(problemHandler(deps.onError))
  return router
}
