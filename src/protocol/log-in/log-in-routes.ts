import { outcomeSchema, type LogInAnswer } from './log-in-answer.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type express from 'express'
import type { RequestHandler, Router } from 'express'
import { z } from 'zod'
import type { VerifiedName } from '../../security/authentication/authenticator.ts'
import type { EndedSessions } from '../../security/authentication/ended-sessions.ts'
import {
  LogInDenied,
  LogInInvalid,
  ProviderAway,
  type IdentityProvider,
  type KnownByProvider,
  type LogInChecks,
} from '../../security/authentication/identity-provider.ts'
import { LOG_IN_MS, type LogInAddresses, type OfferedRenewal } from '../../security/authentication/log-in-address.ts'
import { TooManyLogIns, type LogInStore } from '../../security/authentication/log-in-store.ts'
import type { VerifiedPrincipal } from '../../security/authentication/principal.ts'
import type { RenewalStore } from '../../security/authentication/renewal-store.ts'
import type { SessionHolder, SessionTokens } from '../../security/authentication/session-token.ts'
import type { Clock } from '../../shared/clock.ts'
import { parseJson } from '../../shared/parse-json.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import { callerOf } from '../access/caller.ts'
import { baseUri } from '../edge/base-uri.ts'
import { clientNetwork, remoteAddressOf } from '../edge/client-connection.ts'
import { HttpProblem, toProblem } from '../edge/problem.ts'
import { readBody, decodeUtf8 } from '../edge/request-body.ts'
import { requestTarget } from '../edge/request-target.ts'
import { pageResource, problemHandler, resource, resourceRouter, sendJson } from '../edge/resource.ts'
import {
  browserOf,
  hashOf,
  markBrowser,
  NO_SESSION,
  onwardPath,
  requireConfidential,
  requireOwnPage,
  sessionCookie,
  sessionCookieOf,
} from './browser.ts'
import { sendPage } from './page.ts'
import { confirmPage, failedPage, loggedInPage, logInPage, onwardPage, type LogInMethods } from './pages.ts'
import { endRenewable, renew, startRenewable } from './renew-token.ts'
import type { TokenWaits } from './token-waits.ts'

/** The coordinator's authentication, as far as log-ins need it. */
export interface LogInEntry {
  /**
   * The user of a verified name. Records the log-in.
   * @throws HttpProblem 403 for a name that the user mapping does not know
   */
  admit(verified: VerifiedName, request: IncomingMessage): VerifiedPrincipal
  /** Verifies a user and a password. @throws HttpProblem as for any request with this user and password */
  byPassword(user: string, password: string, request: IncomingMessage): Promise<SessionHolder>
}

export interface LogInDeps {
  readonly methods: LogInMethods
  readonly entry: LogInEntry
  readonly addresses: LogInAddresses
  readonly tokens: SessionTokens
  /** @throws HttpProblem 503 before the database was reached */
  readonly store: () => LogInStore
  readonly ended: () => EndedSessions
  /** Undefined where no provider is configured. */
  readonly provider: IdentityProvider | undefined
  readonly waits: TokenWaits
  /** @throws HttpProblem 503 before the database was reached */
  readonly renewals: () => RenewalStore
  readonly clock: Pick<Clock, 'now'>
  /** Called for bugs, and for failures of the provider. */
  readonly onError: (error: unknown) => void
}

/** Stored, encrypted, while the browser is at the identity provider. */
const secretsSchema = z.object({
  checks: z.object({ state: z.string(), nonce: z.string(), verifier: z.string(), redirectUri: z.string() }),
  /** Where the browser goes after the log-in; without it a program waits for the token. */
  to: z.string().optional(),
})

const LONGEST_FORM = 8192

