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
  const { protocol, hostname, port } = urlToHttpOptions(new URL(base))
  return { protocol, hostname, port, path: target }
}
