import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Config } from '../config/load-config.ts'
import { addressRanges } from '../shared/address-ranges.ts'
import { admitRequest, guardHead } from '../protocol/edge/admit-request.ts'
import { sendProblem, toProblem } from '../protocol/edge/problem.ts'
import { requestTarget } from '../protocol/edge/request-target.ts'
import { watchHandshakes } from './handshakes.ts'
import { openTlsIdentity, type CertificateNews } from './tls-identity.ts'

/** An HTTP server that accepts at once and answers when its listener is there. */
export interface GatedServer {
  readonly server: Server
  /** From now on `listener` answers, those who waited first. */
  open(listener: RequestListener): void
  /** From now on told of each connection that was closed at once, and of those before. */
  tellRefused(told: (reason: RefusedConnection) => void): void
  /** From now on told of the certificate of this server, and when its files changed; of the last one before. */
  tellCertificate(told: (news: CertificateNews) => void): void
  /** Accepts no more, ends idle connections, resolves when the answers under way are out. */
  close(): Promise<void>
}

/** Too many are open in all, or of the one address; or no TLS came of it. */
export type RefusedConnection = 'connections' | 'address_connections' | 'handshake'

/** Node's default of 5 s cuts clients that think between two polls. */
const KEEP_ALIVE_MS = 120_000
/** A connection on which nothing moves, though a request is under way, is cut: no wait of the interface is so long. */
const STALLED_MS = 300_000
/** How often late headers and bodies are looked for. */
const LOOK_EVERY_MS = 1_000
/**
 * Connections that the kernel holds until they are accepted; it may hold fewer. Beyond them a client's kernel tries again after
 * 1, 3, 7, 15 seconds: a burst of some hundreds, with Node's 511, was half a minute for whoever came then.
 */
export const BACKLOG = 4_096
/** Requests of one connection that wait for their answers: a client that sends more ahead is none of ours. */
const PIPELINED = 32
const SWEEP_MS = 20
/** Refused connections that are remembered before there is anybody to tell. */
const MOST_UNTOLD = 10_000

/**
 * The one door to coordinator and worker: who may connect, how long he may take, and what a request must be at all.
 * Requests that come before the parts are wired wait, so that a restart is a pause for clients and not an error; only
 * `early` is asked at once, for what can be said already, and returns false for all else.
 */
export function createGatedServer(
  config: Config,
  early: (...args: Parameters<RequestListener>) => boolean,
): GatedServer {
  const { limits, timeouts } = config
  let listener: RequestListener | undefined
  const waiting: Parameters<RequestListener>[] = []
  let closing = false
  const isProxy = addressRanges(config.trustedProxies)
  const underWay = new WeakMap<Socket, number>()

  const answer: RequestListener = (request, response) => {
    // A client that goes on polling on its connection would keep a closing server open for ever.
    if (closing) response.shouldKeepAlive = false
    guardHead(response)
    try {
      if (!hasRoom(request.socket, response)) return
      admitRequest(request, limits.headers, isProxy)
      if (requestTarget(request).path === '*')
        return void response.writeHead(204, { allow: 'GET, HEAD, POST, PUT, DELETE' }).end()
      if (listener) return listener(request, response)
      if (!early(request, response)) waiting.push([request, response])
    } catch (error) {
      sendProblem(request, response, toProblem(error))
    }
  }

  /** An answer to one request too many would have to wait for those before it: the connection ends. */
  function hasRoom(socket: Socket, response: ServerResponse): boolean {
    if (socket.destroyed) return false
    const count = (underWay.get(socket) ?? 0) + 1
    if (count > PIPELINED) {
      socket.destroy()
      return false
    }
    underWay.set(socket, count)
    response.once('close', () => underWay.set(socket, (underWay.get(socket) ?? 1) - 1))
    return true
  }

  const options = {
    maxHeaderSize: limits.headerBytes,
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: Math.min(timeouts.requestHeadMs, timeouts.requestMs),
    requestTimeout: timeouts.requestMs,
    connectionsCheckingInterval: LOOK_EVERY_MS,
    noDelay: true,
  }
  const identity = openTlsIdentity(config)
  const server: Server = identity
    ? createTlsServer({ ...options, ...identity.options, handshakeTimeout: timeouts.requestHeadMs }, answer)
    : createServer(options, answer)
  // Node would leave out what is beyond, and an Origin with it: those that are too many are counted and refused.
  server.maxHeadersCount = 0
  server.maxConnections = limits.connections
  server.timeout = STALLED_MS
  const refused: RefusedConnection[] = []
  let tell = (reason: RefusedConnection): void => void (refused.length < MOST_UNTOLD && refused.push(reason))
  server.on('drop', () => tell('connections'))
  boundAddresses(server, limits.connectionsPerAddress, () => tell('address_connections'))
  const handshakes = identity && watchHandshakes(server, () => tell('handshake'))
  identity?.serve(server)
  return {
    server,
    open: (given) => {
      listener = given
      for (const [request, response] of waiting.splice(0)) if (!response.destroyed) given(request, response)
    },
    tellRefused(told) {
      tell = told
      for (const reason of refused.splice(0)) told(reason)
    },
    tellCertificate: (told) => identity?.tell(told),
    close: () =>
      new Promise((resolve) => {
        closing = true
        identity?.close()
        handshakes?.end()
        // A connection that was busy when the server closed is kept alive after its answer: look again.
        const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
        server.close(() => {
          clearInterval(sweep)
          resolve()
        })
        server.closeIdleConnections()
      }),
  }
}

/** Who connects once more than one address may is closed at once, so that the others find a place. */
function boundAddresses(server: Server, most: number, onRefused: () => void): void {
  const open = new Map<string, number>()
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? ''
    const count = (open.get(address) ?? 0) + 1
    open.set(address, count)
    socket.once('close', () => {
      const left = (open.get(address) ?? 1) - 1
      if (left === 0) open.delete(address)
      else open.set(address, left)
    })
    if (count <= most) return
    onRefused()
    socket.destroy()
  })
}
