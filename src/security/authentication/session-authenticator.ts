import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Authenticator, Credential, CredentialVerdict } from './authenticator.ts'
import type { EndedSessions } from './ended-sessions.ts'
import type { Session, SessionMethod, SessionTokens, ShownSession } from './session-token.ts'

export interface SessionAuthenticatorDeps {
  readonly tokens: SessionTokens
  /** Undefined before the database was reached. */
  readonly ended: () => Pick<EndedSessions, 'has'> | undefined
  /** Would its holder be given it now, by what the files of users say? */
  readonly holds: (session: Session) => boolean
  /** The cookie of the page, where a request may act by it; of any other request undefined. */
  readonly pageToken: (request: IncomingMessage) => string | undefined
  /** How a 401 offers to log in this way. */
  readonly challenge: (baseUri: string, request: IncomingMessage) => string | undefined
}

/** What a program shows as its session. */
export function bearerIn({ authorization = '' }: IncomingHttpHeaders): string | undefined {
  return /^Bearer +(quipu~\S+)$/i.exec(authorization)?.[1]
}

/** Knows those who logged in this way before, by the token that they were given. */
export function createSessionAuthenticator(method: SessionMethod, deps: SessionAuthenticatorDeps): Authenticator {
  const { tokens, ended } = deps

  /** What was opened to be shown as a credential; undefined: no coordinator of this cluster issued it. */
  const opened = new WeakMap<Credential, Session | undefined>()

  /** One whose time is over, or whose holder logged out or is nobody any more, is no credential: nobody guessed anything. */
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
    if (!session) return { kind: 'refused', user: '', reason: 'no session of this cluster' }
    if (ended()?.has(session.id) === undefined)
      return { kind: 'unavailable', reason: 'nobody can say yet which sessions were ended' }
    const { name, user, groups } = session
    // Whoever logged in was told of when he did.
    return { kind: 'verified', fresh: false, verified: { name, user, groups } }
  }

  return {
    method,
    challenge: deps.challenge,
    credentialOf(request) {
      if (request.headers.authorization !== undefined) return shownBy(bearerIn(request.headers), 'program')
      return shownBy(deps.pageToken(request), 'page')
    },
    // Whoever guesses is told no more by it: only what a coordinator signed is known.
    recall(credential) {
      const verdict = verify(credential)
      return verdict.kind === 'verified' ? verdict : undefined
    },
    verify,
  }
}
