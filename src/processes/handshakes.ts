import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { hasCode } from '../shared/node-error.ts'

/** Connections on which TLS has not begun. */
export interface Handshakes {
  /** The server closes: those under way get a moment, and are ended then. */
  end(): void
}

/** A client that is not out for mischief has shaken hands by then. */
const LAST_MOMENT_MS = 1_000

const PLAIN_ANSWER = 'This port speaks HTTPS: call it by https://\n'
const PLAIN_HEAD = [
  'HTTP/1.1 400 Bad Request',
  'Content-Type: text/plain',
  `Content-Length: ${PLAIN_ANSWER.length}`,
  'Connection: close',
]

/**
 * Follows the connections of a TLS server until their handshake is done. One that begins with a request of HTTP is told
 * so, in clear, and any other that fails is closed.
 */
export function watchHandshakes(server: Server, onFailed: () => void): Handshakes {
  const underWay = new Map<string, Socket>()
  let closing = false

  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket)
    underWay.set(peer, socket)
    socket.once('close', () => underWay.get(peer) === socket && underWay.delete(peer))
    if (closing) setTimeout(() => underWay.get(peer) === socket && socket.destroy(), LAST_MOMENT_MS)
  })
  server.on('secureConnection', (socket: TLSSocket) => underWay.delete(peerOf(socket)))
  server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
    const below = underWay.get(peerOf(socket))
    // Given up before it said anything: a look whether the port is open.
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
        for (const socket of underWay.values()) socket.destroy()
      }, LAST_MOMENT_MS)
    },
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
