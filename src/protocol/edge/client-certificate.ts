import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'

/** The certificate that a client has shown. */
export interface ClientCertificate {
  /** Its distinguished name, the most general part last: `CN=ada,OU=data,O=Example`. */
  readonly subject: string
  /** Further names, in OpenSSL's notation: `DNS:ada.example, email:ada@example`. */
  readonly alternativeNames: string | undefined
  /**
   * Whether a trusted authority signed it and it is within its time. Nothing in an unverified certificate can be relied
   * on.
   */
  readonly verified: boolean
}

/**
 * The certificate of a client. Undefined where the client has shown none, or was not asked, as over a connection
 * without TLS or through a proxy.
 */
export function clientCertificate(request: IncomingMessage): ClientCertificate | undefined {
  if (!('encrypted' in request.socket)) return undefined
  const socket = request.socket as TLSSocket
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined) return undefined
  return {
    // Node gives one part a line, the most general first. Line ends and commas within a value are escaped.
    subject: certificate.subject.split('\n').toReversed().join(','),
    alternativeNames: certificate.subjectAltName,
    verified: socket.authorized,
  }
}
