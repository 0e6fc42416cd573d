import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Authenticator, Credential, CredentialVerdict } from './authenticator.ts'
import type { EndedSessions } from './ended-sessions.ts'
import type { SessionMethod, SessionTokens, ShownSession } from './session-token.ts'

export interface SessionAuthenticatorDeps {
  readonly tokens: SessionTokens
  /** Undefined before the database was reached. */
  readonly ended: () => Pick<EndedSessions, 'has'> | undefined
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

  /** One whose time is over, or whose holder logged out, is no credential: nobody guessed anything. */
  function holds(text: string | undefined, carrier: ShownSession['carrier']): text is string {
    const shown = text === undefined ? undefined : tokens.look(text)
    return shown?.method === method && shown.carrier === carrier && ended()?.has(shown.id) !== true
  }

  function verify({ secret }: Credential): CredentialVerdict {
    const session = tokens.open(secret)
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
      if (request.headers.authorization !== undefined) {
        const bearer = bearerIn(request.headers)
        return holds(bearer, 'program') ? { user: '', secret: bearer } : undefined
      }
      const cookie = deps.pageToken(request)
      return holds(cookie, 'page') ? { user: '', secret: cookie } : undefined
    },
    // Whoever guesses is told no more by it: only what a coordinator signed is known.
    recall(credential) {
      const verdict = verify(credential)
      return verdict.kind === 'verified' ? verdict : undefined
    },
    verify,
  }
}
