import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { RefusalLog } from '../../coordinator/system/refusal-log.ts'
import { setCaller, type Caller } from '../../protocol/access/caller.ts'
import { checkBrowser, type BrowserPolicy } from '../../protocol/edge/browser-policy.ts'
import { answerError, HttpProblem } from '../../protocol/edge/problem.ts'
import { type AcceptRelay } from '../../protocol/relay/relayed-request.ts'
import { connectionIsOf } from '../../protocol/edge/known-connection.ts'
import { remoteAddressOf } from '../../protocol/edge/client-connection.ts'
import { requestTarget } from '../../protocol/edge/request-target.ts'
import type { StatementRoutes } from '../../protocol/statement/statement-routes.ts'
import type { Meters } from '../../telemetry/meters.ts'
import { observeRequest } from '../../protocol/edge/http-metrics.ts'
import type { AccessEntry } from './wire-access.ts'

export interface HttpDeps {
  readonly policy: BrowserPolicy
  /** The statement resource. It comes first and uses no libraries. */
  readonly statements: StatementRoutes
  /** Whether another coordinator, which has checked the browser, passed the request on. */
  readonly isRelayed: AcceptRelay
  readonly access: Pick<AccessEntry, 'callerAt' | 'relayedCaller'>
  /** All other resources. */
  readonly rest: (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void
  readonly meters: () => Meters
  readonly refusals: RefusalLog
  readonly onError: (error: unknown) => void
}

/** Handles every request: the browser check, the caller, the statement routes, the rest. Turns errors into problems. */
export function createCoordinatorListener(deps: HttpDeps): RequestListener {
  return (request, response) => {
    const { path } = requestTarget(request)
    observeRequest(request, response, path, deps.meters)
    const fail = (error: unknown): void => answerError(request, response, error, deps.onError)
    const serve = (caller: Caller): void => {
      setCaller(request, caller)
      if (caller.kind === 'principal') connectionIsOf(request, caller.principal.user)
      deps.statements(request, response, path).then((handled) => {
        if (handled) return
        deps.rest(request, response, (error) => fail(error ?? new HttpProblem(404, 'The resource does not exist')))
      }, fail)
    }
    try {
      if (deps.isRelayed(request)) return serve(deps.access.relayedCaller(request))
      checkOrigin(request)
      const caller = deps.access.callerAt(request, path)
      if (caller instanceof Promise) caller.then(serve).catch(fail)
      else serve(caller)
    } catch (error) {
      fail(error)
    }
  }

  function checkOrigin(request: IncomingMessage): void {
    try {
      checkBrowser(request, deps.policy)
    } catch (error) {
      deps.meters().count('httpRefusals', { reason: 'origin' })
      const { origin } = request.headers
      deps.refusals.accessDenied({
        user: 'anonymous',
        action: 'call from a browser',
        object: `origin ${origin ?? '-'}, host ${requestTarget(request).authority ?? '-'}`,
        remoteAddress: remoteAddressOf(request),
      })
      throw error
    }
  }
}
