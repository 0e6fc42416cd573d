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

/** An HTTP server that accepts connections at once and answers once it has a listener. */
export interface GatedServer {
  readonly server: Server
  /**
   * Accepts connections on each of these addresses: a host and port, or handles of one socket. With several handles, one
   * pass of the event loop accepts as many connections.
   * @throws Error of the system when the server cannot listen there
   */
  listen(addresses: readonly unknown[]): Promise<void>
  /** From now on `listener` answers, waiting requests first. */
  open(listener: RequestListener): void
  /** Reports each connection that was closed at once, including earlier ones. */
  onRefusedConnection(report: (reason: RefusedConnection) => void): void
  /** Reports news of this server's certificate and its files, including the latest earlier news. */
  onCertificate(report: (news: CertificateNews) => void): void
  /** Stops accepting, ends idle connections, and resolves when all answers in progress are sent. */
  close(): Promise<void>
}

/** Why a connection was refused: too many in all, too many of one address, or a failed TLS handshake. */
export type RefusedConnection = 'connections' | 'address_connections' | 'handshake'

/** Node's default of 5 s closes connections of clients that pause between two polls. */
const KEEP_ALIVE_MS = 120_000
/**
 * A connection without traffic for this long is closed, even if a request is in progress. No wait of the interface is
 * this long.
 */
const STALLED_MS = 300_000
/** How often the server looks for late headers and bodies. */
const LOOK_EVERY_MS = 1_000
/**
 * How many connections the kernel holds until they are accepted; it may hold fewer. A client beyond that retries after
 * 1, 3, 7, 15 seconds. With Node's 511, a burst of some hundreds meant half a minute for new clients.
 */
const BACKLOG = 4_096
const SWEEP_MS = 20
/** Time for requests in one pass of the event loop. Further requests wait, and their addresses go in turn. */
const REQUESTS_MS = 8
/** How many refused connections are remembered until a reporter is set. */
const MOST_UNREPORTED = 10_000

/**
 * The entrance of coordinator and worker. It decides which clients may connect, how long they may take, and what a
 * valid request is. Requests that arrive before the parts are wired wait, so a restart is a pause for clients, not an
 * error. Only `early` is asked at once. It answers what can be answered already, and returns false for all other
 * requests.
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
      // The client is gone.
      if (request.socket.destroyed) return
      if (refusal === undefined) answer(request, response)
      else sendProblem(request, response, toProblem(refusal))
    })
  }

  const answer: RequestListener = (request, response) => {
    // A client that keeps polling on its connection would keep a closing server open forever.
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
    // Large enough for requests that one coordinator passes on to another. `admitRequest` checks all other requests.
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
  // Node would drop headers beyond its limit, an Origin among them. Without the limit, requests with too many are
  // counted and refused.
  server.maxHeadersCount = 0
  server.timeout = STALLED_MS
  const refused: RefusedConnection[] = []
  let noteRefused = (reason: RefusedConnection): void => void (refused.length < MOST_UNREPORTED && refused.push(reason))
  boundConnections(server, { ...limits, isProxy }, (reason) => noteRefused(reason))
  const onFull = (): void => noteRefused('connections')
  const handshakes = identity && watchHandshakes(server, () => noteRefused('handshake'))
  identity?.serve(server)
  const acceptors: TcpServer[] = [server]

  /**
   * Creates a server that hands its connections to the main one, with the same half-open setting: with TLS both
   * directions end at once.
   */
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
      await Promise.all(others.map((address) => listenOn(createAcceptor(), address, onFull)))
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
      // A connection that was busy when the server closed stays alive after its answer, so look again.
      const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
      const closed = acceptors.map((acceptor) => new Promise((resolve) => acceptor.close(resolve)))
      server.closeIdleConnections()
      await Promise.all(closed)
      clearInterval(sweep)
    },
  }
}

/** @param onFull called when the system has no room for another connection */
function listenOn(server: TcpServer, address: unknown, onFull: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(address, BACKLOG, () => {
      server.off('error', reject).on('error', onFull)
      resolve()
    })
  })
}

interface ConnectionBounds extends Pick<Config['limits'], 'connections' | 'connectionsPerAddress'> {
  readonly isProxy: AddressRanges
}

/**
 * Closes a new connection at once if its address, its user or the server has too many, so that other clients find room.
 * A connection counts for its address, and after the first request with a verified user for that user, because many
 * people may share an address. Connections of a trusted proxy count only for the server, because they carry all
 * clients.
 */
function boundConnections(
  server: Server,
  most: ConnectionBounds,
  onRefused: (reason: RefusedConnection) => void,
): void {
  const counts = new Map<string, number>()
  /** By address and port. */
  const byPeer = new Map<string, (user: string) => void>()
  const peerOf = (socket: Socket): string => `${socket.remoteAddress} ${socket.remotePort}`
  let open = 0

  function add(owner: string, by: number): number {
    const count = (counts.get(owner) ?? 0) + by
    if (count > 0) counts.set(owner, count)
    else counts.delete(owner)
    return count
  }

  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket)
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
      byPeer.delete(peer)
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
    byPeer.set(peer, toUser)
    whenKnown(socket, toUser)
  })
  server.on('secureConnection', (socket: Socket) => {
    const toUser = byPeer.get(peerOf(socket))
    if (toUser) whenKnown(socket, toUser)
  })
}
