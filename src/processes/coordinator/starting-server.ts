import { reportedErrorText } from '../../telemetry/reported-error.ts'
import { ServerResponse, type IncomingMessage, type RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { resolve } from 'node:path'
import { Writable } from 'node:stream'
import { setCaller } from '../../protocol/access/caller.ts'
import { createCheckResults, type CheckResults } from '../../protocol/access/results-guard.ts'
import { browserPolicyOf, checkBrowser, type BrowserPolicy } from '../../protocol/edge/browser-policy.ts'
import { answerError, HttpProblem } from '../../protocol/edge/problem.ts'
import { requestTarget } from '../../protocol/edge/request-target.ts'
import { refuseRelayed } from '../../protocol/relay/relayed-request.ts'
import type { ServerStatus } from '../../protocol/info/schemas/server.ts'
import { createStatementUris, statementPath, type StatementUris } from '../../protocol/statement/next-uri.ts'
import { baseUri } from '../../protocol/edge/base-uri.ts'
import { lastKnownOf, sendWaiting, type LastKnown } from '../../protocol/statement/waiting-answer.ts'
import { loadClusterSecret } from '../../security/cluster-secret.ts'
import { systemClock, type Clock } from '../../shared/clock.ts'
import type { ChildLife } from '../child-life.ts'
import { coordinatorRestarts } from '../health/server-status.ts'
import type { StartNeeds } from './start-needs.ts'
import type { Access, AccessEntry } from './wire-access.ts'

export interface StartingServerDeps {
  readonly clock: Clock
  readonly needs: Pick<StartNeeds, 'log' | 'database'>
  /** The answer of `/v1/info`. */
  readonly info: () => Record<string, unknown>
  readonly restarts: () => number
  readonly uris: StatementUris
  readonly lastKnown: LastKnown
  readonly policy: BrowserPolicy
  readonly access: Pick<AccessEntry, 'callerAt'>
  readonly checkResults: CheckResults
  readonly waits: {
    readonly longPollMs: number
    readonly postLogWaitMs: number
    readonly deleteValidityWaitMs: number
  }
  readonly onError: (error: unknown) => void
}

/** Answers in place of a coordinator that replaces a previous one, until it can answer itself. */
export interface StartingServer {
  readonly listener: RequestListener
  /** From now on `listener` answers, waiting requests first. */
  handOver(listener: RequestListener): void
}

interface Held {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly since: number
}

const LOOK_EVERY_MS = 50
/** How many cancel requests are kept for the coordinator. */
const MOST_CANCELS = 10_000

/**
 * Holds requests during a start: a restart is a pause for clients, not an error. Only if a dependency of the start is
 * away, a request is answered after its wait time, as a running coordinator would answer then: a poll gets the last
 * known state, a POST an error that it was not accepted.
 */
export function createStartingServer(deps: StartingServerDeps): StartingServer {
  const { clock, needs, waits } = deps
  const held = new Set<Held>()
  const cancels: IncomingMessage[] = []
  let next: RequestListener | undefined
  const timer = setInterval(check, LOOK_EVERY_MS)
  timer.unref()

  function check(): void {
    if (needs.log === 'up' && needs.database === 'up') return
    const now = clock.monotonicMs()
    for (const one of held) {
      // If the log is not in the database, a start needs no database.
      if (needs.log === 'up' && one.path !== '/v1/status') continue
      if (now - one.since < waitOf(one)) continue
      held.delete(one)
      answer(one).catch((error: unknown) => answerError(one.request, one.response, error, deps.onError))
    }
  }

  function waitOf({ request, path }: Held): number {
    if (path === '/v1/status') return 0
    if (request.method === 'DELETE') return waits.deleteValidityWaitMs
    return statementPath(path) && request.method !== 'POST' ? waits.longPollMs : waits.postLogWaitMs
  }

  async function answer({ request, response, path }: Held): Promise<void> {
    refuseRelayed(request)
    checkBrowser(request, deps.policy)
    setCaller(request, await deps.access.callerAt(request, path))
    if (path === '/v1/status' && isRead(request)) return sendJson(request, response, status())
    const statement = statementPath(path)
    if (statement && isRead(request)) {
      const page = deps.uris.verifyPage(statement)
      if (!page) throw new HttpProblem(404, 'Query not found')
      if (request.method === 'HEAD') return void response.writeHead(200, { 'cache-control': 'no-store' }).end()
      const { uris, lastKnown, checkResults } = deps
      const waiting = { uris, lastKnown, checkResults, now: clock.now }
      return sendWaiting(request, response, waiting, { ...page, base: baseUri(request) })
    }
    // The coordinator cancels the query once it can. If it dies before, the cancel is lost; then the client's absence
    // ends the query.
    if (statement && request.method === 'DELETE' && cancels.length < MOST_CANCELS) {
      if (!deps.uris.verifyPage(statement)) throw new HttpProblem(404, 'Query not found')
      cancels.push(request)
      return void response.writeHead(204, { 'cache-control': 'no-store' }).end()
    }
    throw new HttpProblem(503, 'The coordinator is starting, and the event log does not answer', { 'retry-after': '1' })
  }

  function status(): ServerStatus {
    return {
      live: true,
      ready: false,
      writer: false,
      epoch: 0,
      log: needs.log,
      database: needs.database,
      deadLetters: 0,
      restarts: deps.restarts(),
      workers: { active: 0, suspect: 0, failed: 0 },
      openQueries: 0,
    }
  }

  return {
    listener(request, response) {
      if (next) return next(request, response)
      const { path } = requestTarget(request)
      if (path === '/v1/info' && isRead(request)) return sendJson(request, response, deps.info())
      const one: Held = { request, response, path, since: clock.monotonicMs() }
      held.add(one)
      response.once('close', () => held.delete(one))
    },
    handOver(listener) {
      next = listener
      clearInterval(timer)
      const waited = [...held]
      held.clear()
      for (const { request, response } of waited) if (!response.destroyed) listener(request, response)
      for (const request of cancels.splice(0)) listener(request, discardedResponse(request))
    },
  }
}

/** A response for a request whose client already has its answer. */
function discardedResponse(request: IncomingMessage): ServerResponse {
  const response = new ServerResponse(request)
  const sink = new Writable({ write: (_chunk, _encoding, done) => done() })
  // Node only writes to the socket and uses nothing else of it.
  response.assignSocket(sink as unknown as Socket)
  return response
}

function isRead(request: IncomingMessage): boolean {
  return request.method === 'GET' || request.method === 'HEAD'
}

function sendJson(request: IncomingMessage, response: ServerResponse, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': bytes.length,
    'cache-control': 'no-store',
  })
  response.end(request.method === 'HEAD' ? undefined : bytes)
}

/** Makes the server for a coordinator whose parts are not there yet. */
export function wireStarting(
  life: ChildLife,
  needs: StartNeeds,
  access: Access,
  info: () => Record<string, unknown>,
): StartingServer {
  const { config } = life
  const secret = loadClusterSecret(resolve(config.dataDir), config.sharedSecret)
  const entry = access.entry({ authenticationFailed: () => {}, accessDenied: () => {}, loggedIn: () => {} })
  return createStartingServer({
    clock: systemClock,
    needs,
    info,
    restarts: () => coordinatorRestarts(life.restarts()),
    uris: createStatementUris(secret),
    lastKnown: lastKnownOf((text, values) => needs.read(text, values)),
    policy: browserPolicyOf(config),
    access: entry,
    checkResults: createCheckResults(access.configured, entry.actsAs, entry.authorize),
    waits: config.timeouts,
    onError: (error) => process.stderr.write(`${reportedErrorText(error)}\n`),
  })
}
