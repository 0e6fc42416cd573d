import type { IncomingMessage } from 'node:http'
import { HttpProblem } from './problem.ts'

export interface BrowserPolicy {
  /** Is authentication configured? Without it, the Host must be loopback or one of `publicHosts`. */
  readonly authenticated: boolean
  /** Host names (without port) under which this server may be addressed. */
  readonly publicHosts: readonly string[]
  /** Any host will do: the operator said `--insecure`. */
  readonly insecure: boolean
}

/**
 * A page of another site must not drive this server through somebody's browser: a foreign `Origin`, a cross-site
 * fetch, or, without authentication, a `Host` that is neither loopback nor configured (DNS rebinding) gets 403.
 */
export function checkBrowser(request: IncomingMessage, policy: BrowserPolicy): void {
  const { origin, host } = request.headers
  const site = request.headers['sec-fetch-site']
  if (site === 'cross-site') throw new HttpProblem(403, 'Cross-site requests are refused')
  if (origin !== undefined && !sameOrigin(origin, host)) throw new HttpProblem(403, `Origin ${origin} is refused`)
  if (policy.authenticated || policy.insecure || host === undefined) return
  const name = hostName(host)
  if (isLoopback(name) || policy.publicHosts.includes(name)) return
  throw new HttpProblem(403, `Host ${host} is refused: it is neither loopback nor among the configured public hosts`)
}

function sameOrigin(origin: string, host: string | undefined): boolean {
  try {
    return new URL(origin).host === (host ?? '').toLowerCase()
  } catch {
    return false
  }
}

function hostName(host: string): string {
  const name = host.startsWith('[') ? host.slice(0, host.indexOf(']') + 1) : (host.split(':')[0] ?? '')
  return name.toLowerCase()
}

export function isLoopback(name: string): boolean {
  return name === 'localhost' || name === '[::1]' || name === '::1' || /^127\.\d+\.\d+\.\d+$/.test(name)
}
