import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type express from 'express'
import type { Router } from 'express'
import { sendSessionUser } from '../protocol/log-in/log-in-routes.ts'
import { HttpProblem } from '../protocol/edge/problem.ts'
import { pageResource, problemHandler, resourceRouter } from '../protocol/edge/resource.ts'

const TYPES = {
  'app.js': 'text/javascript',
  'dom.js': 'text/javascript',
  'views.js': 'text/javascript',
  'app.css': 'text/css',
  'index.html': 'text/html',
} as const

/** No external content, nothing inline, no framing by other pages. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/**
 * The page at `/ui`: static files. The page reads resources that all clients may read, with the rights of the viewing
 * user.
 * @param folder of the files
 */
export function createUiRoutes(folder: string, onError?: (error: unknown) => void): Router {
  const router = resourceRouter()
  const files = new Map<string, Buffer>()

  function fileOf(name: keyof typeof TYPES): Buffer {
    let bytes = files.get(name)
    if (!bytes) files.set(name, (bytes = readFileSync(join(folder, name))))
    return bytes
  }

  function send(response: express.Response, name: keyof typeof TYPES): void {
    const bytes = fileOf(name)
    response.writeHead(200, {
      'content-type': `${TYPES[name]}; charset=utf-8`,
      'content-length': bytes.length,
      // The page of a new version must not run with the script of the old one.
      'cache-control': 'no-cache',
      'content-security-policy': POLICY,
      'x-content-type-options': 'nosniff',
      // The browser sends an Origin with a form only where it may send a Referer.
      'referrer-policy': 'same-origin',
    })
    response.end(response.req.method === 'HEAD' ? undefined : bytes)
  }

  for (const path of ['/ui', '/ui/groups', '/ui/nodes', '/ui/query/:queryId'])
    pageResource(router, path, { GET: (_request, response) => send(response, 'index.html') })
  pageResource(router, '/ui/session', { GET: sendSessionUser })
  pageResource(router, '/ui/:file', {
    GET(request, response) {
      const { file } = request.params
      if (typeof file !== 'string' || !Object.hasOwn(TYPES, file)) throw new HttpProblem(404, 'The page does not exist')
      send(response, file as keyof typeof TYPES)
    },
  })
  router.use(problemHandler(onError))
  return router
}
