import type { IncomingMessage } from 'node:http'
import type {
  Authenticator,
  Credential,
  CredentialVerdict,
  VerifiedName,
} from '../../security/authentication/authenticator.ts'
import type { VerifiedPrincipal } from '../../security/authentication/principal.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { clientNetwork, isLocal } from '../edge/client-connection.ts'
import { noteAuthentication } from '../edge/http-metrics.ts'
import { HttpProblem } from '../edge/problem.ts'
import { requestTarget } from '../edge/request-target.ts'
import { isAuthorized } from '../task/internal-request.ts'
import { NOBODY, type Caller } from './caller.ts'

export interface AuthenticateDeps {
  /** In the order of the setting: the first authenticator that finds its credential decides. */
  readonly authenticators: readonly Authenticator[]
  /** Says which clients may not try now, and records each attempt. */
  readonly attempts: Attempts
  /** The user of a verified name; undefined: the mapping has none for it. */
  readonly principalOf: (verified: VerifiedName, method: Authenticator['method']) => VerifiedPrincipal | undefined
  /** The cluster's key, as after `Authorization: Bearer `. */
  readonly bearer: string
  /** Whether the request came over a connection that nobody can read along: TLS, or loopback. */
  readonly confidential: (request: IncomingMessage) => boolean
  /** Scheme, host and port as the client used them. */
  readonly baseUri: (request: IncomingMessage) => string
}

export interface FailedAttempt {
  readonly method: Authenticator['method']
  /** The name that was given; for a verified credential without a user here, the verified name. */
  readonly user: string
  readonly verified: boolean
  /** For the log of this server only. */
  readonly reason: string
}

/** Counts and records log-ins. */
export interface Attempts {
  /**
   * Whether a client must wait before it tries again.
   * @param remembered whether the credential was verified lately; undefined where the authenticator remembers none
   * @returns seconds to wait; undefined: none
   */
  blockedSeconds(credential: Credential, request: IncomingMessage, remembered: boolean | undefined): number | undefined
  refused(failed: FailedAttempt, request: IncomingMessage): void
  loggedIn(principal: VerifiedPrincipal, request: IncomingMessage): void
  /**
   * Records a log-in of a user whose credential was verified before, where none from their network was recorded lately.
   */
  cameAgain(principal: VerifiedPrincipal, request: IncomingMessage): void
}

/**
 * Returns who sent a request that may come from anywhere. Synchronous when the sender was seen lately.
 * @throws HttpProblem 401 without a valid credential; 403 where a secret came over plain HTTP; 429; 503
 */
export type Authenticate = (request: IncomingMessage) => Caller | Promise<Caller>

export interface Authentication {
  readonly request: Authenticate
  /**
   * The same for a credential that did not come in headers. It is counted, slowed down and recorded in the same manner.
   */
  credential(by: Authenticator, credential: Credential, request: IncomingMessage): Caller | Promise<Caller>
  /**
   * Returns the principal of a user that another service has just verified.
   * @throws HttpProblem 403 when the name has no user here
   */
  verified(verified: VerifiedName, method: Authenticator['method'], request: IncomingMessage): VerifiedPrincipal
}

export function createAuthenticate(deps: AuthenticateDeps): Authentication {
  const { authenticators, attempts } = deps

  function challenged(request: IncomingMessage, message: string): HttpProblem {
    const base = deps.baseUri(request)
    const challenges = authenticators
      .flatMap((one) => one.challenge(base, request) ?? [])
      .filter((one) => !asksBrowser(request, one))
    return new HttpProblem(401, message, challenges.length === 0 ? {} : { 'www-authenticate': challenges })
  }

  function mapped(
    verified: VerifiedName,
    method: Authenticator['method'],
    request: IncomingMessage,
  ): VerifiedPrincipal | undefined {
    const principal = deps.principalOf(verified, method)
    const reason = 'the user mapping has no user for this name'
    if (!principal) attempts.refused({ method, user: verified.name, verified: true, reason }, request)
    return principal
  }

  function callerFor(
    verdict: CredentialVerdict,
    credential: Credential,
    method: Authenticator['method'],
    request: IncomingMessage,
  ): Caller {
    const note = (result: 'ok' | 'refused' | 'blocked' | 'unavailable'): void =>
      noteAuthentication(request, { method, result })
    const refuse = ({ user, reason }: { readonly user: string; readonly reason: string }): void => {
      note('refused')
      attempts.refused({ method, user: user || credential.user, verified: false, reason }, request)
    }
    switch (verdict.kind) {
      case 'verified': {
        const principal = mapped(verdict.verified, method, request)
        if (!principal) {
          note('refused')
          throw challenged(request, REFUSED)
        }
        note('ok')
        if (verdict.fresh) attempts.loggedIn(principal, request)
        // A session was recorded when it was issued.
        else if (verdict.verified.user === undefined) attempts.cameAgain(principal, request)
        return { kind: 'principal', principal }
      }
      case 'refused':
        refuse(verdict)
        throw challenged(request, REFUSED)
      case 'unproven':
        if (verdict.fresh) refuse(verdict)
        else note('refused')
        throw notVerified(verdict.retryAfterSeconds)
      case 'busy':
        note('blocked')
        throw new HttpProblem(429, 'Too many log-ins at the same time: try again later', {
          'retry-after': String(verdict.retryAfterSeconds),
        })
      case 'unavailable':
        note('unavailable')
        throw notVerified(1)
      default:
        return unreachable(verdict)
    }
  }

  function checkBlocked(credential: Credential, by: Authenticator, request: IncomingMessage): void {
    const { method } = by
    const seconds = attempts.blockedSeconds(credential, request, by.remembers?.(credential))
    if (seconds === undefined) return
    noteAuthentication(request, { method, result: 'blocked' })
    throw new HttpProblem(429, 'Too many failed log-ins: try again later', { 'retry-after': String(seconds) })
  }

  function verify(by: Authenticator, credential: Credential, request: IncomingMessage): Caller | Promise<Caller> {
    const { method } = by
    if (!deps.confidential(request)) {
      noteAuthentication(request, { method, result: 'refused' })
      throw new HttpProblem(
        403,
        'Passwords and tokens are accepted only over HTTPS: change this one, because others could read it',
      )
    }
    const recalled = by.recall?.(credential)
    if (recalled) return callerFor(recalled, credential, method, request)
    checkBlocked(credential, by, request)
    const verdict = by.verify(credential, clientNetwork(request))
    if (!(verdict instanceof Promise)) return callerFor(verdict, credential, method, request)
    return verdict.then((late) => {
      // Many guesses that were sent at once must learn no more than guesses that are sent one after the other.
      checkBlocked(credential, by, request)
      return callerFor(late, credential, method, request)
    })
  }

  return {
    request(request) {
      if (isAuthorized(request, deps.bearer)) return { kind: 'cluster' }
      for (const one of authenticators) {
        const credential = one.credentialOf(request)
        if (credential) return verify(one, credential, request)
      }
      throw challenged(request, 'Authentication is required')
    },
    credential: verify,
    verified(verified, method, request) {
      const principal = mapped(verified, method, request)
      if (!principal) throw new HttpProblem(403, 'This name is not a user of this server')
      attempts.loggedIn(principal, request)
      return principal
    },
  }
}

