import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { clientConnection } from '../edge/client-connection.ts'
import { HttpProblem } from '../edge/problem.ts'
import { requestTarget } from '../edge/request-target.ts'

/** `__Host-`: the browser accepts the cookie only from this host, over TLS or on this machine. */
const SESSION = '__Host-quipu-session'
const BROWSER = '__Host-quipu-log-in'
const OWN = 'Path=/; Secure; HttpOnly'

/** Requires that a form was sent from a page of this server. The listener has already checked the value of Origin. */
export function requireOwnPage(request: IncomingMessage): void {
  if (request.headers.origin === undefined)
    throw new HttpProblem(403, 'Only a page of this server may send this request, but it has no Origin')
}

/** Requires a protected connection. @throws HttpProblem 403 where others could read it */
export function requireConfidential(request: IncomingMessage): void {
  if (!clientConnection(request).confidential)
    throw new HttpProblem(403, 'Log in over HTTPS: others could read the password on the way')
}

function cookieOf(request: IncomingMessage, name: string): string | undefined {
  for (const one of (request.headers.cookie ?? '').split(';')) {
    const at = one.indexOf('=')
    if (at > 0 && one.slice(0, at).trim() === name) return one.slice(at + 1).trim()
  }
  return undefined
}

/** The session cookie, whatever the request is for: for showing and ending the session. */
export function sessionCookieOf(request: IncomingMessage): string | undefined {
  return cookieOf(request, SESSION)
}

/** Paths that the page requests. */
const OF_PAGE = /^\/(?:ui|v1\/(?:query|statement|node|cluster|status|events|audit|act|resourceGroupState))(?:\/|$)/

/**
 * The cookie of the page, where the page itself sent the request. A browser also sends it with requests of pages of the
 * same site, on another port or under another name of the domain.
 */
export function pageTokenOf(request: IncomingMessage): string | undefined {
  const { cookie, origin, 'sec-fetch-site': site } = request.headers
  if (cookie === undefined || !OF_PAGE.test(requestTarget(request).path)) return undefined
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return undefined
  const reads = request.method === 'GET' || request.method === 'HEAD'
  return reads || origin !== undefined ? sessionCookieOf(request) : undefined
}

export function sessionCookie(token: string, maxAgeSeconds: number): string {
  return `${SESSION}=${token}; ${OWN}; SameSite=Strict; Max-Age=${maxAgeSeconds}`
}

export const NO_SESSION = sessionCookie('', 0)

/** Identifies the browser of a log-in. */
export interface BrowserMark {
  readonly hash: Buffer
  readonly cookie: string
}

/**
 * The browser's existing mark, or a new one; several tabs share it. `Lax`, because the return from the identity
 * provider is a navigation from another site.
 */
export function markBrowser(request: IncomingMessage): BrowserMark {
  const before = cookieOf(request, BROWSER)
  const mark = before !== undefined && MARK.test(before) ? before : randomBytes(24).toString('base64url')
  return { hash: hashOf(mark), cookie: `${BROWSER}=${mark}; ${OWN}; SameSite=Lax; Max-Age=600` }
}

export function browserOf(request: IncomingMessage): Buffer | undefined {
  const mark = cookieOf(request, BROWSER)
  return mark !== undefined && MARK.test(mark) ? hashOf(mark) : undefined
}

const MARK = /^[\w-]{32}$/

export function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** An address from a link or a form, if it leads to the page of this server; else the page's start. */
export function onwardPath(to: string | null): string {
  return to !== null && /^\/ui(?:\/(?!\.|%2[eE])[\w.~%-]+)*(?:\?[\w.~%&=+:-]*)?$/.test(to) && to.length <= 2000
    ? to
    : '/ui'
}
