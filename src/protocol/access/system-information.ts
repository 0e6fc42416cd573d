import type { IncomingMessage } from 'node:http'
import { Router } from 'express'
import type { Authorize, Identity } from '../../security/authorization.ts'
import { HttpProblem } from '../edge/problem.ts'
import { problemHandler } from '../edge/resource.ts'
import { callerOf } from './caller.ts'

export interface SystemInformationDeps {
  readonly identify: (request: IncomingMessage) => Identity
  readonly authorize: Authorize
}

/** @throws HttpProblem 403 in Trino's words, for whom the rules do not give what the server tells of itself */
export function checkReadSystem(
  request: IncomingMessage,
  { identify, authorize }: SystemInformationDeps,
  action: 'readSystem' | 'readFigures' = 'readSystem',
): void {
  if (!authorize(identify(request), { action }))
    throw new HttpProblem(403, 'Access Denied: Cannot read system information')
}

/** Before the figures: who watches this server by a token or from its machine was let in, of users the rules are asked. */
export function createFiguresGuard(deps: SystemInformationDeps): Router {
  const router = Router({ caseSensitive: true })
  router.use(['/metrics', '/openapi.json'], (request, _response, next) => {
    if (callerOf(request).kind === 'principal') checkReadSystem(request, deps, 'readFigures')
    next()
  })
  router.use(problemHandler())
  return router
}
