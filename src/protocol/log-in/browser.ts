import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { clientConnection } from '../edge/client-connection.ts'
import { HttpProblem } from '../edge/problem.ts'
import { requestTarget } from '../edge/request-target.ts'

/** `__Host-`: of this very host, over TLS or on this machine, and set by no other. */
const SESSION = '__Host-quipu-session'
const BROWSER = '__Host-quipu-log-in'
const OWN = 'Path=/; Secure; HttpOnly'

/** A form was sent from a page of this server; the listener has looked at the Origin that it says. */
export function requireOwnPage(request: IncomingMessage): void {
  if (request.headers.origin === undefined)
    throw new HttpProblem(403, 'Only a page of this server may send this: it has no Origin')
}

/** @throws HttpProblem 403 where others could read along */
export function requireConfidential(request: IncomingMessage): void {
  if (!clientConnection(request).confidential) throw new HttpProblem(403, 'Log in over HTTPS: others can read this')
}

function cookieOf(request: IncomingMessage, name: string): string | undefined {
  for (const one of (request.headers.cookie ?? '').split(';')) {
    const at = one.indexOf('=')
    if (at > 0 && one.slice(0, at).trim() === name) return one.slice(at + 1).trim()
  }
  return undefined
}

/** Whatever it may do here: for looking at, and for ending. */
export function sessionCookieOf(request: IncomingMessage): string | undefined {
  return cookieOf(request, SESSION)
}

/** What the page asks for, and does; never a statement. */
const OF_PAGE = /^\/(?:ui|v1\/(?:query|node|events|resourceGroupState))(?:\/|$)/

/**
 * The cookie of the page where the page itself asks: a browser sends it along with whatever a page of the same site asks for,
 * on another port or under another name of the domain too.
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

/** Which browser a log-in is of. */
export interface BrowserMark {
  readonly hash: Buffer
  readonly cookie: string
}

/** The browser's own, or a new one; several tabs share it. Lax: the way back from the identity provider is another site's. */
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

/** Nowhere but to the page: an address from a link or a form. */
export function onwardPath(to: string | null): string {
  return to !== null && /^\/ui(?:\/(?!\.|%2[eE])[\w.~%-]+)*(?:\?[\w.~%&=+:-]*)?$/.test(to) && to.length <= 2000
    ? to
    : '/ui'
}
