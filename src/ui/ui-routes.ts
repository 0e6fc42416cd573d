import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { extname, join } from 'node:path'
import type express from 'express'
import type { Router } from 'express'
import { sendSessionUser } from '../protocol/log-in/log-in-routes.ts'
import { HttpProblem } from '../protocol/edge/problem.ts'
import { pageResource, problemHandler, resourceRouter } from '../protocol/edge/resource.ts'

/** Addresses of the console's pages; each answers with the same document. */
const PAGES = [
  '/ui',
  '/ui/compare',
  '/ui/sql',
  '/ui/record',
  '/ui/groups',
  '/ui/cluster',
  '/ui/nodes',
  '/ui/query/:queryId',
] as const

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
}

/** No external content, nothing inline, no framing by other pages. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

interface ServedFile {
  readonly type: string
  readonly bytes: Buffer
  /** The same bytes, compressed by the build. */
  readonly gzip: Buffer | undefined
}

/** Where the files of `/ui` are. */
export interface UiFolders {
  /** The build of `console`: `index.html` and `assets/`. */
  readonly console: string
  /** The style sheet of the log-in pages, `app.css`. */
  readonly logIn: string
}

/**
 * The console at `/ui`: static files. The console reads resources that all clients may read, with the rights of the
 * viewing user.
 */
export function createUiRoutes(folders: UiFolders, onError?: (error: unknown) => void): Router {
  const router = resourceRouter()
  const files = new Map<string, ServedFile>()

  function fileAt(path: string): ServedFile {
    let file = files.get(path)
    if (!file) files.set(path, (file = readServedFile(path)))
    return file
  }

  for (const page of PAGES)
    pageResource(router, page, {
      // The page of a new version must not run with the script of the old one.
      GET: (_request, response) => sendFile(response, fileAt(join(folders.console, 'index.html')), 'no-cache'),
    })
  pageResource(router, '/ui/session', { GET: sendSessionUser })
  pageResource(router, '/ui/app.css', {
    GET: (_request, response) => sendFile(response, fileAt(join(folders.logIn, 'app.css')), 'no-cache'),
  })
  pageResource(router, '/ui/assets/:file', {
    GET(request, response) {
      const assets = join(folders.console, 'assets')
      const { file } = request.params
      if (typeof file !== 'string' || !readdirSync(assets).includes(file) || !Object.hasOwn(TYPES, extname(file)))
        throw new HttpProblem(404, 'The page does not exist')
      // The name of an asset has a hash of its content.
      sendFile(response, fileAt(join(assets, file)), 'public, max-age=31536000, immutable')
    },
  })
  pageResource(router, '/ui/*path', {
    // The console says that it has no such page. Programs that do not ask for a page get a problem.
    GET(request, response) {
      if (request.accepts(['json', 'html']) !== 'html') throw new HttpProblem(404, 'The page does not exist')
      sendFile(response, fileAt(join(folders.console, 'index.html')), 'no-cache', 404)
    },
  })
  router.use(problemHandler(onError))
  return router
}

function readServedFile(path: string): ServedFile {
  const gzip = `${path}.gz`
  return {
    type: TYPES[extname(path)] ?? 'application/octet-stream',
    bytes: readFileSync(path),
    gzip: existsSync(gzip) ? readFileSync(gzip) : undefined,
  }
}

function sendFile(response: express.Response, file: ServedFile, caching: string, status = 200): void {
  const gzip = response.req.acceptsEncodings('gzip') === 'gzip' ? file.gzip : undefined
  const body = gzip ?? file.bytes
  response.writeHead(status, {
    'content-type': file.type,
    'content-length': body.length,
    ...(gzip && { 'content-encoding': 'gzip' }),
    ...(file.gzip && { vary: 'accept-encoding' }),
    'cache-control': caching,
    'content-security-policy': POLICY,
    'x-content-type-options': 'nosniff',
    // The browser sends an Origin with a form only where it may send a Referer.
    'referrer-policy': 'same-origin',
  })
  response.end(response.req.method === 'HEAD' ? undefined : body)
}
