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

/** Requires the right to read system information. @throws HttpProblem 403 in Trino's words */
export function checkReadSystem(
  request: IncomingMessage,
  { identify, authorize }: SystemInformationDeps,
  action: 'readSystem' | 'readFigures' = 'readSystem',
): void {
  if (!authorize(identify(request), { action }))
    throw new HttpProblem(403, 'Access Denied: Cannot read system information')
}

/**
 * Guards the figures. Monitoring by token or from this machine was already admitted; the rights of users are checked
 * here.
 */
export function createFiguresGuard(deps: SystemInformationDeps): Router {
  const router = Router({ caseSensitive: true })
  router.use(['/metrics', '/openapi.json'], (request, _response, next) => {
    if (callerOf(request).kind === 'principal') checkReadSystem(request, deps, 'readFigures')
    next()
  })
  router.use(problemHandler())
  return router
}
