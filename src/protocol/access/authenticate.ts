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

export interface FailedAttempt {
  readonly method: Authenticator['method']
  /** The name that was given; of a credential that was verified and has no user here, that name. */
  readonly user: string
  readonly verified: boolean
  /** For this server alone. */
  readonly reason: string
}

/** Log-ins, as they are counted and recorded. */
export interface Attempts {
  /**
   * @param remembered was the credential verified lately? Undefined where nobody remembers such ones
   * @returns seconds until somebody may try again; undefined: now
   */
  blockedSeconds(credential: Credential, request: IncomingMessage, remembered: boolean | undefined): number | undefined
  refused(failed: FailedAttempt, request: IncomingMessage): void
  loggedIn(principal: VerifiedPrincipal, request: IncomingMessage): void
  /** By a credential that was verified before, perhaps for somebody elsewhere. */
  cameAgain(principal: VerifiedPrincipal, request: IncomingMessage): void
}

/**
 * Who sends a request that may come from anywhere. At once when he was seen lately.
 * @throws HttpProblem 401 without a credential, or with one of nobody; 403 where a secret came over plain HTTP; 429; 503
 */
export type Authenticate = (request: IncomingMessage) => Caller | Promise<Caller>

export interface Authentication {
  readonly request: Authenticate
  /** The same for a credential that came otherwise than in headers: counted, slowed and told of alike. */
  credential(by: Authenticator, credential: Credential, request: IncomingMessage): Caller | Promise<Caller>
  /**
   * Of somebody whom another has verified just now.
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
        // Who has a session was told of when he was given it.
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
        throw new HttpProblem(429, 'Too many log-ins at once', { 'retry-after': String(verdict.retryAfterSeconds) })
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
    throw new HttpProblem(429, 'Too many failed log-ins', { 'retry-after': String(seconds) })
  }

  function verify(by: Authenticator, credential: Credential, request: IncomingMessage): Caller | Promise<Caller> {
    const { method } = by
    if (!deps.confidential(request)) {
      noteAuthentication(request, { method, result: 'refused' })
      throw new HttpProblem(403, 'Passwords and tokens are taken over HTTPS alone: this one is known to others now')
    }
    const recalled = by.recall?.(credential)
    if (recalled) return callerFor(recalled, credential, method, request)
    checkBlocked(credential, by, request)
    const verdict = by.verify(credential, clientNetwork(request))
    if (!(verdict instanceof Promise)) return callerFor(verdict, credential, method, request)
    return verdict.then((late) => {
      // Many guesses that were sent at once are told no more than those that come one after the other.
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
      if (!principal) throw new HttpProblem(403, 'Nobody by this name is a user here')
      attempts.loggedIn(principal, request)
      return principal
    },
  }
}

/** A page's script asks, which leads to the log-in page itself: the browser would ask for a password in a window of its own. */
function asksBrowser({ headers }: IncomingMessage, challenge: string): boolean {
  return headers['sec-fetch-site'] !== undefined && /^Basic\b/i.test(challenge)
}

function notVerified(retryAfterSeconds: number): HttpProblem {
  return new HttpProblem(503, 'Log-ins cannot be verified now', { 'retry-after': String(retryAfterSeconds) })
}

/** The same for every reason. */
const REFUSED = 'Authentication failed'

/** Where authentication is configured, these are open all the same; of the figures see {@link callerAt}. */
const OPEN = /^\/(?:v1\/(?:info|status)\/?$|oauth2\/|ui\/(?:log-in|log-out)(?:\/|$)|ui\/[a-z]+\.(?:js|css)$)/
/** What a browser opens leads to the log-in page where it is nobody's. */
const PAGE = /^\/ui(?:\/|$)/

/** Of those who watch this server rather than ask it. */
const WATCHED = /^\/(?:metrics|openapi\.json)\/?$/

/**
 * What a door asks of each request: nobody is turned away from what is open, and credentials that come along are not looked
 * at there.
 * @param mayWatch may it have `/metrics` and `/openapi.json`, whoever sends it? Of others their right is asked there
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

/** The key of the cluster's processes opens no figures. */
function onlyPeople(caller: Caller): Caller {
  if (caller.kind !== 'principal') throw watcherNeeded()
  return caller
}

function isNavigation({ method, headers }: IncomingMessage): boolean {
  return (method === 'GET' || method === 'HEAD') && /\btext\/html\b/.test(headers.accept ?? '')
}

/** @throws HttpProblem 401 for who may not have the figures of this server */
export function checkWatcher(request: IncomingMessage, mayWatch: (request: IncomingMessage) => boolean): void {
  if (!mayWatch(request)) throw watcherNeeded()
}

function watcherNeeded(): HttpProblem {
  return new HttpProblem(401, 'The figures need their own token', { 'www-authenticate': 'Bearer realm="metrics"' })
}

/** From this machine, or with the token that is for this alone. */
export function watchersBy(token: string | undefined): (request: IncomingMessage) => boolean {
  return (request) => isLocal(request) || (token !== undefined && isAuthorized(request, token))
}
