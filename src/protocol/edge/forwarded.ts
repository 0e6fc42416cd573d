import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'
import type { AddressRanges } from '../../shared/address-ranges.ts'
import { HttpProblem } from './problem.ts'
import { isAuthority } from './request-target.ts'

/** The description of a client by proxies; parts that they leave out are absent. */
export interface ForwardedClient {
  readonly scheme?: 'http' | 'https'
  readonly authority?: string
  readonly port?: string
  readonly address: string
}

/** One proxy's description of the sender that it got the request from. */
interface Hop {
  /** `hidden`: the proxy conceals the address. */
  readonly address?: string | 'hidden'
  readonly proto?: string
  readonly host?: string
}

const NAMES = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port'] as const

/** Headers in which proxies describe clients. Senders that are no proxies may have written them too. */
export const forwardedHeaders: readonly string[] = ['forwarded', ...NAMES]

/** Other headers that proxies add. Nothing is read from them: they only show that there is a proxy. */
const MARKS = ['via', 'x-real-ip', 'x-client-ip', 'true-client-ip', 'x-original-host', 'x-envoy-external-address']

/** Whether a proxy has passed the request on, as far as its headers show it. */
export function saysForwarded(headers: IncomingHttpHeaders): boolean {
  return [...forwardedHeaders, ...MARKS].some((name) => headers[name] !== undefined)
}

/**
 * The client of a request that a proxy has passed on, by `Forwarded` (RFC 7239) or `X-Forwarded-*`. Each proxy adds at
 * the right, so the right-most address that is not a proxy's is the client's. The client may have written the parts
 * left of it, so they are ignored.
 * @param peer address of the proxy that the request came from
 * @throws HttpProblem 400 when the relevant parts cannot be read, or when the two families contradict each other: a
 * proxy that sets one of them may pass on a client's other one
 */
export function forwardedClient(
  headers: IncomingHttpHeaders,
  peer: string,
  isProxy: AddressRanges,
): ForwardedClient | undefined {
  const standard = headers['forwarded']
  const byStandard = standard === undefined ? undefined : ofForwarded(standard, peer, isProxy)
  const byCustom = NAMES.some((name) => headers[name] !== undefined) ? ofCustom(headers, peer, isProxy) : undefined
  if (byStandard && byCustom) checkSame(byStandard, byCustom)
  return byStandard && byCustom ? { ...byStandard, ...byCustom } : (byStandard ?? byCustom)
}

/** Checks that both families agree. A value that only one of them has may come from the client. */
function checkSame(standard: ForwardedClient, custom: ForwardedClient): void {
  for (const name of ['address', 'scheme', 'authority'] as const)
    if (standard[name] !== custom[name])
      throw new HttpProblem(400, 'The Forwarded and X-Forwarded headers of this request contradict each other')
}

// ---- Forwarded, RFC 7239 ------------------------------------------------------------------------