/** Routes of log-ins, for the page and for programs. All are open without authentication. */
export function createLogInRoutes(deps: LogInDeps): Router {
  const router = resourceRouter()
  const page =
    (handle: (request: express.Request, response: express.Response) => Promise<void> | void): RequestHandler =>
    (request, response) => {
      const fail = (error: unknown): void => sendFailure(deps, response, error)
      try {
        requireConfidential(request)
        Promise.resolve(handle(request, response)).catch(fail)
      } catch (error) {
        fail(error)
      }
    }

  resource(router, '/oauth2/token/initiate/{logIn}', {
    GET: page((request, response) => showProgram(deps, request, response)),
    POST: page((request, response) => confirmProgram(deps, request, response)),
  })
  resource(router, '/oauth2/token/{logIn}', {
    GET: (request, response, next) => void giveToken(deps, request, response).catch(next),
    DELETE: (request, response, next) => void dropToken(deps, request, response).catch(next),
  })
  resource(router, '/oauth2/revoke', {
    POST: (request, response, next) => void revokeToken(deps, request, response).catch(next),
  })
  resource(router, '/oauth2/callback', { GET: page((request, response) => comeBack(deps, request, response)) })
  pageResource(router, '/ui/log-in', {
    GET: page((request, response) => {
      sendPage(response, 200, logInPage(deps.methods, onwardPath(requestTarget(request).query.get('to'))))
    }),
    POST: page((request, response) => logInByPassword(deps, request, response)),
  })
  pageResource(router, '/ui/log-in/provider', {
    POST: page((request, response) => goToProvider(deps, request, response)),
  })
  pageResource(router, '/ui/log-out', { POST: page((request, response) => logOut(deps, request, response)) })
  router.use(problemHandler(deps.onError))
  return router
}

/** Sends the caller's user, for the page. */
export function sendSessionUser(request: express.Request, response: express.Response): void {
  const caller = callerOf(request)
  const { user, method } = caller.kind === 'principal' ? caller.principal : { user: null, method: null }
  // Only a session can log out: a browser cannot drop a password or a certificate that it sends by itself.
  sendJson(response, { user, method, mayLogOut: sessionCookieOf(request) !== undefined })
}

function programOf({ addresses }: LogInDeps, request: express.Request) {
  const found = addresses.ofInitiate(segmentOf(request))
  if (!found) throw new HttpProblem(404, 'This log-in has ended or never existed: start it again in the program')
  return found
}

function segmentOf(request: express.Request): string {
  const { logIn } = request.params
  return typeof logIn === 'string' ? logIn : ''
}

function showProgram(deps: LogInDeps, request: express.Request, response: express.Response): void {
  requireProvider(deps)
  const asking = programOf(deps, request)
  sendPage(response, 200, confirmPage(asking, requestTarget(request).path))
}

async function confirmProgram(deps: LogInDeps, request: express.Request, response: express.Response): Promise<void> {
  requireOwnPage(request)
  const { id, expiresAt } = programOf(deps, request)
  await beginAtProvider(deps, request, response, { id, forMs: expiresAt - deps.clock.now() })
}

async function goToProvider(deps: LogInDeps, request: express.Request, response: express.Response): Promise<void> {
  requireOwnPage(request)
  const to = onwardPath((await formOf(request)).get('to'))
  await beginAtProvider(deps, request, response, { id: hashOf(`page ${crypto.randomUUID()}`), forMs: LOG_IN_MS, to })
}

function requireProvider({ provider }: LogInDeps): IdentityProvider {
  if (!provider) throw new HttpProblem(404, 'This server has no identity provider')
  return provider
}

interface Begun {
  readonly id: Buffer
  readonly forMs: number
  readonly to?: string
}

async function beginAtProvider(
  deps: LogInDeps,
  request: IncomingMessage,
  response: ServerResponse,
  { id, forMs, to }: Begun,
): Promise<void> {
  const mark = markBrowser(request)
  const { url, checks } = await requireProvider(deps).begin(`${baseUri(request)}/oauth2/callback`, to === undefined)
  const secrets = JSON.stringify({ checks, to } satisfies z.input<typeof secretsSchema>)
  const address = remoteAddressOf(request) ?? ''
  const state = hashOf(checks.state)
  const begun = await kept(deps.store().ask({ id, state, browser: mark.hash, address, forMs, secrets }))
  if (!begun) throw new HttpProblem(409, 'This log-in has already ended')
  sendPage(response, 200, onwardPage('To the identity provider', url.href), { 'set-cookie': mark.cookie })
}

