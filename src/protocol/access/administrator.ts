import type { IncomingMessage } from 'node:http'
import type { Administrator } from '../../coordinator/system/forget-query.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import { remoteAddressOf } from '../edge/client-connection.ts'
import { HttpProblem } from '../edge/problem.ts'
import { keyNeeded } from '../task/internal-request.ts'
import { callerOf } from './caller.ts'

export interface AdministratorDeps {
  /** Whether the request carries the cluster's secret. */
  readonly isInternal: (request: IncomingMessage) => boolean
  readonly identify: (request: IncomingMessage) => Identity
  readonly authorize: Authorize
}

/**
 * Returns the administrator who asks for an action. Users are known by authentication; a caller with the cluster's key
 * names the person that it asks for.
 * @param named reads the name in the request; called only for callers with the key
 * @throws HttpProblem 401 without user or key, 403 for a user without the right to write system information
 */
export async function administratorOf(
  request: IncomingMessage,
  { isInternal, identify, authorize }: AdministratorDeps,
  named: () => Promise<string>,
): Promise<Administrator> {
  if (callerOf(request).kind !== 'principal') {
    if (!isInternal(request)) throw keyNeeded()
    const remoteAddress = remoteAddressOf(request)
    return { by: await named(), ...(remoteAddress !== undefined && { remoteAddress }) }
  }
  const identity = identify(request)
  if (!authorize(identity, { action: 'writeSystem' }))
    throw new HttpProblem(403, 'Access Denied: Cannot write system information')
  const { user: by, originalUser, remoteAddress } = identity
  return {
    by,
    ...(originalUser !== undefined && { originalUser }),
    ...(remoteAddress !== undefined && { remoteAddress }),
  }
}
