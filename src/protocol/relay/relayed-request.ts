import type { IncomingMessage } from 'node:http'
import type { RelayClaims, RelayVerifier } from '../../security/relay-credential.ts'
import { vouchConnection } from '../edge/client-connection.ts'
import type { VerifiedPrincipal } from '../../security/authentication/principal.ts'
import { HttpProblem } from '../edge/problem.ts'
import { relayHeaders } from '../edge/relay-headers.ts'
import { expectBody } from '../edge/request-body.ts'
import { requestTarget } from '../edge/request-target.ts'

/**
 * Whether another coordinator, which has authenticated the client, passed the request on.
 * @throws HttpProblem when the request claims so and its credential is not accepted
 */
export type AcceptRelay = (request: IncomingMessage) => boolean

const accepted = new WeakMap<IncomingMessage, RelayClaims>()

/** Checks relayed requests at the coordinator that writes the log. */
export function acceptRelayedBy(verifier: RelayVerifier): AcceptRelay {
  return (request) => {
    if (accepted.has(request)) return true
    const credential = request.headers[relayHeaders.credential]
    if (credential === undefined) return false
    const call = { method: request.method ?? 'GET', target: requestTarget(request).text }
    const verdict = verifier.verify(String(credential), call)
    switch (verdict.kind) {
      case 'accepted':
        expectBody(request, verdict.bodyDigest)
        accepted.set(request, verdict.claims)
        vouchConnection(request, { ...verdict.claims.client, address: verdict.claims.clientAddress })
        return true
      case 'epoch':
        return refuseRelayed(request)
      case 'clock':
        throw new HttpProblem(503, 'The clocks of two coordinators differ too much', {
          [relayHeaders.clock]: verdict.clock,
          'retry-after': '1',
        })
      case 'forged':
      case 'replayed':
        throw new HttpProblem(401, `The credential of a relayed request is ${verdict.kind}`)
      default:
        throw new Error(`Unknown verdict: ${JSON.stringify(verdict satisfies never)}`)
    }
  }
}

/** Refuses relayed requests at a coordinator that does not write the log, so that requests do not circulate. */
export const refuseRelayed: AcceptRelay = (request) => {
  if (request.headers[relayHeaders.credential] === undefined) return false
  throw new HttpProblem(503, 'This coordinator does not write the log', {
    [relayHeaders.notWriter]: 'true',
    'retry-after': '1',
  })
}

/** Whether another coordinator sent the request for itself, not for a client. */
export function isOwnOfCoordinator(request: IncomingMessage): boolean {
  return accepted.get(request)?.own === true
}

/** The principal that the relaying coordinator has verified. */
export function relayedPrincipal(request: IncomingMessage): VerifiedPrincipal | undefined {
  return accepted.get(request)?.principal
}
