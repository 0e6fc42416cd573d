import type { IncomingMessage } from 'node:http'
import type { RelayClaims, RelayVerifier } from '../../security/relay-credential.ts'
import { vouchConnection } from '../edge/client-connection.ts'
import type { VerifiedPrincipal } from '../../security/authentication/principal.ts'
import { HttpProblem } from '../edge/problem.ts'
import { relayHeaders } from '../edge/relay-headers.ts'
import { expectBody } from '../edge/request-body.ts'
import { requestTarget } from '../edge/request-target.ts'

/**
 * Was the request passed on by another coordinator, which has looked at its client?
 * @throws HttpProblem when it says so and cannot be taken
 */
export type AcceptRelay = (request: IncomingMessage) => boolean

const accepted = new WeakMap<IncomingMessage, RelayClaims>()

/** Of the coordinator that writes the log. */
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

/** Of a coordinator that does not write the log: what was passed on to it must not go round. */
export const refuseRelayed: AcceptRelay = (request) => {
  if (request.headers[relayHeaders.credential] === undefined) return false
  throw new HttpProblem(503, 'This coordinator does not write the log', {
    [relayHeaders.notWriter]: 'true',
    'retry-after': '1',
  })
}

/** Is it a request of another coordinator itself? */
export function isOwnOfCoordinator(request: IncomingMessage): boolean {
  return accepted.get(request)?.own === true
}

/** Whom the coordinator that passed the request on has verified. */
export function relayedPrincipal(request: IncomingMessage): VerifiedPrincipal | undefined {
  return accepted.get(request)?.principal
}
