import type { Request, Response, Router } from 'express'
import { z } from 'zod'
import type { Administrator } from '../../coordinator/system/forget-query.ts'
import type { ErasureOrder } from '../../erasure/erasure-store.ts'
import { subjectSchema } from '../../erasure/subject.ts'
import { administratorOf, type AdministratorDeps } from '../access/administrator.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readJson } from '../edge/request-body.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import type { ErasureInfo } from '../info/schemas/server.ts'

export interface ErasureRoutesDeps extends AdministratorDeps {
  /** @throws HttpProblem 409 while another preview runs */
  readonly preview: (order: ErasureOrder) => Promise<ErasureInfo>
  /** @throws HttpProblem 400 when the reason names the subject, 409 while another erasure runs */
  readonly begin: (order: ErasureOrder, administrator: Administrator) => Promise<ErasureInfo>
  readonly find: (id: string) => Promise<ErasureInfo | undefined>
  readonly onError?: (error: unknown) => void
}

export const MAX_ERASURE_BYTES = 16 * 1024

/** `by` names the administrator, if the caller has the key of the cluster. */
const bodySchema = z.strictObject({
  user: z.string().optional(),
  value: z.string().optional(),
  mentions: z.boolean().default(false),
  reason: z.string().min(1).max(1000).optional(),
  by: z.string().min(1).max(200).optional(),
})
type Body = Readonly<z.output<typeof bodySchema>>

/**
 * Routes of `/v1/erasure`, at the coordinator that writes the log, for administrators and commands. Both POSTs answer
 * 202 at once, because a search of the whole log may take minutes; a GET says whether it has ended.
 */
export function createErasureRoutes(deps: ErasureRoutesDeps): Router {
  const router = resourceRouter()

  /** Reads the body once. A caller without the right is refused whatever the body is. */
  async function orderOf(request: Request): Promise<{ order: ErasureOrder; administrator: Administrator }> {
    let read: Promise<Body> | undefined
    const body = (): Promise<Body> => (read ??= bodyOf(request))
    const administrator = await administratorOf(request, deps, async () => namedBy(await body()))
    const { user, value, mentions, reason } = await body()
    const given = { ...(user !== undefined && { user }), ...(value !== undefined && { value }) }
    const subject = checked(subjectSchema, given)
    return { order: { subject, mentions, ...(reason !== undefined && { reason }) }, administrator }
  }

  resource(router, '/v1/erasure/preview', {
    async POST(request, response) {
      const { order } = await orderOf(request)
      sendAccepted(response, await deps.preview(order))
    },
  })

  resource(router, '/v1/erasure', {
    async POST(request, response) {
      const { order, administrator } = await orderOf(request)
      sendAccepted(response, await deps.begin(order, administrator))
    },
  })

  resource(router, '/v1/erasure/{erasureId}', {
    async GET(request, response) {
      await administratorOf(request, deps, async () => '')
      const info = await deps.find(String(request.params['erasureId']))
      if (!info) throw new HttpProblem(404, 'Erasure not found')
      sendJson(response, info)
    },
  })

  router.use(problemHandler(deps.onError))
  return router
}

async function bodyOf(request: Request): Promise<Body> {
  return checked(bodySchema, await readJson(request, MAX_ERASURE_BYTES))
}

function checked<T>(schema: z.ZodType<T>, given: unknown): T {
  const parsed = schema.safeParse(given)
  if (parsed.success) return parsed.data
  throw new HttpProblem(400, z.prettifyError(parsed.error).replaceAll('\n', ' '))
}

function namedBy({ by }: Body): string {
  if (by === undefined) throw new HttpProblem(400, '`by` must name the user who asks for the erasure')
  return by
}

function sendAccepted(response: Response, info: ErasureInfo): void {
  sendJson(response, info, undefined, { location: `/v1/erasure/${info.erasureId}` }, 202)
}
