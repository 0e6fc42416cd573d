import type { IncomingMessage } from 'node:http'
import type { Administrator } from '../../coordinator/system/forget-query.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import { remoteAddressOf } from '../edge/client-connection.ts'
import { HttpProblem } from '../edge/problem.ts'
import { keyNeeded } from '../task/internal-request.ts'
import { callerOf } from './caller.ts'

export interface AdministratorDeps {
  /** Does the request carry the cluster's secret? */
  readonly isInternal: (request: IncomingMessage) => boolean
  readonly identify: (request: IncomingMessage) => Identity
  readonly authorize: Authorize
}

/**
 * Who asks for what only administrators do: a user is who he is, whoever has the key says for whom he asks.
 * @param named whom the request names; asked with the key alone
 * @throws HttpProblem 401 without user or key, 403 for a user to whom the rules do not let write system information
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
