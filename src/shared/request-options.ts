import type { RequestOptions } from 'node:http'
import { urlToHttpOptions } from 'node:url'

/**
 * Where a request goes: the server that `base` names, whatever the target is. The target is sent as it stands and never
 * resolved against the base, as `new URL(target, base)` would: there `//host/` and `http://host/` win over the base.
 * @param base `http://host:port`
 * @param target path and query
 */
export function requestOptionsOf(base: string, target: string): RequestOptions {
  if (!target.startsWith('/')) throw new TypeError('A request to a server has a path')
  return { path: target, ...serverAt(base) }
}

type Server = Pick<RequestOptions, 'protocol' | 'hostname' | 'port'>

/** The same few are asked again and again. */
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