/**
 * Whether a script of a page asks. The page leads to the log-in page itself; with this challenge the browser would open
 * its own password dialog.
 */
function asksBrowser({ headers }: IncomingMessage, challenge: string): boolean {
  return headers['sec-fetch-site'] !== undefined && /^Basic\b/i.test(challenge)
}

function notVerified(retryAfterSeconds: number): HttpProblem {
  return new HttpProblem(503, 'Log-ins cannot be verified now: try again later', {
    'retry-after': String(retryAfterSeconds),
  })
}

/** The message is the same for every reason. */
const REFUSED = 'Authentication failed'

/** Paths that are open although authentication is configured; for the figures see {@link callerAt}. */
const OPEN = /^\/(?:v1\/(?:info|status)\/?$|oauth2\/|ui\/(?:log-in|log-out)(?:\/|$)|ui\/[a-z]+\.(?:js|css)$)/
/** Pages that a browser opens. Without authentication they lead to the log-in page. */
const PAGE = /^\/ui(?:\/|$)/

/** Paths for programs that monitor this server. */
const WATCHED = /^\/(?:metrics|openapi\.json)\/?$/

/**
 * Makes the check of each request. Open paths are open to all callers, and credentials that come along are not verified
 * there.
 * @param mayWatch whether a request of any sender may have `/metrics` and `/openapi.json`; otherwise the right of its
 * user is checked later
 */
export function callerAt(
  authenticate: Authenticate,
  mayWatch: (request: IncomingMessage) => boolean,
): (request: IncomingMessage, path: string) => Caller | Promise<Caller> {
  return (request, path) => {
    if (OPEN.test(path)) return NOBODY
    if (WATCHED.test(path)) {
      if (request.headers.authorization === undefined || mayWatch(request)) {
        checkWatcher(request, mayWatch)
        return NOBODY
      }
      const caller = authenticate(request)
      return caller instanceof Promise ? caller.then(onlyPeople) : onlyPeople(caller)
    }
    if (!PAGE.test(path) || !isNavigation(request)) return authenticate(request)
    const toLogIn = (error: unknown): never => {
      if (!(error instanceof HttpProblem) || error.status !== 401) throw error
      const location = `/ui/log-in?to=${encodeURIComponent(requestTarget(request).text)}`
      throw new HttpProblem(303, 'Log in first', { location })
    }
    try {
      const caller = authenticate(request)
      return caller instanceof Promise ? caller.catch(toLogIn) : caller
    } catch (error) {
      return toLogIn(error)
    }
  }
}

/** The key of the cluster's processes gives no access to figures. */
function onlyPeople(caller: Caller): Caller {
  if (caller.kind !== 'principal') throw watcherNeeded()
  return caller
}

function isNavigation({ method, headers }: IncomingMessage): boolean {
  return (method === 'GET' || method === 'HEAD') && /\btext\/html\b/.test(headers.accept ?? '')
}

/** Requires the right to the figures of this server. @throws HttpProblem 401 */
export function checkWatcher(request: IncomingMessage, mayWatch: (request: IncomingMessage) => boolean): void {
  if (!mayWatch(request)) throw watcherNeeded()
}

function watcherNeeded(): HttpProblem {
  return new HttpProblem(401, 'The metrics need their own token (metricsToken)', {
    'www-authenticate': 'Bearer realm="metrics"',
  })
}

/** Accepts requests from this machine, or with the token for monitoring. */
export function watchersBy(token: string | undefined): (request: IncomingMessage) => boolean {
  return (request) => isLocal(request) || (token !== undefined && isAuthorized(request, token))
}
