import type { IncomingMessage } from 'node:http'
import { ipLiteral, isLoopback } from '../../shared/loopback.ts'
import { clientConnection } from './client-connection.ts'
import { HttpProblem } from './problem.ts'
import { requestTarget } from './request-target.ts'

export interface BrowserPolicy {
  /** Whether authentication is configured. Without it, the Host must be one of this server's. */
  readonly authenticated: boolean
  /** Host names under which this server may be addressed, besides loopback and addresses; `*` for any. */
  readonly publicHosts: readonly string[]
}

/** The policy of the settings: the configured host names, and those under which this process is known to others. */
export function browserPolicyOf(config: {
  readonly publicHosts: readonly string[]
  readonly host: string
  readonly advertisedUrl?: string | undefined
  readonly authentication: readonly string[]
}): BrowserPolicy {
  const advertised = config.advertisedUrl === undefined ? [] : [new URL(config.advertisedUrl).hostname]
  const names = [...config.publicHosts, config.host, ...advertised].map(withoutDot)
  return { authenticated: config.authentication.length > 0, publicHosts: names }
}

/** Values of Sec-Fetch-Site that are accepted. Programs send no such header. */
const OWN_SITES: readonly unknown[] = [undefined, 'same-origin', 'same-site', 'none']

/**
 * Keeps pages of other sites from using this server through a user's browser. A foreign `Origin` or a cross-site fetch
 * gets 403. Without authentication so does a Host whose name is not configured: the owner of that name may have pointed
 * it here (DNS rebinding). An address as Host leads only to itself.
 * @throws HttpProblem 403; 400 for a target that cannot be read
 */
export function checkBrowser(request: IncomingMessage, policy: BrowserPolicy): void {
  const { origin } = request.headers
  const { scheme, authority } = clientConnection(request)
  if (!OWN_SITES.includes(request.headers['sec-fetch-site']) && !comesToLogIn(request))
    throw new HttpProblem(403, 'Cross-site requests are refused')
  if (origin !== undefined && !sameOrigin(origin, scheme, authority))
    throw new HttpProblem(403, 'This Origin is refused')
  if (policy.authenticated || mayBeCalled(hostName(authority), policy)) return
  throw new HttpProblem(
    403,
    `Host ${authority} is refused: it is neither an IP address, nor loopback, nor in QUIPU_PUBLIC_HOSTS`,
  )
}

/**
 * Pages that another site or a program may open in a window, by a link or a redirect. They ask the user before they do
 * anything.
 */
const FROM_ANYWHERE = /^\/(?:oauth2\/(?:callback|token\/initiate\/[^/]+)|ui\/log-in)$/

function comesToLogIn(request: IncomingMessage): boolean {
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': destination } = request.headers
  const opened = request.method === 'GET' && mode === 'navigate' && destination === 'document'
  return opened && FROM_ANYWHERE.test(requestTarget(request).path)
}

function mayBeCalled(name: string, { publicHosts }: BrowserPolicy): boolean {
  return ipLiteral(name) !== undefined || isLoopback(name) || publicHosts.includes(name) || publicHosts.includes('*')
}

function sameOrigin(origin: string, scheme: string, authority: string): boolean {
  if (!URL.canParse(origin)) return false
  const { host, protocol } = new URL(origin)
  // The browser loaded a page with such an origin over plain HTTP, so an attacker on the network may have changed it.
  // An https origin at a server with plain HTTP is allowed: an unknown proxy may have ended TLS.
  if (scheme === 'https' && protocol !== 'https:') return false
  // A Host may name the port that an Origin leaves out.
  return host !== '' && (host === authority || `${host}:${protocol === 'https:' ? 443 : 80}` === authority)
}

function hostName(authority: string): string {
  return withoutDot(authority.replace(/:\d+$/, ''))
}

/** Removes the last dot: `host.` is `host`. */
function withoutDot(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}
