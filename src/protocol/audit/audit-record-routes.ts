import type { IncomingMessage } from 'node:http'
import type { Router } from 'express'
import type { QueryRows } from '../../events/projection.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import { readAuditRecord } from '../../readmodels/audit/audit-record.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import { checkReadSystem } from '../access/system-information.ts'
import { HttpProblem } from '../edge/problem.ts'
import { problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import { auditInfo } from './audit-info.ts'

export interface AuditRecordRoutesDeps {
  readonly read: QueryRows
  readonly projection: Pick<ProjectionRunner, 'barrier'>
  readonly ownWritesWaitMs: number
  readonly logId: () => string
  readonly identify: (request: IncomingMessage) => Identity
  readonly authorize: Authorize
  readonly onError?: (error: unknown) => void
}

/** The route `/v1/audit` of any coordinator: audits, anchors and keys, from the read models. */
export function createAuditRecordRoutes(deps: AuditRecordRoutesDeps): Router {
  const { read, projection, ownWritesWaitMs, logId, onError } = deps
  const router = resourceRouter()
  resource(router, '/v1/audit', {
    async GET(request, response) {
      checkReadSystem(request, deps)
      const caughtUp = await projection.barrier(ownWritesWaitMs)
      const record = await readAuditRecord(read, logId()).catch((error: unknown) => {
        onError?.(error)
        throw new HttpProblem(503, 'The history cannot be read now', { 'retry-after': '1' })
      })
      const stale = caughtUp ? {} : { 'x-engine-stale': String(ownWritesWaitMs) }
      sendJson(response, auditInfo(record, logId()), undefined, stale)
    },
  })
  router.use(problemHandler(onError))
  return router
}
