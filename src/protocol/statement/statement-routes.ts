import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError, failureOf } from '../../shared/engine-error.ts'
import type { Clock } from '../../shared/clock.ts'
import type { QuerySession } from '../../coordinator/query/events.ts'
import {
  LogUnavailable,
  type StatementAnswer,
  type StatementService,
} from '../../coordinator/query/statement-service.ts'
import { EventLogError, Fenced } from '../../events/event-log.ts'
import type { StatementMemory, StatementOwner } from '../../coordinator/dispatch/statement-memory.ts'
import type { QueryExecution } from '../../coordinator/query/query-handle.ts'
import { sealedSubmission } from '../../coordinator/query/query-secrets.ts'
import type { KnownQuery } from '../../coordinator/query/state.ts'
import { HttpProblem } from '../edge/problem.ts'
import { decodeUtf8, discardBody, readBody } from '../edge/request-body.ts'
import { requestTarget } from '../edge/request-target.ts'
import { answerText } from './query-results.ts'
import { answerHeaders, headerFamily, sessionFromHeaders, type HeaderFamily } from './session-headers.ts'
import type { StatementUris } from './next-uri.ts'
import { sendAnswer } from './send-answer.ts'
import type { StatementSpans } from './statement-spans.ts'
import { tellWaiting, type LastKnown } from './waiting-answer.ts'

export interface StatementRouteDeps {
  readonly service: StatementService
  /** Bodies count while they come. */
  readonly memory: Pick<StatementMemory, 'hold'>
  readonly uris: StatementUris
  readonly clock: Clock
  readonly spans: StatementSpans
  readonly groupOf: (session: QuerySession) => string
  readonly defaultTimeZone: string
  readonly limits: {
    readonly statementBytes: number
    readonly longPollMs: number
    readonly deleteValidityWaitMs: number
  }
  /** Of queries of which the log says nothing now. */
  readonly lastKnown: LastKnown
  /** Is `X-Forwarded-*` to be believed? */
  readonly forwarded: boolean
  readonly onDelivered?: (query: KnownQuery, rows: number) => void
  /** A statement was not taken. */
  readonly onRejected?: (group: string, reason: 'shed' | 'log_down') => void
  /** How a client's look at its result ended. */
  readonly onPolled?: (result: 'data' | 'empty' | 'last' | 'gone' | 'not_found') => void
}

/**
 * The statement resource on bare `node:http`: no library lies on the way of a small statement.
 * @returns false when the path is not this resource's
 * Rejects with HttpProblem (or a bug): the caller answers it.
 */
export type StatementRoutes = (request: IncomingMessage, response: ServerResponse, path: string) => Promise<boolean>

const STAGE = /^\/v1\/stage\/([^/.]+)\.(\d{1,6})\/([^/]+)\/?$/
const STATEMENT = /^\/v1\/statement\/([^/]+)\/([^/]+)\/?$/

/** Query and last segment of a statement's address. */
export function statementPath(path: string): { readonly id: string; readonly segment: string } | undefined {
  const [, id, segment] = STATEMENT.exec(path) ?? []
  return id === undefined || segment === undefined ? undefined : { id, segment }
}

