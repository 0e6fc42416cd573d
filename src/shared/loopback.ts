import { BlockList, isIP } from 'node:net'

const own = new BlockList()
own.addSubnet('127.0.0.0', 8, 'ipv4')
own.addAddress('::1', 'ipv6')

/** An address without the brackets that URLs put around IPv6; undefined for a name. */
export function ipLiteral(host: string): string | undefined {
  const address = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  return isIP(address) === 0 ? undefined : address
}

/**
 * Whether a host name or an address, IPv6 in brackets or not, reaches only this machine. The one rule for where Quipu
 * may listen, which clients may read openly and which addresses browsers may call.
 */
export function isLoopback(host: string): boolean {
  // Every request asks this, mostly for the same few hosts.
  let known = looked.get(host)
  if (known === undefined) {
    if (looked.size >= MOST_LOOKED) looked.clear()
    looked.set(host, (known = reachesItself(host)))
  }
  return known
}

const looked = new Map<string, boolean>()
const MOST_LOOKED = 256

function reachesItself(host: string): boolean {
  const address = ipLiteral(host)
  if (address === undefined) return host.toLowerCase() === 'localhost'
  return own.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')
}
