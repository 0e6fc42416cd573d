import type { IncomingMessage } from 'node:http'
import type {
  Authenticator,
  Credential,
  CredentialVerdict,
  VerifiedName,
} from '../../security/authentication/authenticator.ts'
import type { VerifiedPrincipal } from '../../security/authentication/principal.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { HttpProblem } from '../edge/problem.ts'
import { requestTarget } from '../edge/request-target.ts'
import { isAuthorized } from '../task/internal-request.ts'
import { NOBODY, type Caller } from './caller.ts'

export interface AuthenticateDeps {
  /** In the order of the setting: the first whose credential is there decides. */
  readonly authenticators: readonly Authenticator[]
  /** Who may not even try now; and what is told of each attempt. */
  readonly attempts: Attempts
  /** The user that a verified name is; undefined: the mapping has none for it. */
  readonly principalOf: (verified: VerifiedName, method: Authenticator['method']) => VerifiedPrincipal | undefined
  /** The cluster's key, as after `Authorization: Bearer `. */
  readonly bearer: string
  /** Did the request come where nobody listens: TLS, or loopback? */
  readonly confidential: (request: IncomingMessage) => boolean
  /** Scheme, host and port as the client used them. */
  readonly baseUri: (request: IncomingMessage) => string
}

/** Log-ins, as they are counted and recorded. */
export interface Attempts {
  /** @returns seconds until somebody may try again; undefined: he may now */
  blockedSeconds(credential: Credential, request: IncomingMessage): number | undefined
  refused(method: Authenticator['method'], user: string, reason: string, request: IncomingMessage): void
  loggedIn(principal: VerifiedPrincipal, request: IncomingMessage): void
}

/**
 * Who sends a request that may come from anywhere. At once when he was seen lately.
 * @throws HttpProblem 401 without a credential, or with one of nobody; 403 where a secret came over plain HTTP; 429; 503
 */
export type Authenticate = (request: IncomingMessage) => Caller | Promise<Caller>

export function createAuthenticate(deps: AuthenticateDeps): Authenticate {
  const { authenticators, attempts } = deps

  function challenged(request: IncomingMessage, message: string): HttpProblem {
    const base = deps.baseUri(request)
    const challenges = authenticators
      .flatMap((one) => one.challenge(base, request) ?? [])
      .filter((one) => !asksBrowser(request, one))
    return new HttpProblem(401, message, challenges.length === 0 ? {} : { 'www-authenticate': challenges })
  }

  function callerFor(
    verdict: CredentialVerdict,
    credential: Credential,
    method: Authenticator['method'],
    request: IncomingMessage,
  ): Caller {
    switch (verdict.kind) {
      case 'verified': {
        const principal = deps.principalOf(verdict.verified, method)
        if (!principal) {
          attempts.refused(method, verdict.verified.name, 'the user mapping has no user for this name', request)
          throw challenged(request, REFUSED)
        }
        if (verdict.fresh) attempts.loggedIn(principal, request)
        return { kind: 'principal', principal }
      }
      case 'refused':
        attempts.refused(method, verdict.user || credential.user, verdict.reason, request)
        throw challenged(request, REFUSED)
      case 'busy':
        throw new HttpProblem(429, 'Too many log-ins at once', { 'retry-after': String(verdict.retryAfterSeconds) })
      case 'unavailable':
        throw new HttpProblem(503, 'Log-ins cannot be verified now', { 'retry-after': '1' })
      default:
        return unreachable(verdict)
    }
  }

  return (request) => {
    if (isAuthorized(request, deps.bearer)) return { kind: 'cluster' }
    for (const one of authenticators) {
      const credential = one.credentialOf(request)
      if (!credential) continue
      if (!deps.confidential(request))
        throw new HttpProblem(403, 'Passwords and tokens are taken over HTTPS alone: this one is known to others now')
      const seconds = attempts.blockedSeconds(credential, request)
      if (seconds !== undefined)
        throw new HttpProblem(429, 'Too many failed log-ins', { 'retry-after': String(seconds) })
      const verdict = one.verify(credential)
      return verdict instanceof Promise
        ? verdict.then((late) => callerFor(late, credential, one.method, request))
        : callerFor(verdict, credential, one.method, request)
    }
    throw challenged(request, 'Authentication is required')
  }
}

/** A page's script asks, which leads to the log-in page itself: the browser would ask for a password in a window of its own. */
function asksBrowser({ headers }: IncomingMessage, challenge: string): boolean {
  return headers['sec-fetch-site'] !== undefined && /^Basic\b/i.test(challenge)
}

/** The same for every reason. */
const REFUSED = 'Authentication failed'

/** Where authentication is configured, these are open all the same. */
const OPEN = /^\/(?:v1\/(?:info|status)\/?$|oauth2\/|ui\/(?:log-in|log-out)(?:\/|$)|ui\/[a-z]+\.(?:js|css)$)/
/** What a browser opens leads to the log-in page where it is nobody's. */
const PAGE = /^\/ui(?:\/|$)/

/**
 * What a door asks of each request: nobody is turned away from what is open, and credentials that come along are not looked
 * at there.
 */
export function callerAt(
  authenticate: Authenticate,
): (request: IncomingMessage, path: string) => Caller | Promise<Caller> {
  return (request, path) => {
    if (OPEN.test(path)) return NOBODY
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

function isNavigation({ method, headers }: IncomingMessage): boolean {
  return (method === 'GET' || method === 'HEAD') && /\btext\/html\b/.test(headers.accept ?? '')
}
