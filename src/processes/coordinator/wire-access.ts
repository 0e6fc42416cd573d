import type { IncomingMessage } from 'node:http'
import type { Config } from '../../config/load-config.ts'
import { recordDenials } from '../../coordinator/system/recorded-rights.ts'
import type { RefusalLog } from '../../coordinator/system/refusal-log.ts'
import { createActsAs, type ActsAs } from '../../protocol/access/acts-as.ts'
import { callerAt, createAuthenticate, type Attempts, type Authenticate } from '../../protocol/access/authenticate.ts'
import { ANYBODY, NOBODY, type Caller } from '../../protocol/access/caller.ts'
import type { QueryRows } from '../../events/projection.ts'
import { baseUri } from '../../protocol/edge/base-uri.ts'
import { clientConnection, remoteAddressOf } from '../../protocol/edge/client-connection.ts'
import { HttpProblem } from '../../protocol/edge/problem.ts'
import type { LogInDeps, LogInDoor } from '../../protocol/log-in/log-in-routes.ts'
import { relayedPrincipal } from '../../protocol/relay/relayed-request.ts'
import { isAuthorized } from '../../protocol/task/internal-request.ts'
import type { Authenticator, VerifiedName } from '../../security/authentication/authenticator.ts'
import type { VerifiedPrincipal } from '../../security/authentication/principal.ts'
import { allowAll, authorizeBy, type Authorize } from '../../security/authorization.ts'
import { internalBearer } from '../../security/cluster-secret.ts'
import { wireLogIns } from './wire-log-ins.ts'

/** Who may come in to a coordinator, and as whom; once a process, so that what was verified stays so when it becomes the writer. */
export interface Access {
  /** Must clients be known? */
  readonly configured: boolean
  /** @param refusals where this role of the process tells of refusals */
  door(refusals: Pick<RefusalLog, 'authenticationFailed' | 'accessDenied'>): AccessDoor
  /** Where log-ins that are under way lie. */
  open(ask: QueryRows): void
  stop(): Promise<void>
}

export interface AccessDoor {
  /** @throws HttpProblem, also in the promise: see `Authenticate` */
  readonly callerAt: (request: IncomingMessage, path: string) => Caller | Promise<Caller>
  /** Of a request that another coordinator passed on, and vouches for. */
  readonly relayedCaller: (request: IncomingMessage) => Caller
  readonly actsAs: ActsAs
  /** Refusals are told of. */
  readonly authorize: Authorize
  /** Where authentication is configured. */
  readonly logIns: Omit<LogInDeps, 'onError'> | undefined
}

export interface AccessParts {
  readonly config: Config
  /** Of the cluster. */
  readonly secret: string
}

export function wireAccess({ config, secret }: AccessParts): Access {
  const configured = config.authentication.length > 0
  const bearer = internalBearer(secret)
  const logIns = configured ? wireLogIns(config, secret) : undefined
  const authenticators: readonly Authenticator[] = []
  const rights = configured ? authorizeBy(() => undefined) : allowAll
  return {
    configured,
    door(refusals) {
      const authorize = recordDenials(rights, refusals)
      const attempts = attemptsIn(refusals)
      const authenticateBy = (ways: readonly Authenticator[]): Authenticate =>
        createAuthenticate({
          authenticators: ways,
          attempts,
          principalOf,
          bearer,
          confidential: (request) => clientConnection(request).confidential,
          baseUri,
        })
      const authenticate = authenticateBy([...(logIns?.sessions ?? []), ...authenticators])
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
        logIns: logIns && {
          ...logIns.deps,
          door: {
            byPassword: byPasswordAt(authenticateBy(authenticators.filter(({ method }) => method === 'password'))),
            admit(verified, request) {
              const principal = principalOf(verified, 'oauth2')
              if (principal) attempts.loggedIn(principal, request)
              else attempts.refused('oauth2', verified.name, 'the user mapping has no user for this name', request)
              if (!principal) throw new HttpProblem(403, 'Nobody by this name is a user here')
              return principal
            },
          },
        },
      }
    },
    open: (ask) => logIns?.open(ask),
    stop: async () => logIns?.stop(),
  }
}

/** A form's fields are looked at as a program's header is: counted, slowed and told of alike. */
function byPasswordAt(authenticate: Authenticate): LogInDoor['byPassword'] {
  return async (user, password, request) => {
    if (user.includes(':')) throw new HttpProblem(401, 'Authentication failed')
    request.headers.authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
    try {
      const caller = await authenticate(request)
      if (caller.kind === 'principal') return caller.principal
      throw new HttpProblem(401, 'Authentication failed')
    } finally {
      delete request.headers.authorization
    }
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
