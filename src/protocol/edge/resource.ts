import express, { type ErrorRequestHandler, type RequestHandler, type Response, type Router } from 'express'
import { answerError, HttpProblem } from './problem.ts'
import type { MethodOf, RouteMethod, RoutePath } from './routes.ts'

type Methods = Partial<Record<RouteMethod, RequestHandler>>

/** Parameters that stand for several segments of a path. */
const SEVERAL_SEGMENTS: ReadonlySet<string> = new Set(['group'])

/** Makes a router of resources. Paths are case-sensitive, as they are for the earlier checks of access and of rates. */
export function resourceRouter(): Router {
  return express.Router({ caseSensitive: true })
}

/** Adds a path of the REST interface with all its methods. */
export function resource<P extends RoutePath>(
  router: Router,
  path: P,
  methods: Readonly<Record<MethodOf<P>, RequestHandler>>,
): void {
  const pattern = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (SEVERAL_SEGMENTS.has(name) ? '*' : ':') + name)
  pageResource(router, pattern, methods)
}

/**
 * Adds a path of the user interface, in the form of Express. HEAD uses GET, OPTIONS lists the methods, any other method
 * gets 405.
 */
export function pageResource(router: Router, path: string, methods: Methods): void {
  const allow = [...Object.keys(methods), ...(methods.GET ? ['HEAD'] : []), 'OPTIONS'].join(', ')
  const route = router.route(path)
  if (methods.GET) route.get(methods.GET)
  if (methods.PUT) route.put(methods.PUT)
  if (methods.POST) route.post(methods.POST)
  if (methods.DELETE) route.delete(methods.DELETE)
  route.options((_request, response) => void response.writeHead(204, { allow }).end())
  route.all(() => {
    throw new HttpProblem(405, `Allowed here: ${allow}`, { allow })
  })
}

/** The last handler of a router: turns an error that a handler threw into the answer. */
export function problemHandler(onError?: (error: unknown) => void): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => {
    answerError(request, response, error, onError)
  }
}

/** Sends JSON that must not be cached or sniffed for another type. */
export function sendJson(
  response: Response,
  body: unknown,
  contentType = 'application/json',
  headers: Readonly<Record<string, string>> = {},
  status = 200,
): void {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': bytes.length,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
  })
  response.end(response.req.method === 'HEAD' ? undefined : bytes)
}