/** Handles the return of the browser from the identity provider, with a code or with an error. */
async function comeBack(deps: LogInDeps, request: IncomingMessage, response: express.Response): Promise<void> {
  const { query } = requestTarget(request)
  const state = query.get('state')
  const browser = browserOf(request)
  const found = state !== null && browser ? await kept(deps.store().comeBack(hashOf(state), browser)) : undefined
  const secrets = found && secretsSchema.safeParse(parseJson(found.secrets)).data
  if (!found || !secrets)
    throw new HttpProblem(400, 'This log-in was started in another browser, has already ended, or took too long')
  try {
    const known = await requireProvider(deps).finish(query, secrets.checks satisfies LogInChecks)
    const { name, user } = deps.entry.admit(known.verified, request)
    const holder: SessionHolder = { name, user, groups: known.verified.groups, method: 'oauth2' }
    if (secrets.to === undefined) await giveProgram(deps, found.id, holder, known, response)
    else enterPage(deps, holder, secrets.to, response)
  } catch (error) {
    if (secrets.to === undefined) await sendToProgram(deps, found.id, { error: programError(error) })
    throw error
  }
}

async function giveProgram(
  deps: LogInDeps,
  id: Buffer,
  holder: SessionHolder,
  { verified, renewal }: KnownByProvider,
  response: express.Response,
): Promise<void> {
  const token = fitting(
    renewal ? await kept(startRenewable(deps, holder, verified, renewal)) : deps.tokens.issue(holder, 'program'),
  )
  if (!(await sendToProgram(deps, id, { token })))
    throw new HttpProblem(409, 'The program no longer waits for this log-in')
  sendPage(response, 200, loggedInPage(holder.user))
}

function sendToProgram({ store }: LogInDeps, id: Buffer, answer: LogInAnswer): Promise<boolean> {
  return kept(store().finish(id, JSON.stringify(answer)))
}

/** The error that a program shows to its user. It never contains text of the provider. */
function programError(error: unknown): string {
  if (error instanceof LogInDenied) return `The identity provider refused the log-in`
  return error instanceof HttpProblem || error instanceof QuipuError ? error.message : 'The log-in failed'
}

function fitting(token: string | undefined): string {
  if (token === undefined)
    throw new HttpProblem(403, 'The groups of this user do not fit into a session: configure a claim with fewer groups')
  return token
}

function enterPage(deps: LogInDeps, holder: SessionHolder, to: string, response: express.Response): void {
  const token = fitting(deps.tokens.issue(holder, 'page'))
  const seconds = Math.floor(((deps.tokens.peek(token)?.expiresAt ?? 0) - deps.clock.now()) / 1000)
  // A page instead of a redirect: a redirect would continue a navigation that another site began, so the browser would
  // not send the cookie.
  sendPage(response, 200, onwardPage('Logged in', to), { 'set-cookie': sessionCookie(token, seconds) })
}

async function logInByPassword(deps: LogInDeps, request: express.Request, response: express.Response): Promise<void> {
  requireOwnPage(request)
  if (!deps.methods.password) throw new HttpProblem(404, 'This server does not accept log-ins with a password')
  const form = await formOf(request)
  const to = onwardPath(form.get('to'))
  const user = form.get('user') ?? ''
  try {
    enterPage(deps, await deps.entry.byPassword(user, form.get('password') ?? '', request), to, response)
  } catch (error) {
    const problem = toProblem(error)
    if (problem.status !== 401) throw error
    sendPage(response, 401, logInPage(deps.methods, to, user))
  }
}

async function logOut(deps: LogInDeps, request: express.Request, response: express.Response): Promise<void> {
  requireOwnPage(request)
  const token = sessionCookieOf(request)
  const session = token === undefined ? undefined : deps.tokens.open(token)
  response.setHeader('set-cookie', NO_SESSION)
  if (session) await kept(deps.ended().end(session))
  sendPage(response, 200, onwardPage('Logged out', '/ui/log-in'), { 'set-cookie': NO_SESSION })
}