export function createStatementRoutes(deps: StatementRouteDeps): StatementRoutes {
  /** What was answered at a settled token: asked again, it is the same to the byte. */
  const settled = createSettledAnswers()
  const waiting = { uris: deps.uris, lastKnown: deps.lastKnown, now: deps.clock.now }

  async function post(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const trace = deps.spans.post(request, response)
    acceptsJson(request)
    const family = headerFamily(request.headers)
    const session = sessionFromHeaders(request, family, deps.defaultTimeZone)
    const resourceGroup = deps.groupOf(session)
    const execution = await submit(request, { family, session, resourceGroup, trace }).catch((error: unknown) => {
      if (error instanceof LogUnavailable) deps.onRejected?.(resourceGroup, 'log_down')
      if (error instanceof EngineError && error.errorName === 'TOO_MANY_REQUESTS_FAILED')
        deps.onRejected?.(resourceGroup, 'shed')
      if (error instanceof LogUnavailable || error instanceof Fenced)
        throw new HttpProblem(503, error.message, { 'retry-after': '1' })
      throw error
    })
    const { intended, state } = execution.aggregate
    const query = intended.kind === 'NONE' ? state : intended
    if (query.kind === 'NONE') throw new Error('a submitted query has a state')
    const { liveStats, queuedReason } = execution
    const view = {
      query,
      liveStats,
      queuedReason,
      nextToken: 0,
      failure: undefined,
      now: deps.clock.now(),
      initial: true,
    }
    const text = answerText(view, deps.uris, false)
    sendAnswer(request, response, [text.head], {})
  }

  async function submit(request: IncomingMessage, posted: PostHeaders): Promise<QueryExecution> {
    const { session, family, resourceGroup, trace } = posted
    const sql = await readStatement(request, { user: session.user, address: session.remoteUserAddress })
    if (sql.trim() === '') throw new HttpProblem(400, 'SQL statement is empty')
    const uris = { headerFamily: family, baseUri: baseUri(request, deps.forwarded) }
    return deps.service.submit(sealedSubmission(sql, session, { ...uris, resourceGroup, ...trace }))
  }

  /** @throws EngineError TOO_MANY_REQUESTS_FAILED when there is no room for it; then it has been read to its end, and is gone */
  async function readStatement(request: IncomingMessage, owner: StatementOwner): Promise<string> {
    const { statementBytes } = deps.limits
    const announced = Number(request.headers['content-length'] ?? BODY_STEP_BYTES)
    try {
      const held = deps.memory.hold(owner, Math.min(announced, statementBytes))
      try {
        const body = await readBody(request, statementBytes, (bytes) => {
          if (bytes > held.bytes) held.more(BODY_STEP_BYTES)
        })
        return decodeUtf8(body)
      } finally {
        held.release()
      }
    } catch (error) {
      if (!(error instanceof EngineError)) throw error
      // A client reads no answer before it has sent all.
      await discardBody(request, statementBytes)
      throw new EngineError('TOO_MANY_REQUESTS_FAILED', error.message)
    }
  }

  async function get(request: IncomingMessage, response: ServerResponse, id: string, segment: string): Promise<void> {
    const startedAt = deps.clock.now()
    acceptsJson(request)
    const token = deps.uris.verifyToken(id, segment)
    if (token === undefined) throw new HttpProblem(404, 'Query not found')
    const answer = await deps.service.poll(id, token, deps.limits.longPollMs).catch((error: unknown) => {
      // A GET is never 503: the query is known by its mac, what it does is not known here now.
      if (isPassing(error)) return undefined
      throw error
    })
    if (!answer) {
      // At once would have the client ask again at once.
      await sleep(Math.max(0, deps.limits.longPollMs - (deps.clock.now() - startedAt)))
      deps.onPolled?.('empty')
      return tellWaiting(request, response, waiting, baseUri(request, deps.forwarded), id, token)
    }
    switch (answer.kind) {
      case 'gone':
        deps.onPolled?.('gone')
        throw new HttpProblem(410, 'Page is gone: a later one was asked for')
      case 'unknown':
        deps.onPolled?.('not_found')
        throw new HttpProblem(404, 'Query not found')
      case 'answer':
        return tell(request, response, token, answer, startedAt)
      default:
        throw new Error(`Unknown answer: ${JSON.stringify(answer satisfies never)}`)
    }
  }

  function tell(
    request: IncomingMessage,
    response: ServerResponse,
    token: number,
    answer: Extract<StatementAnswer, { kind: 'answer' }>,
    startedAt: number,
  ): void {
    const { query, page } = answer
    const hasRows = page !== undefined && page.rows > 0
    const make = () => answerText({ ...answer, now: deps.clock.now(), initial: false }, deps.uris, hasRows)
    const text = answer.settled ? settled.of(query.queryId, token, answer.nextToken, make) : make()
    const headers =
      query.kind === 'FINISHED' ? answerHeaders(query.created.headerFamily, query.finished.responseHeaders) : {}
    sendAnswer(request, response, hasRows ? [text.head, page.bytes, text.tail] : [text.head], headers)
    deps.onPolled?.(answer.nextToken === undefined ? 'last' : hasRows ? 'data' : 'empty')
    deps.spans.polled(request, response, {
      query,
      token,
      rows: page?.rows ?? 0,
      bytes: page?.bytes.length ?? 0,
      startedAt,
    })
    if (page) deps.onDelivered?.(query, page.rows)
  }

  async function remove(response: ServerResponse, id: string, segment: string): Promise<void> {
    if (deps.uris.verifyToken(id, segment) === undefined) throw new HttpProblem(404, 'Query not found')
    const failure = failureOf('USER_CANCELED', 'Query was canceled')
    const outcome = await deps.service
      .cancel(id, failure, deps.limits.deleteValidityWaitMs)
      .catch((error: unknown) => (isPassing(error) ? ('waiting' as const) : Promise.reject(error)))
    if (outcome === 'unknown') throw new HttpProblem(404, 'Query not found')
    if (outcome === 'waiting')
      throw new HttpProblem(503, 'The cancel is not in the event log yet', { 'retry-after': '1' })
    response.writeHead(204, NO_BODY).end()
  }

  return async (request, response, path) => {
    if (path === '/v1/statement' || path === '/v1/statement/') {
      switch (request.method) {
        case 'POST':
          await post(request, response)
          return true
        case 'OPTIONS':
          response.writeHead(204, { ...NO_BODY, allow: 'POST, OPTIONS' }).end()
          return true
        default:
          throw new HttpProblem(405, 'Statements are posted', { allow: 'POST, OPTIONS' })
      }
    }
    const stage = STAGE.exec(path)
    if (stage) {
      const [, id = '', number = '', mac = ''] = stage
      if (request.method !== 'DELETE')
        throw new HttpProblem(405, 'A stage is canceled with DELETE', { allow: 'DELETE' })
      if (!deps.uris.verifyStage(id, Number(number), mac)) throw new HttpProblem(404, 'Query not found')
      const canceled = await deps.service.cancelStage(id, Number(number))
      if (canceled === 'unknown') throw new HttpProblem(404, 'Query not found')
      if (canceled === 'writes') throw new HttpProblem(409, 'A query that writes has no partial result')
      response.writeHead(204, NO_BODY).end()
      return true
    }
    const statement = statementPath(path)
    if (!statement) return false
    const { id, segment } = statement
    switch (request.method) {
      case 'GET':
        await get(request, response, id, segment)
        return true
      case 'HEAD': {
        // A heartbeat of clients that are busy with the rows they have.
        const known =
          deps.uris.verifyToken(id, segment) !== undefined &&
          (await deps.service.heartbeat(id).catch((error: unknown) => isPassing(error) || Promise.reject(error)))
        response.writeHead(known ? 200 : 404, NO_BODY).end()
        return true
      }
      case 'DELETE':
        await remove(response, id, segment)
        return true
      case 'OPTIONS':
        response.writeHead(204, { ...NO_BODY, allow: 'GET, HEAD, DELETE, OPTIONS' }).end()
        return true
      default:
        throw new HttpProblem(405, 'A result is fetched with GET and canceled with DELETE', {
          allow: 'GET, HEAD, DELETE, OPTIONS',
        })
    }
  }
}

