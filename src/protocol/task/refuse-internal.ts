import type { IncomingMessage } from 'node:http'
import type { RefusalLog } from '../../coordinator/system/refusal-log.ts'
import { remoteAddressOf } from '../edge/client-connection.ts'

/** Records requests to the internal interface without its key. */
export function refuseInternal(refusals: RefusalLog): (request: IncomingMessage) => void {
  return (request) =>
    refusals.authenticationFailed({
      user: 'internal',
      method: 'shared_secret',
      remoteAddress: remoteAddressOf(request),
    })
}
