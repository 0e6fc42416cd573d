import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AuthenticationMethod } from '../../security/authentication/principal.ts'
import type { Meters } from '../../telemetry/meters.ts'

/** The method by which a client authenticated, and the result. */
interface Authentication {
  readonly method: AuthenticationMethod | 'shared_secret' | 'none'
  readonly result: 'ok' | 'refused' | 'blocked' | 'unavailable'
}

const looked = new WeakMap<IncomingMessage, Authentication>()

/** Notes the result of verifying the request's credential. */
export function noteAuthentication(
  request: IncomingMessage,
  seen: Authentication & { method: AuthenticationMethod },
): void {
  looked.set(request, seen)
}

/** Measures the time of a request by route, and counts refusals and authentications, once its answer has been sent. */
export function observeRequest(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  meters: () => Meters,
): void {
  const start = performance.now()
  const method = request.method ?? 'GET'
  const route = routeOf(path)
  response.once('finish', () => {
    const { statusCode } = response
    // The time that a client follows the live feed says nothing about the speed of this server.
    if (response.getHeader('content-type')?.toString().startsWith('text/event-stream')) return
    const labels = { method, route, code: `${Math.floor(statusCode / 100)}xx` }
    meters().observe('httpRequestDuration', labels, (performance.now() - start) / 1000)
    const refusal = REFUSALS[statusCode]
    if (refusal !== undefined && (statusCode !== 409 || route.startsWith('/v1/task')))
      meters().count('httpRefusals', { reason: refusal })
    const seen = looked.get(request) ?? authenticationBy(request, route, statusCode)
    if (seen) meters().count('authentications', { ...seen })
  })
}

/** The authentication of a request whose credential no authenticator verified. */
function authenticationBy(request: IncomingMessage, route: string, status: number): Authentication | undefined {
  const internal = INTERNAL.test(route)
  if (status === 401) return { method: internal ? 'shared_secret' : 'none', result: 'refused' }
  if (internal && request.headers.authorization !== undefined) return { method: 'shared_secret', result: 'ok' }
  return route === '/v1/statement' && request.method === 'POST' ? { method: 'none', result: 'ok' } : undefined
}

/**
 * Status codes by which a request is refused before it is processed. 409 counts for tasks only: the epoch of a
 * coordinator is over.
 */
const REFUSALS: Readonly<Record<number, string>> = {
  409: 'stale_epoch',
  413: 'body_limit',
  429: 'overload',
  431: 'header_limit',
}
/** Paths for processes of the cluster only. */
const INTERNAL = /^\/v1\/(task|announcement|system)/

/** The template of a path: ids and macs never become labels. */
export function routeOf(path: string): string {
  const parts = path.split('/').filter((part) => part !== '')
  if (parts[0] === 'oauth2') return logInRouteOf(parts)
  if (parts[0] !== 'v1') return KNOWN.has(path) ? path : 'other'
  switch (parts[1]) {
    case 'statement':
      return parts.length <= 2 ? '/v1/statement' : '/v1/statement/{queryId}/{token}'
    case 'stage':
      return '/v1/stage/{stageId}/{mac}'
    case 'query':
      return parts.length <= 2
        ? '/v1/query'
        : parts.length === 3
          ? parts[2] === 'totals'
            ? '/v1/query/totals'
            : '/v1/query/{queryId}'
          : `/v1/query/{queryId}/${sub(parts[3])}`
    case 'task':
      return parts.length <= 2 ? '/v1/task' : parts.length === 3 ? '/v1/task/{taskId}' : '/v1/task/{taskId}/results'
    case 'cluster':
      return parts.length <= 2
        ? '/v1/cluster'
        : parts.length === 3
          ? '/v1/cluster/{name}'
          : `/v1/cluster/{name}/${parts[3] === 'state' || parts[3] === 'events' ? parts[3] : 'other'}`
    case 'erasure':
      return parts.length <= 2
        ? '/v1/erasure'
        : parts[2] === 'preview'
          ? '/v1/erasure/preview'
          : '/v1/erasure/{erasureId}'
    case 'act':
      return parts.length <= 2 ? '/v1/act' : parts[2] === 'preview' ? '/v1/act/preview' : '/v1/act/{actId}'
    case 'replay':
      return parts.length <= 2 ? '/v1/replay' : '/v1/replay/{replayId}'
    case 'system':
      return ['rebuilt', 'verified', 'sightings', 'anchor-key'].includes(parts[2] ?? '')
        ? `/v1/system/${parts[2]}`
        : 'other'
    case 'resourceGroupState':
    case 'audit':
    case 'node':
    case 'info':
    case 'status':
    case 'announcement':
    case 'events':
      return `/v1/${parts[1]}`
    default:
      return 'other'
  }
}

function logInRouteOf([, name, what, logIn]: readonly string[]): string {
  if (name === 'callback' || name === 'revoke') return `/oauth2/${name}`
  if (name !== 'token' || what === undefined) return 'other'
  return what === 'initiate' && logIn !== undefined ? '/oauth2/token/initiate/{logIn}' : '/oauth2/token/{logIn}'
}

function sub(part: string | undefined): string {
  return part !== undefined && OF_QUERIES.has(part) ? part : 'other'
}

const OF_QUERIES: ReadonlySet<string> = new Set(['events', 'digest', 'trace', 'forget', 'killed', 'preempted'])
const KNOWN = new Set(['/metrics', '/openapi.json', '/ui', '/ui/log-in', '/ui/log-out', '/'])
