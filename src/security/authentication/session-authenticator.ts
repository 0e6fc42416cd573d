import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Authenticator, Credential, CredentialVerdict } from './authenticator.ts'
import type { EndedSessions } from './ended-sessions.ts'
import type { Session, SessionMethod, SessionTokens, ShownSession } from './session-token.ts'

export interface SessionAuthenticatorDeps {
  readonly tokens: SessionTokens
  /** Undefined before the database was reached for the first time. */
  readonly ended: () => Pick<EndedSessions, 'has'> | undefined
  /** Whether the holder would get the session now, by the files of users. */
  readonly holds: (session: Session) => boolean
  /** The cookie of the page, where the request may use it; otherwise undefined. */
  readonly pageToken: (request: IncomingMessage) => string | undefined
  /** The value by which a 401 offers this method. */
  readonly challenge: (baseUri: string, request: IncomingMessage) => string | undefined
}

/** The session token that a program sends. */
export function bearerIn({ authorization = '' }: IncomingHttpHeaders): string | undefined {
  return /^Bearer +(quipu~\S+)$/i.exec(authorization)?.[1]
}

/** Authenticates users who logged in before, by the token that they were given. */
export function createSessionAuthenticator(method: SessionMethod, deps: SessionAuthenticatorDeps): Authenticator {
  const { tokens, ended } = deps

  /** The session of each credential; undefined: no coordinator of this cluster issued it. */
  const opened = new WeakMap<Credential, Session | undefined>()

  /**
   * The credential of a session token. A session that expired, that was ended, or whose holder lost the right to it is
   * no credential, so it is no failed guess either.
   */
  function shownBy(text: string | undefined, carrier: ShownSession['carrier']): Credential | undefined {
    const shown = text === undefined ? undefined : tokens.peek(text)
    if (shown?.method !== method || shown.carrier !== carrier || ended()?.has(shown.id) === true) return undefined
    const session = tokens.open(text!)
    if (session && !deps.holds(session)) return undefined
    const credential = { user: '', secret: text! }
    opened.set(credential, session)
    return credential
  }

  function verify(credential: Credential): CredentialVerdict {
    const session = opened.get(credential)
    if (!session) return { kind: 'refused', user: '', reason: 'the token is not a session of this cluster' }
    if (ended()?.has(session.id) === undefined)
      return { kind: 'unavailable', reason: 'the ended sessions are not known yet' }
    const { name, user, groups } = session
    // The log-in itself was reported when it happened.
    return { kind: 'verified', fresh: false, verified: { name, user, groups } }
  }

  return {
    method,
    challenge: deps.challenge,
    credentialOf(request) {
      if (request.headers.authorization !== undefined) return shownBy(bearerIn(request.headers), 'program')
      return shownBy(deps.pageToken(request), 'page')
    },
    // A client that guesses learns nothing from this: only tokens that a coordinator signed are known.
    recall(credential) {
      const verdict = verify(credential)
      return verdict.kind === 'verified' ? verdict : undefined
    },
    verify,
  }
}
