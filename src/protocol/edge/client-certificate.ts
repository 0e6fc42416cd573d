import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'

/** The certificate that a client has shown. */
export interface ClientCertificate {
  /** Its distinguished name, the most general part last: `CN=ada,OU=data,O=Example`. */
  readonly subject: string
  /** Further names, as OpenSSL tells them: `DNS:ada.example, email:ada@example`. */
  readonly alternativeNames: string | undefined
  /** Did an authority that is trusted with clients sign it, and is it in its time? Of any other, nothing is true. */
  readonly verified: boolean
}

/** Undefined where the client has shown none, or was not asked, as over a connection without TLS or a proxy's. */
export function clientCertificate(request: IncomingMessage): ClientCertificate | undefined {
  if (!('encrypted' in request.socket)) return undefined
  const socket = request.socket as TLSSocket
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined) return undefined
  return {
    // One part a line, the most general first. What of a value is a line's end, or a comma, is escaped in it.
    subject: certificate.subject.split('\n').toReversed().join(','),
    alternativeNames: certificate.subjectAltName,
    verified: socket.authorized,
  }
}
