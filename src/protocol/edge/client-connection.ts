import type { IncomingMessage } from 'node:http'
import type { AddressRanges } from '../../shared/address-ranges.ts'
import { isLoopback } from '../../shared/loopback.ts'
import { networkOf } from '../../shared/network-of.ts'
import { forwardedClient, saysForwarded, type ForwardedClient } from './forwarded.ts'
import { requestTarget } from './request-target.ts'

/** How a client reached this cluster: directly, through proxies that are trusted, or through another coordinator. */
export interface ClientConnection {
  readonly scheme: 'http' | 'https'
  /** Host and port as the client used them. */
  readonly authority: string
  /** Undefined when the connection was closed already. */
  readonly address: string | undefined
  /** Whether nobody can read along, as far as is known: TLS all the way, or within this machine. */
  readonly confidential: boolean
}

const known = new WeakMap<IncomingMessage, ClientConnection>()

/**
 * Reads what a trusted proxy says about the client. Headers of other senders are ignored.
 * @throws HttpProblem 400 when the headers cannot be read
 */
export function readConnection(request: IncomingMessage, isProxy: AddressRanges): void {
  const { remoteAddress: peer } = request.socket
  if (peer === undefined || !isProxy(peer)) return
  // A proxy without such headers passes on requests of unknown clients, so they do not count as coming from this
  // machine.
  const forwarded = forwardedClient(request.headers, peer, isProxy) ?? { address: peer }
  known.set(request, throughProxy(request, forwarded))
}

/** Sets how the client reached another coordinator, as that coordinator asserts it. */
export function vouchConnection(request: IncomingMessage, connection: Partial<ClientConnection>): void {
  const own = directConnection(request)
  known.set(request, {
    scheme: connection.scheme ?? own.scheme,
    authority: connection.authority ?? own.authority,
    address: connection.address,
    confidential: connection.confidential ?? false,
  })
}

/** The address of the client, behind proxies and coordinators; undefined when its connection was closed already. */
export function remoteAddressOf(request: IncomingMessage): string | undefined {
  const connection = known.get(request)
  return connection ? connection.address : request.socket.remoteAddress
}

/** The network that limits count a request for. */
export function clientNetwork(request: IncomingMessage): string {
  return networkOf(remoteAddressOf(request))
}

/**
 * Whether a program on this machine sent the request, as far as the request shows it: it comes from a loopback address to a
 * loopback address or name, and no header shows a proxy. A proxy on this machine that adds no header and replaces Host
 * looks the same.
 */
export function isLocal(request: IncomingMessage): boolean {
  const { remoteAddress: peer } = request.socket
  if (peer === undefined || !isLoopback(peer) || known.has(request) || saysForwarded(request.headers)) return false
  return isLoopback(authorityOf(request).replace(/:\d+$/, ''))
}

export function clientConnection(request: IncomingMessage): ClientConnection {
  return known.get(request) ?? directConnection(request)
}

function directConnection(request: IncomingMessage): ClientConnection {
  const { remoteAddress: address } = request.socket
  const encrypted = isEncrypted(request)
  // A sender on this machine that sends headers of proxies is a proxy that is not configured.
  const local = address !== undefined && isLoopback(address) && !saysForwarded(request.headers)
  return {
    scheme: encrypted ? 'https' : 'http',
    authority: authorityOf(request),
    address,
    confidential: encrypted || local,
  }
}

function throughProxy(request: IncomingMessage, forwarded: ForwardedClient): ClientConnection {
  const scheme = forwarded.scheme ?? (isEncrypted(request) ? 'https' : 'http')
  const authority = forwarded.authority ?? authorityOf(request)
  const needsPort =
    forwarded.port !== undefined && forwarded.port !== (scheme === 'https' ? '443' : '80') && !/:\d+$/.test(authority)
  return {
    scheme,
    authority: needsPort ? `${authority}:${forwarded.port}` : authority,
    address: forwarded.address,
    confidential: scheme === 'https',
  }
}

function isEncrypted({ socket }: IncomingMessage): boolean {
  return 'encrypted' in socket
}

function authorityOf(request: IncomingMessage): string {
  const { authority } = requestTarget(request)
  if (authority !== undefined) return authority
  const { localAddress, localPort } = request.socket
  return `${localAddress?.includes(':') ? `[${localAddress}]` : (localAddress ?? 'localhost')}:${localPort}`
}