const PAIR = /[ \t]*([!#$%&'*+.^_`|~\w-]+)=(?:([!#$%&'*+.^_`|~\w-]+)|"((?:[^"\\]|\\.)*)")[ \t]*([;,]|$)/y
const NOTHING = /[ \t]*([;,])/y

function ofForwarded(header: string, peer: string, isProxy: AddressRanges): ForwardedClient {
  const hops = parseForwarded(header)
  let address = peer
  for (let at = hops.length - 1; at >= 0; at--) {
    const hop = hops[at]!
    const named = hop.address === undefined || hop.address === 'hidden' ? undefined : hop.address
    if (named !== undefined && isProxy(named) && at > 0) address = named
    else return clientOf(hop, named ?? address)
  }
  return { address }
}

/** The elements of a header, the farthest proxy first. */
function parseForwarded(header: string): Hop[] {
  const elements: Map<string, string>[] = []
  let element = new Map<string, string>()
  const close = (): void => {
    if (element.size > 0) elements.push(element)
    element = new Map()
  }
  for (let at = 0; at < header.length;) {
    NOTHING.lastIndex = PAIR.lastIndex = at
    const nothing = NOTHING.exec(header)
    const pair = nothing ? undefined : PAIR.exec(header)
    if (!nothing && !pair) {
      if (header.slice(at).trim() === '') break
      throw malformed('forwarded')
    }
    if (pair) {
      const name = pair[1]!.toLowerCase()
      if (element.has(name)) throw malformed('forwarded')
      element.set(name, pair[2] ?? pair[3]!.replace(/\\(.)/g, '$1'))
    }
    at = nothing ? NOTHING.lastIndex : PAIR.lastIndex
    if ((nothing?.[1] ?? pair?.[4]) === ',') close()
  }
  close()
  return elements.map((one) => {
    const [node, proto, host] = [one.get('for'), one.get('proto'), one.get('host')]
    return {
      ...(node === undefined ? {} : { address: nodeOf(node) ?? 'malformed' }),
      ...(proto === undefined ? {} : { proto }),
      ...(host === undefined ? {} : { host }),
    }
  })
}

// ---- X-Forwarded-* ------------------------------------------------------------------------------

function ofCustom(headers: IncomingHttpHeaders, peer: string, isProxy: AddressRanges): ForwardedClient {
  const nodes = listOf(headers['x-forwarded-for'])
  let address = peer
  let fromRight = 0
  for (; fromRight < nodes.length; fromRight++) {
    const node = nodeOf(nodes.at(-1 - fromRight)!)
    if (node === undefined) throw malformed('x-forwarded-for')
    if (node === 'hidden') break
    address = node
    if (!isProxy(node)) break
  }
  const index = Math.min(fromRight, Math.max(nodes.length - 1, 0))
  const pick = (name: (typeof NAMES)[number]): string | undefined => {
    const values = listOf(headers[name])
    // A single value was set by the farthest proxy and left alone by the others.
    const value = values.length === 1 ? values[0] : values.at(-1 - index)
    if (values.length > 0 && value === undefined) throw malformed(name)
    return value
  }
  const [proto, host, port] = [pick('x-forwarded-proto'), pick('x-forwarded-host'), pick('x-forwarded-port')]
  if (port !== undefined && !(/^[1-9]\d{0,4}$/.test(port) && Number(port) <= 65_535))
    throw malformed('x-forwarded-port')
  const hop = { ...(proto === undefined ? {} : { proto }), ...(host === undefined ? {} : { host }) }
  return { ...clientOf(hop, address), ...(port === undefined ? {} : { port }) }
}

function listOf(header: string | string[] | undefined): string[] {
  const text = (Array.isArray(header) ? header.join(',') : (header ?? '')).trim()
  return text === '' ? [] : text.split(',').map((one) => one.trim())
}

// ---- parts of both ------------------------------------------------------------------------------

function clientOf({ proto, host }: Hop, address: string): ForwardedClient {
  const scheme = proto?.toLowerCase()
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https') throw malformed('proto')
  if (host !== undefined && !isAuthority(host)) throw malformed('host')
  if (isIP(address) === 0) throw malformed('for')
  return { address, ...(scheme && { scheme }), ...(host === undefined ? {} : { authority: host.toLowerCase() }) }
}

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/** An address without its port; undefined for a text that is no address. */
function nodeOf(text: string): string | 'hidden' | undefined {
  if (/^(unknown|_[\w.-]+)(:[\w.-]+)?$/i.test(text)) return 'hidden'
  const address =
    /^\[([^\]]*)\](?::[\w.-]+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):[\w.-]+$/.exec(text)?.[1] ?? text
  if (isIP(address) === 0 || address.includes('%')) return undefined
  return MAPPED.exec(address)?.[1] ?? address
}

function malformed(name: string): HttpProblem {
  return new HttpProblem(400, `A proxy's header about the client cannot be read: ${name}`, { connection: 'close' })
}
