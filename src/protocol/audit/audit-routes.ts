import type { Request, Router } from 'express'
import { z } from 'zod'
import type { Administrator, ForgetOutcome } from '../../coordinator/system/forget-query.ts'
import { isQueryId, type QueryId } from '../../shared/ids.ts'
import { administratorOf, type AdministratorDeps } from '../access/administrator.ts'
import { remoteAddressOf } from '../edge/client-connection.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { keyNeeded } from '../task/internal-request.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import { auditReportSchema, type AuditReport } from './audit-info.ts'

export interface AuditRoutesDeps extends AdministratorDeps {
  /** Resolves when the read models have forgotten the query too. @throws HttpProblem 409 where the log cannot forget */
  readonly forget: (queryId: QueryId, administrator: Administrator) => Promise<ForgetOutcome>
  readonly rebuilt: (rebuilt: RebuiltReport) => Promise<void>
  /** Resolves when the result of an audit is in the log. */
  readonly verified: (report: AuditReport & Pick<Administrator, 'remoteAddress'>) => Promise<void>
  readonly onError?: (error: unknown) => void
}

const MAX_BODY_BYTES = 4096
const forgetBody = z.object({ by: z.string().min(1).max(200) })
const rebuiltBody = z.object({
  events: z.number().int().min(0),
  milliseconds: z.number().min(0),
  deadLetters: z.number().int().min(0).optional(),
  stream: z.string().max(255).optional(),
  by: z.string().min(1).max(200).optional(),
})
type RebuiltReport = Readonly<z.infer<typeof rebuiltBody>> & Pick<Administrator, 'remoteAddress'>

/**
 * Routes of the coordinator that writes the log: `/v1/query/{queryId}/forget`, for commands and for users with the
 * right to it, and `/v1/system/rebuilt` and `/v1/system/verified`, for commands.
 */
export function createAuditRoutes(deps: AuditRoutesDeps): Router {
  const router = resourceRouter()

  async function bodyOf<T>(request: Request, schema: z.ZodType<T>): Promise<T> {
    const parsed = schema.safeParse(await readJson(request, MAX_BODY_BYTES))
    if (!parsed.success) throw new HttpProblem(400, z.prettifyError(parsed.error).replaceAll('\n', ' '))
    return parsed.data
  }

  resource(router, '/v1/query/{queryId}/forget', {
    async POST(request, response) {
      const administrator = await administratorOf(request, deps, async () => (await bodyOf(request, forgetBody)).by)
      const { queryId } = request.params
      const known = typeof queryId === 'string' && isQueryId(queryId)
      const outcome = known ? await deps.forget(queryId, administrator) : ({ kind: 'unknown' } as const)
      if (outcome.kind === 'unknown') throw new HttpProblem(404, 'Query not found')
      if (outcome.kind === 'open') throw new HttpProblem(409, 'The query has not ended: cancel it first')
      sendJson(response, { events: outcome.events })
    },
  })

  resource(router, '/v1/system/rebuilt', {
    async POST(request, response) {
      if (!deps.isInternal(request)) throw keyNeeded()
      const remoteAddress = remoteAddressOf(request)
      await deps.rebuilt({
        ...(await bodyOf(request, rebuiltBody)),
        ...(remoteAddress !== undefined && { remoteAddress }),
      })
      response.writeHead(204, { 'cache-control': 'no-store' }).end()
    },
  })

  resource(router, '/v1/system/verified', {
    async POST(request, response) {
      if (!deps.isInternal(request)) throw keyNeeded()
      const remoteAddress = remoteAddressOf(request)
      await deps.verified({
        ...(await bodyOf(request, auditReportSchema)),
        ...(remoteAddress !== undefined && { remoteAddress }),
      })
      response.writeHead(204, { 'cache-control': 'no-store' }).end()
    },
  })

  router.use(problemHandler(deps.onError))
  return router
}
