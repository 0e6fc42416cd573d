import type { IncomingMessage } from 'node:http'
import { requestTarget } from './request-target.ts'

/** Scheme, host and port as the client used them. */
export function baseUri(request: IncomingMessage, forwarded: boolean): string {
  const first = (name: string): string | undefined => {
    const value = request.headers[name]
    return (Array.isArray(value) ? value[0] : value)?.split(',')[0]?.trim()
  }
  const scheme =
    (forwarded ? first('x-forwarded-proto') : undefined) ?? ('encrypted' in request.socket ? 'https' : 'http')
  const port = forwarded ? first('x-forwarded-port') : undefined
  const host = (forwarded ? first('x-forwarded-host') : undefined) ?? requestTarget(request).authority
  if (host !== undefined && /^[\w.\-:[\]]+$/.test(host))
    return `${scheme}://${host}${port !== undefined && !/:\d+$/.test(host) ? `:${port}` : ''}`
  const { localAddress, localPort } = request.socket
  const address = localAddress?.includes(':') ? `[${localAddress}]` : (localAddress ?? 'localhost')
  return `${scheme}://${address}:${localPort}`
}
