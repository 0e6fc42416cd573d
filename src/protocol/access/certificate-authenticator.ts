import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Authenticator, Credential, CredentialVerdict } from '../../security/authentication/authenticator.ts'
import { createVerifiedCache } from '../../security/authentication/verified-cache.ts'
import { clientCertificate } from '../edge/client-certificate.ts'

const MOST_REMEMBERED = 10_000
/** A user who returns within this time has not logged in anew. */
const REMEMBERED_MS = 5 * 60_000

/**
 * Authenticates by the subject of the client's certificate. TLS has verified that the client holds its key, and which
 * authority signed it.
 * @param certificateOf returns the certificate of the request's connection
 */
export function createCertificateAuthenticator(now: () => number, certificateOf = clientCertificate): Authenticator {
  const seen = createVerifiedCache<true>(MOST_REMEMBERED, now)
  const subjects = new WeakMap<Socket, string>()

  function subjectOf(request: IncomingMessage): string {
    const known = subjects.get(request.socket)
    if (known !== undefined) return known
    const certificate = certificateOf(request)
    const subject = certificate?.verified ? certificate.subject : ''
    subjects.set(request.socket, subject)
    return subject
  }

  function verdict({ user: name }: Credential): CredentialVerdict {
    const fresh = seen.get([name]) === undefined
    if (fresh) seen.set([name], true, REMEMBERED_MS)
    return { kind: 'verified', verified: { name, groups: [] }, fresh }
  }

  return {
    method: 'certificate',
    challenge: () => undefined,
    credentialOf(request) {
      const user = subjectOf(request)
      return user === '' ? undefined : { user, secret: '' }
    },
    recall: verdict,
    verify: verdict,
  }
}
