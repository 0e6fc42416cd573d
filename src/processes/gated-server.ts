import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer as createTcpServer, type Server as TcpServer, type Socket } from 'node:net'
import type { Config } from '../config/load-config.ts'
import { addressRanges, type AddressRanges } from '../shared/address-ranges.ts'
import { knownOwner, unknownOwner } from '../shared/limit-owner.ts'
import { EventLoopSlices } from '../shared/event-loop-slices.ts'
import { admitRequest, guardHead } from '../protocol/edge/admit-request.ts'
import { clientNetwork } from '../protocol/edge/client-connection.ts'
import { whenKnown } from '../protocol/edge/known-connection.ts'
import { MOST_CREDENTIAL_BYTES, RELAYED_MORE } from '../protocol/edge/relay-headers.ts'
import { sendProblem, toProblem } from '../protocol/edge/problem.ts'
import { requestTarget } from '../protocol/edge/request-target.ts'
import { watchHandshakes } from './handshakes.ts'
import { createRequestsAhead } from './requests-ahead.ts'
import { openTlsIdentity, type CertificateNews, type KeptIdentity } from './tls-identity.ts'

/** An HTTP server that accepts at once and answers when its listener is there. */
export interface GatedServer {
  readonly server: Server
  /**
   * Accepts on each place: a host and port, or handles of one socket, by which as many connections are taken in a turn of
   * the event loop as there are handles.
   * @throws Error of the system when nobody can listen there
   */
  listen(places: readonly unknown[]): Promise<void>
  /** From now on `listener` answers, those who waited first. */
  open(listener: RequestListener): void
  /** From now on told of each connection that was closed at once, and of those before. */
  onRefusedConnection(report: (reason: RefusedConnection) => void): void
  /** From now on told of the certificate of this server, and when its files changed; of the last one before. */
  onCertificate(report: (news: CertificateNews) => void): void
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
const BACKLOG = 4_096
const SWEEP_MS = 20
/** For requests of one turn of the event loop; those beyond wait, and their addresses take turns. */
const REQUESTS_MS = 8
/** Refused connections that are remembered before there is anybody to tell. */
const MOST_UNREPORTED = 10_000

/**
 * The one door to coordinator and worker: who may connect, how long he may take, and what a request must be at all.
 * Requests that come before the parts are wired wait, so that a restart is a pause for clients and not an error; only
 * `early` is asked at once, for what can be said already, and returns false for all else.
 */
export function createGatedServer(
  config: Config,
  early: (...args: Parameters<RequestListener>) => boolean,
  kept?: KeptIdentity,
): GatedServer {
  const { limits, timeouts } = config
  let listener: RequestListener | undefined
  const waiting: Parameters<RequestListener>[] = []
  let closing = false
  const isProxy = addressRanges(config.trustedProxies)
  const ahead = createRequestsAhead()
  const slices = new EventLoopSlices(REQUESTS_MS)

  const onRequest: RequestListener = (request, response) => {
    guardHead(response)
    if (!ahead.arrived(request.socket, response)) return
    let refusal: unknown
    try {
      admitRequest(request, limits, isProxy)
    } catch (error) {
      refusal = error
    }
    const begins = slices.isFree() ? undefined : ahead.waits(request.socket)
    slices.take({ address: clientNetwork(request), user: '' }, () => {
      begins?.()
      // Whoever sent it is gone.
      if (request.socket.destroyed) return
      if (refusal === undefined) answer(request, response)
      else sendProblem(request, response, toProblem(refusal))
    })
  }

  const answer: RequestListener = (request, response) => {
    // A client that goes on polling on its connection would keep a closing server open for ever.
    if (closing) response.shouldKeepAlive = false
    try {
      if (requestTarget(request).path === '*')
        return void response.writeHead(204, { allow: 'GET, HEAD, POST, PUT, DELETE' }).end()
      if (listener) return listener(request, response)
      if (!early(request, response)) waiting.push([request, response])
    } catch (error) {
      sendProblem(request, response, toProblem(error))
    }
  }

  const options = {
    // Of what one coordinator passes on to another; of all else see `admitRequest`.
    maxHeaderSize: limits.headerBytes + MOST_CREDENTIAL_BYTES + RELAYED_MORE.bytes,
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: Math.min(timeouts.requestHeadMs, timeouts.requestMs),
    requestTimeout: timeouts.requestMs,
    connectionsCheckingInterval: LOOK_EVERY_MS,
    noDelay: true,
  }
  const identity = openTlsIdentity(config, kept)
  const server: Server = identity
    ? createTlsServer({ ...options, ...identity.options, handshakeTimeout: timeouts.requestHeadMs }, onRequest)
    : createServer(options, onRequest)
  // Node would leave out what is beyond, and an Origin with it: those that are too many are counted and refused.
  server.maxHeadersCount = 0
  server.timeout = STALLED_MS
  const refused: RefusedConnection[] = []
  let noteRefused = (reason: RefusedConnection): void => void (refused.length < MOST_UNREPORTED && refused.push(reason))
  boundConnections(server, { ...limits, isProxy }, (reason) => noteRefused(reason))
  const onFull = (): void => noteRefused('connections')
  const handshakes = identity && watchHandshakes(server, () => noteRefused('handshake'))
  identity?.serve(server)
  const acceptors: TcpServer[] = [server]

  /** Hands its connections to the server; as they come to that one, which in TLS ends both ways at once. */
  function createAcceptor(): TcpServer {
    const acceptor = createTcpServer({ allowHalfOpen: identity === undefined, noDelay: true }, (socket) => {
      server.emit('connection', socket)
    })
    acceptors.push(acceptor)
    return acceptor
  }

  return {
    server,
    async listen([first, ...others]) {
      await listenOn(server, first, onFull)
      await Promise.all(others.map((place) => listenOn(createAcceptor(), place, onFull)))
    },
    open: (given) => {
      listener = given
      for (const [request, response] of waiting.splice(0)) if (!response.destroyed) given(request, response)
    },
    onRefusedConnection(report) {
      noteRefused = report
      for (const reason of refused.splice(0)) report(reason)
    },
    onCertificate: (report) => identity?.onNews(report),
    async close() {
      closing = true
      identity?.close()
      handshakes?.end()
      // A connection that was busy when the server closed is kept alive after its answer: look again.
      const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
      const closed = acceptors.map((acceptor) => new Promise((resolve) => acceptor.close(resolve)))
      server.closeIdleConnections()
      await Promise.all(closed)
      clearInterval(sweep)
    },
  }
}

/** @param onFull told when a connection could not be taken because the system has no room for it */
function listenOn(server: TcpServer, place: unknown, onFull: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(place, BACKLOG, () => {
      server.off('error', reject).on('error', onFull)
      resolve()
    })
  })
}

