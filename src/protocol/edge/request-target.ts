import type { IncomingMessage } from 'node:http'
import { HttpProblem } from './problem.ts'

declare const parsed: unique symbol

/** The target of a request. Only `requestTarget` makes it: no other code reads the client's text. */
export interface RequestTarget {
  /** Begins with a slash, or is `*` for the server as a whole. Nothing in it is decoded. */
  readonly path: string
  readonly query: URLSearchParams
  /** Path and query as they came, without scheme and host. It can be passed on. */
  readonly text: string
  /** The host and port that the request names: the target's in absolute form, else those of Host. Lower case. */
  readonly authority: string | undefined
  readonly [parsed]: true
}

const known = new WeakMap<IncomingMessage, RequestTarget>()

/** Visible ASCII without the fragment; other characters are not allowed in a target. */
const TARGET = /^[!"$-~]+$/
/** `host[:port]`, IPv6 in brackets; no user, no escapes. */
const AUTHORITY = /^(?:\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9._-]{0,252}))(?::\d{1,5})?$/i

/**
 * Reads the target of a request as RFC 9112 has it, section 3.2: origin form, absolute form (whose host counts, not the
 * Host header), `*` of OPTIONS. The request's own `url` is path and query from then on.
 * @throws HttpProblem 400 for every other form, and for a request that names no one host
 */
export function requestTarget(request: IncomingMessage): RequestTarget {
  const before = known.get(request)
  if (before) return before
  const target = readTarget(request)
  known.set(request, target)
  request.url = target.text
  return target
}

function readTarget(request: IncomingMessage): RequestTarget {
  const given = request.url ?? ''
  const host = hostOf(request)
  if (!TARGET.test(given)) throw new HttpProblem(400, 'The request target contains characters that are not allowed')
  if (given.startsWith('/')) return targetOf(given, host)
  if (given === '*' && request.method === 'OPTIONS') return targetOf(given, host)
  const [, authority, rest = ''] = /^https?:\/\/([^/?]*)(.*)$/i.exec(given) ?? []
  if (authority === undefined) throw new HttpProblem(400, 'The request target is neither a path nor an address')
  if (!AUTHORITY.test(authority)) throw new HttpProblem(400, 'The request target names no host')
  return targetOf(rest.startsWith('/') ? rest : `/${rest}`, authority.toLowerCase())
}

/** Whether a text is a host with an optional port, in the form that a request may name. */
export function isAuthority(text: string): boolean {
  return AUTHORITY.test(text)
}

function targetOf(text: string, authority: string | undefined): RequestTarget {
  const mark = text.indexOf('?')
  const [path, query] = mark < 0 ? [text, ''] : [text.slice(0, mark), text.slice(mark + 1)]
  return { path, query: new URLSearchParams(query), text, authority } as RequestTarget
}

/** RFC 9112, 3.2: exactly one Host, and a valid one; Node takes the first of several. */
function hostOf(request: IncomingMessage): string | undefined {
  const hosts = request.rawHeaders.filter(
    (_, index, all) => index % 2 === 1 && all[index - 1]!.toLowerCase() === 'host',
  )
  if (hosts.length > 1) throw new HttpProblem(400, 'A request must have exactly one Host header')
  const host = hosts[0]?.trim()
  if (host === undefined || host === '') return undefined
  if (!AUTHORITY.test(host)) throw new HttpProblem(400, 'The Host header is not a valid host')
  return host.toLowerCase()
}
