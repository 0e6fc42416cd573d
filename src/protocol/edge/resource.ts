import express, { type ErrorRequestHandler, type RequestHandler, type Response, type Router } from 'express'
import { answerError, HttpProblem } from './problem.ts'

type Methods = Partial<Record<'GET' | 'PUT' | 'POST' | 'DELETE', RequestHandler>>

/** Of resources. A path in other letters is another one, as it is for who looks at paths before: who may come in, and how often. */
export function resourceRouter(): Router {
  return express.Router({ caseSensitive: true })
}

/** A path and all that can be done with it: HEAD goes with GET, OPTIONS tells, anything else is 405. */
export function resource(router: Router, path: string, methods: Methods): void {
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

/** Last of a router: what its handlers threw becomes the answer. */
export function problemHandler(onError?: (error: unknown) => void): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => {
    answerError(request, response, error, onError)
  }
}

/** JSON of this moment: never from a cache, never sniffed for another type. */
export function sendJson(
  response: Response,
  body: unknown,
  contentType = 'application/json',
  headers: Readonly<Record<string, string>> = {},
): void {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(200, {
    'content-type': contentType,
    'content-length': bytes.length,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
  })
  response.end(response.req.method === 'HEAD' ? undefined : bytes)
}
