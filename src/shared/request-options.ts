import type { RequestOptions } from 'node:http'
import { urlToHttpOptions } from 'node:url'

/**
 * The options of a request to the server that `base` names, whatever the target is. The target is sent unchanged and
 * never resolved against the base, as `new URL(target, base)` would do: there, `//host/` and `http://host/` would
 * replace the base.
 * @param base `http://host:port`
 * @param target path and query
 */
export function requestOptionsOf(base: string, target: string): RequestOptions {
  if (!target.startsWith('/')) throw new TypeError('A request to a server has a path')
  return { path: target, ...serverAt(base) }
}

type Server = Pick<RequestOptions, 'protocol' | 'hostname' | 'port'>

/** Servers that were parsed before: requests go to the same few again and again. */
const read = new Map<string, Server>()
const MOST_READ = 256

function serverAt(base: string): Server {
  const known = read.get(base)
  if (known) return known
  const { protocol, hostname, port } = urlToHttpOptions(new URL(base))
  if (read.size >= MOST_READ) read.clear()
  const server = { protocol, hostname, port }
  read.set(base, server)
  return server
}
