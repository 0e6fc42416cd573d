import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { hasCode } from '../shared/node-error.ts'

/** Connections whose TLS handshake is not done. */
export interface Handshakes {
  /** Called when the server closes: running handshakes get a moment, then they are ended. */
  end(): void
}

/** A well-behaved client has finished its handshake by then. */
const LAST_MOMENT_MS = 1_000

const PLAIN_ANSWER = 'This port speaks HTTPS: use https://\n'
const PLAIN_HEAD = [
  'HTTP/1.1 400 Bad Request',
  'Content-Type: text/plain',
  `Content-Length: ${PLAIN_ANSWER.length}`,
  'Connection: close',
]

/**
 * Follows the connections of a TLS server until their handshake is done. A connection that begins with a plain HTTP
 * request gets an answer in clear text that says so. Any other failed connection is closed.
 */
export function watchHandshakes(server: Server, onFailed: () => void): Handshakes {
  const ongoing = new Map<string, Socket>()
  let closing = false

  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket)
    ongoing.set(peer, socket)
    socket.once('close', () => ongoing.get(peer) === socket && ongoing.delete(peer))
    if (closing) setTimeout(() => ongoing.get(peer) === socket && socket.destroy(), LAST_MOMENT_MS)
  })
  server.on('secureConnection', (socket: TLSSocket) => ongoing.delete(peerOf(socket)))
  server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
    const below = ongoing.get(peerOf(socket))
    // ECONNRESET: the client closed before it sent anything, for example to check whether the port is open.
    if (!hasCode(error, 'ECONNRESET')) onFailed()
    if (hasCode(error, 'ERR_SSL_HTTP_REQUEST') && below?.writable) {
      below.end(`${PLAIN_HEAD.join('\r\n')}\r\n\r\n${PLAIN_ANSWER}`)
      setTimeout(() => below.destroy(), LAST_MOMENT_MS)
    } else (below ?? socket).destroy()
  })
  return {
    end() {
      closing = true
      setTimeout(() => {
        for (const socket of ongoing.values()) socket.destroy()
      }, LAST_MOMENT_MS)
    },
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