const NO_BODY = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

function acceptsJson(request: IncomingMessage): void {
  const accept = request.headers.accept
  if (accept === undefined || /application\/(\*|json)|\*\/\*/.test(accept)) return
  throw new HttpProblem(406, 'Answers are application/json')
}

/** Scheme, host and port as the client used them. */
export function baseUri(request: IncomingMessage, forwarded: boolean): string {
  const first = (name: string): string | undefined => {
    const value = request.headers[name]
    return (Array.isArray(value) ? value[0] : value)?.split(',')[0]?.trim()
  }
  const scheme =
    (forwarded ? first('x-forwarded-proto') : undefined) ?? ('encrypted' in request.socket ? 'https' : 'http')
  const port = forwarded ? first('x-forwarded-port') : undefined
  const host = (forwarded ? first('x-forwarded-host') : undefined) ?? requestTarget(request).authority
  if (host !== undefined && /^[\w.\-:[\]]+$/.test(host))
    return `${scheme}://${host}${port !== undefined && !/:\d+$/.test(host) ? `:${port}` : ''}`
  const { localAddress, localPort } = request.socket
  const address = localAddress?.includes(':') ? `[${localAddress}]` : (localAddress ?? 'localhost')
  return `${scheme}://${address}:${localPort}`
}

/**
 * The log, Postgres or a worker is away, or another coordinator writes: it comes back, or recovery says what became of the
 * query. Or this process drains: the next coordinator says it.
 */
function isPassing(error: unknown): boolean {
  // The service's own, the event log's, and a query's whose coordinator drains.
  if (error instanceof LogUnavailable || error instanceof EventLogError) return true
  if (error instanceof Error && error.name === 'Suspended') return true
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return (
    /^(ECONN|EPIPE|ENOENT|ETIMEDOUT|57|08|53)/.test(code) ||
    (error instanceof Error && /terminat|timeout/i.test(error.message))
  )
}

/** Of a body of unknown length, held while it comes. */
const BODY_STEP_BYTES = 64 * 1024

/** What a POST says before its body. */
interface PostHeaders {
  readonly family: HeaderFamily
  readonly session: QuerySession
  readonly resourceGroup: string
  readonly trace: ReturnType<StatementSpans['post']>
}

interface SettledAnswers {
  of(
    queryId: string,
    token: number,
    next: number | undefined,
    make: () => { head: string; tail: string },
  ): { head: string; tail: string }
}

/** Settled answers take so many characters together: each has the columns of its result, which may be very many. */
const SETTLED_CHARACTERS = 16 * 1024 * 1024
const SETTLED_ANSWERS = 2000

/** The newest settled answers; older ones are made again from the same events. */
function createSettledAnswers(): SettledAnswers {
  const kept = new Map<string, { head: string; tail: string }>()
  let characters = 0
  return {
    of(queryId, token, next, make) {
      const key = `${queryId}/${token}/${next ?? 'end'}`
      const known = kept.get(key)
      if (known) return known
      const made = make()
      kept.set(key, made)
      characters += made.head.length + made.tail.length
      for (const [oldest, { head, tail }] of kept) {
        if (kept.size <= SETTLED_ANSWERS && characters <= SETTLED_CHARACTERS) break
        kept.delete(oldest)
        characters -= head.length + tail.length
      }
      return made
    },
  }
}
