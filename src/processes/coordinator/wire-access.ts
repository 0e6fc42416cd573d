import type { IncomingMessage } from 'node:http'
import type { Config } from '../../config/load-config.ts'
import { recordDenials } from '../../coordinator/system/recorded-rights.ts'
import type { RefusalLog } from '../../coordinator/system/refusal-log.ts'
import { createActsAs, type ActsAs } from '../../protocol/access/acts-as.ts'
import { callerAt, createAuthenticate, type Attempts } from '../../protocol/access/authenticate.ts'
import { ANYBODY, NOBODY, type Caller } from '../../protocol/access/caller.ts'
import { baseUri } from '../../protocol/edge/base-uri.ts'
import { clientConnection, remoteAddressOf } from '../../protocol/edge/client-connection.ts'
import { relayedPrincipal } from '../../protocol/relay/relayed-request.ts'
import { isAuthorized } from '../../protocol/task/internal-request.ts'
import type { Authenticator, VerifiedName } from '../../security/authentication/authenticator.ts'
import type { VerifiedPrincipal } from '../../security/authentication/principal.ts'
import { allowAll, authorizeBy, type Authorize } from '../../security/authorization.ts'
import { internalBearer } from '../../security/cluster-secret.ts'

/** Who may come in to a coordinator, and as whom; once a process, so that what was verified stays so when it becomes the writer. */
export interface Access {
  /** Must clients be known? */
  readonly configured: boolean
  /** @param refusals where this role of the process tells of refusals */
  door(refusals: Pick<RefusalLog, 'authenticationFailed' | 'accessDenied'>): AccessDoor
}

export interface AccessDoor {
  /** @throws HttpProblem, also in the promise: see `Authenticate` */
  readonly callerAt: (request: IncomingMessage, path: string) => Caller | Promise<Caller>
  /** Of a request that another coordinator passed on, and vouches for. */
  readonly relayedCaller: (request: IncomingMessage) => Caller
  readonly actsAs: ActsAs
  /** Refusals are told of. */
  readonly authorize: Authorize
}

export interface AccessParts {
  readonly config: Config
  /** Of the cluster. */
  readonly secret: string
}

export function wireAccess({ config, secret }: AccessParts): Access {
  const configured = config.authentication.length > 0
  const bearer = internalBearer(secret)
  const authenticators: readonly Authenticator[] = []
  const rights = configured ? authorizeBy(() => undefined) : allowAll
  return {
    configured,
    door(refusals) {
      const authorize = recordDenials(rights, refusals)
      const authenticate = createAuthenticate({
        authenticators,
        attempts: attemptsIn(refusals),
        principalOf,
        bearer,
        confidential: (request) => clientConnection(request).confidential,
        baseUri,
      })
      return {
        callerAt: configured ? callerAt(authenticate) : () => ANYBODY,
        relayedCaller(request) {
          const principal = relayedPrincipal(request)
          if (principal) return { kind: 'principal', principal }
          if (!configured) return ANYBODY
          return isAuthorized(request, bearer) ? { kind: 'cluster' } : NOBODY
        },
        actsAs: createActsAs({ authorize, groupsOf: () => [] }),
        authorize,
      }
    },
  }
}

function principalOf(verified: VerifiedName, method: Authenticator['method']): VerifiedPrincipal {
  return { name: verified.name, user: verified.user ?? verified.name, groups: verified.groups, method }
}

function attemptsIn(refusals: Pick<RefusalLog, 'authenticationFailed'>): Attempts {
  return {
    blockedSeconds: () => undefined,
    refused: (method, user, _reason, request) =>
      refusals.authenticationFailed({ user, method, remoteAddress: remoteAddressOf(request) }),
    loggedIn: () => {},
  }
}
