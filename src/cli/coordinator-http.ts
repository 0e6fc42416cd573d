import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { checkBrowser, type BrowserPolicy } from '../protocol/edge/browser-policy.ts'
import { HttpProblem, sendProblem, toProblem } from '../protocol/edge/problem.ts'
import { requestTarget } from '../protocol/edge/request-target.ts'
import type { StatementRoutes } from '../protocol/statement/statement-routes.ts'
import type { Meters } from '../telemetry/meters.ts'

export interface HttpParts {
  readonly policy: BrowserPolicy
  /** The statement resource, before everything else and without libraries. */
  readonly statements: StatementRoutes
  /** All other resources. */
  readonly rest: (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void
  readonly meters: () => Meters
  readonly onError: (error: unknown) => void
}

/** Every request: the browser check, the statement routes, the rest; what is thrown becomes a problem. */
export function createCoordinatorListener(parts: HttpParts): RequestListener {
  return (request, response) => {
    const start = performance.now()
    const { path } = requestTarget(request)
    response.once('finish', () => {
      // How long somebody followed the live feed says nothing about how fast this server answers.
      if (response.getHeader('content-type')?.toString().startsWith('text/event-stream')) return
      parts
        .meters()
        .observe(
          'httpRequestDuration',
          { method: request.method ?? 'GET', route: routeOf(path), code: `${Math.floor(response.statusCode / 100)}xx` },
          (performance.now() - start) / 1000,
        )
    })
    const fail = (error: unknown): void => {
      const problem = toProblem(error)
      if (problem.status === 500) parts.onError(error)
      if (problem.status === 413) refused('body_limit')
      if (problem.status === 429) refused('overload')
      sendProblem(request, response, problem)
    }
    const refused = (reason: string): void => parts.meters().count('httpRefusals', { reason })
    try {
      checkBrowser(request, parts.policy)
    } catch (error) {
      refused('origin')
      return fail(error)
    }
    parts.statements(request, response, path).then((handled) => {
      if (handled) return
      // Express and its routers want a path, not an absolute target.
      request.url = pathOf(request.url ?? '/')
      parts.rest(request, response, (error) => fail(error ?? new HttpProblem(404, 'There is no such resource')))
    }, fail)
  }
}

function pathOf(target: string): string {
  if (target.startsWith('/')) return target
  const slash = target.indexOf('/', target.indexOf('://') + 3)
  return slash < 0 ? '/' : target.slice(slash)
}

/** Routes as templates: ids and macs never become labels. */
function routeOf(path: string): string {
  const parts = path.split('/').filter((part) => part !== '')
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
          ? '/v1/query/{queryId}'
          : `/v1/query/{queryId}/${sub(parts[3])}`
    case 'task':
      return parts.length <= 2 ? '/v1/task' : parts.length === 3 ? '/v1/task/{taskId}' : '/v1/task/{taskId}/results'
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

function sub(part: string | undefined): string {
  return part === 'events' || part === 'trace' ? part : 'other'
}

const KNOWN = new Set(['/metrics', '/openapi.json', '/ui', '/'])