/** Waits for the log-in to end, as clients expect. */
async function giveToken(deps: LogInDeps, request: express.Request, response: express.Response): Promise<void> {
  requireConfidential(request)
  // A HEAD request does not take the token.
  if (request.method === 'HEAD') return sendJson(response, {})
  const again = { nextUri: `${baseUri(request)}${requestTarget(request).path}` }
  const renewed = deps.addresses.ofRenewal(segmentOf(request))
  if (renewed) return sendJson(response, (await kept(renewedBy(deps, renewed, request, response))) ?? again)
  const found = deps.addresses.ofToken(segmentOf(request))
  if (!found) return sendJson(response, { error: 'This log-in has ended or never existed' })
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const outcome = await kept(deps.waits.wait(found.id, clientNetwork(request), gone.signal))
  switch (outcome.kind) {
    case 'ended':
      return sendJson(response, outcomeSchema.parse(parseJson(outcome.outcome)) satisfies LogInAnswer)
    case 'taken':
      return sendJson(response, { error: 'The token of this log-in was already given' })
    case 'waiting':
      return sendJson(response, again)
    case 'full':
      throw new HttpProblem(503, 'Too many programs wait for log-ins: try again later', { 'retry-after': '1' })
  }
}

function renewedBy(
  deps: LogInDeps,
  offered: OfferedRenewal,
  request: express.Request,
  response: express.Response,
): Promise<LogInAnswer | undefined> {
  const { entry, store, waits } = deps
  const provider = requireProvider(deps)
  const spend = ({ id, expiresAt }: OfferedRenewal): Promise<boolean> => store().spend(id, expiresAt - deps.clock.now())
  return renew({ ...deps, provider, admit: entry.admit, spend, draining: waits.stopped }, offered, request, response)
}

/**
 * RFC 7009: logs out a program. A sender with a token may end its session. The answer is the same for any other text,
 * and does not say whether the provider was reached.
 */
async function revokeToken(deps: LogInDeps, request: express.Request, response: express.Response): Promise<void> {
  requireConfidential(request)
  const token = (await formOf(request)).get('token') ?? ''
  const session = deps.tokens.open(token) ?? deps.tokens.openLapsed(token)
  const renewal = session && (await kept(endRenewable(deps, session.id)))
  if (renewal) deps.provider?.revoke(renewal).catch(deps.onError)
  response.writeHead(200, { 'cache-control': 'no-store', 'content-length': '0' }).end()
}

async function dropToken(deps: LogInDeps, request: express.Request, response: express.Response): Promise<void> {
  const found = deps.addresses.ofToken(segmentOf(request))
  if (found) await kept(deps.store().drop(found.id))
  response.writeHead(204, { 'cache-control': 'no-store' }).end()
}

async function formOf(request: IncomingMessage): Promise<URLSearchParams> {
  const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/x-www-form-urlencoded') throw new HttpProblem(415, 'The body must be a form')
  return new URLSearchParams(decodeUtf8(await readBody(request, LONGEST_FORM)))
}

/**
 * Maps errors of the log-in database and of the provider to answers.
 * @throws HttpProblem 503 while either is unreachable, 429
 */
async function kept<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof HttpProblem) throw error
    if (error instanceof ProviderAway)
      throw new HttpProblem(503, 'The identity provider does not answer', { 'retry-after': '5' })
    if (error instanceof TooManyLogIns) throw new HttpProblem(429, error.message, { 'retry-after': '60' })
    throw new HttpProblem(503, 'Log-ins are stored in Postgres, which does not answer: try again later', {
      'retry-after': '1',
    })
  }
}

function sendFailure(deps: LogInDeps, response: express.Response, error: unknown): void {
  if (response.headersSent) return void response.destroy()
  const again = deps.methods.provider || deps.methods.password ? '/ui/log-in' : undefined
  if (error instanceof LogInDenied) {
    const text = error.description === undefined ? error.message : `${error.message} (${error.description})`
    return sendPage(response, 403, failedPage(text, again))
  }
  if (error instanceof ProviderAway) {
    deps.onError(error)
    return sendPage(response, 503, failedPage('The identity provider does not answer', again), { 'retry-after': '5' })
  }
  if (error instanceof LogInInvalid) {
    deps.onError(error)
    return sendPage(response, 403, failedPage(error.message, again))
  }
  const problem = toProblem(error)
  if (problem.status === 500) deps.onError(error)
  const { 'www-authenticate': _offer, ...headers } = problem.headers
  sendPage(response, problem.status, failedPage(problem.message, again), headers)
}