interface ConnectionBounds extends Pick<Config['limits'], 'connections' | 'connectionsPerAddress'> {
  readonly isProxy: AddressRanges
}

/**
 * Whoever connects once more than one may, or more than there may be in all, is closed at once, so that the others find a place.
 * A connection counts to its address, and to its user from the first request on that was verified to be of one: many people may be behind an
 * address. A proxy that is trusted counts in all alone: it has the connections of everybody.
 */
function boundConnections(
  server: Server,
  most: ConnectionBounds,
  onRefused: (reason: RefusedConnection) => void,
): void {
  const counts = new Map<string, number>()
  /** By address and port. */
  const ofPlace = new Map<string, (user: string) => void>()
  const placeOf = (socket: Socket): string => `${socket.remoteAddress} ${socket.remotePort}`
  let open = 0

  function add(owner: string, by: number): number {
    const count = (counts.get(owner) ?? 0) + by
    if (count > 0) counts.set(owner, count)
    else counts.delete(owner)
    return count
  }

  server.on('connection', (socket: Socket) => {
    const place = placeOf(socket)
    const isProxys = socket.remoteAddress !== undefined && most.isProxy(socket.remoteAddress)
    let owner: string | undefined = isProxys ? undefined : unknownOwner(socket.remoteAddress).address
    const isTooMany = (): boolean => owner !== undefined && add(owner, 1) > most.connectionsPerAddress
    const refuse = (reason: RefusedConnection): void => {
      onRefused(reason)
      socket.destroy()
    }
    open++
    socket.once('close', () => {
      open--
      if (owner !== undefined) add(owner, -1)
      ofPlace.delete(place)
    })
    const isFull = open > most.connections
    if (isTooMany()) return refuse(isFull ? 'connections' : 'address_connections')
    if (isFull) return refuse('connections')
    if (isProxys) return
    const toUser = (user: string): void => {
      const { address } = knownOwner(user)
      if (owner === address) return
      if (owner !== undefined) add(owner, -1)
      owner = address
      if (isTooMany()) refuse('address_connections')
    }
    ofPlace.set(place, toUser)
    whenKnown(socket, toUser)
  })
  server.on('secureConnection', (socket: Socket) => {
    const toUser = ofPlace.get(placeOf(socket))
    if (toUser) whenKnown(socket, toUser)
  })
}
