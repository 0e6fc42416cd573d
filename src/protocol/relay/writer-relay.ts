import type { IncomingMessage, ServerResponse } from 'node:http'
import type { StatementMemory } from '../../coordinator/dispatch/statement-memory.ts'
import type { Clock } from '../../shared/clock.ts'
import { createHttpClient } from '../../shared/http-client.ts'
import { parseJson } from '../../shared/parse-json.ts'
import type { ServerTrust } from '../../shared/server-trust.ts'
import { callerOf } from '../access/caller.ts'
import { requestOwner } from '../access/request-owner.ts'
import type { CheckResults } from '../access/results-guard.ts'
import { HttpProblem } from '../edge/problem.ts'
import { readHeldBody } from '../edge/held-body.ts'
import { requestTarget } from '../edge/request-target.ts'
import { baseUri } from '../edge/base-uri.ts'
import { statementPath, type StatementPath, type StatementUris } from '../statement/next-uri.ts'
import { MAX_ACT_BYTES } from '../acts/act-routes.ts'
import { MAX_KILL_MESSAGE_BYTES } from '../query/end-query.ts'
import { MAX_ERASURE_BYTES } from '../erasure/erasure-routes.ts'
import { MAX_REPLAY_BYTES } from '../replay/replay-routes.ts'
import type { StatementRoutes } from '../statement/statement-routes.ts'
import { sendWaiting, type LastKnown } from '../statement/waiting-answer.ts'
import { clientConnection } from '../edge/client-connection.ts'
import {
  sendRelayed,
  writeRelayed,
  type RelayedAnswer,
  type RelayedRequest,
  type RelaySender,
  type RelayWriter,
} from './send-relayed.ts'

export interface WriterRelayDeps {
  readonly clock: Clock
  /** The coordinator that writes the log, which may be this one. Undefined while none writes. */
  readonly writer: () => RelayWriter | undefined
  /** Whether the writer was heard of lately, so that its answer is worth waiting for. */
  readonly writerLives: () => boolean
  /** Decides which servers are trusted to be the writer. */
  readonly trust: ServerTrust
  /** Signs the credentials of requests that are passed on. */
  readonly key: Buffer
  readonly uris: StatementUris
  /** The last known state of queries whose writer does not answer. */
  readonly lastKnown: LastKnown
  readonly checkResults: CheckResults
  /** Counts the memory of bodies from before they are read until they are answered. */
  readonly memory: Pick<StatementMemory, 'hold'>
  readonly limits: {
    readonly headerBytes: number
    readonly statementBytes: number
    readonly taskBodyBytes: number
    readonly longPollMs: number
    readonly postLogWaitMs: number
    readonly deleteValidityWaitMs: number
  }
}

export interface WriterRelay {
  /** Handles requests that only the writer can process; for other requests returns false and does nothing. */
  readonly routes: StatementRoutes
  /**
   * Sends a request of this coordinator itself to the writer, once.
   * @returns the answer, JSON; undefined when the writer did not accept it
   */
  post(path: string, body: unknown): Promise<unknown>
  close(): void
}

/** The writer answers a poll after the long poll's time, and may read a page after that. */
const POLL_GRACE_MS = 500
/** The longest wait for an answer. */
const LONGEST_MS = 15_000
/** How long a cancel that no writer accepted in time is passed on again, after the client was answered. */
const CANCEL_TRIED_FOR_MS = 60_000
/** The most cancels that are passed on like that at the same time. */
const MOST_CANCELS = 10_000
const RETRY_MS = 50
const OWN_MS = 5_000

/**
 * Passes statements, and other requests that change something, on to the coordinator that writes the log. A take-over
 * is a pause: the request is sent again to the new writer. A POST whose answer was lost is repeated, as its client
 * would: a statement that no client follows does nothing.
 */
export function createWriterRelay(deps: WriterRelayDeps): WriterRelay {
  const relay = new Relay(deps)
  return {
    routes: (request, response, path) => relay.route(request, response, path),
    post: (path, body) => relay.post(path, body),
    close: () => relay.close(),
  }
}

class Relay {
  readonly #deps: WriterRelayDeps
  readonly #http: ReturnType<typeof createHttpClient>
  readonly #sender: RelaySender
  readonly #closing = new AbortController()
  /** How far the writer's clock is ahead of this one, with the epoch of that writer; only the newest writer. */
  #ahead = { epoch: 0, milliseconds: 0 }
  /** The cancels that are passed on after their clients were answered. */
  #cancels = 0

  constructor(deps: WriterRelayDeps) {
    const { clock, limits, trust, key } = deps
    this.#deps = deps
    this.#http = createHttpClient(trust, { keepAlive: true, maxSockets: 512, noDelay: true })
    this.#sender = {
      key,
      http: this.#http,
      // The answer's headers that a client must send again, and those of every answer.
      mostHeadBytes: 2 * limits.headerBytes,
      now: ({ epoch }) => clock.now() + (this.#ahead.epoch === epoch ? this.#ahead.milliseconds : 0),
      onClock: ({ epoch }, now) => (this.#ahead = { epoch, milliseconds: now - clock.now() }),
    }
  }

  async route(request: IncomingMessage, response: ServerResponse, path: string): Promise<boolean> {
    const { limits } = this.#deps
    if (!isWriters(request.method ?? 'GET', path)) return false
    const statement = statementPath(path)
    if (statement && (request.method === 'GET' || request.method === 'HEAD')) {
      await this.#poll(request, response, statement)
      return true
    }
    if (statement && request.method === 'DELETE') {
      await this.#cancel(request, response, statement)
      return true
    }
    const waitMs =
      request.method === 'DELETE' || request.method === 'PUT' ? limits.deleteValidityWaitMs : limits.postLogWaitMs
    if (await this.#relay(request, response, waitMs)) throw noWriter()
    return true
  }

  async post(path: string, body: unknown): Promise<unknown> {
    const writer = this.#deps.writer()
    if (!writer) return undefined
    const sent: RelayedRequest = {
      method: 'POST',
      target: { text: path, authority: undefined },
      rawHeaders: ['content-type', 'application/json'],
      body: Buffer.from(JSON.stringify(body)),
      claims: { own: true },
    }
    const stop = AbortSignal.timeout(OWN_MS)
    const answer = await sendRelayed(writer, sent, this.#sender, stop).catch(() => undefined)
    answer?.rest?.destroy()
    return answer?.status === 200 ? parseJson(answer.body.toString('utf8')) : undefined
  }

  close(): void {
    this.#closing.abort()
    this.#http.close()
  }

  /** Asks until the writer answers, or the time is over and the writer is not heard of. */
  async #ask(
    sent: RelayedRequest,
    waitMs: number,
    gone: AbortSignal,
    longestMs = LONGEST_MS,
  ): Promise<RelayedAnswer | undefined> {
    const { clock, writer: currentWriter, writerLives } = this.#deps
    const start = clock.monotonicMs()
    const over = (): boolean => {
      const passed = clock.monotonicMs() - start
      return gone.aborted || passed > longestMs || (passed > waitMs && !writerLives())
    }
    while (!over()) {
      const writer = currentWriter()
      const answer = writer && (await this.#attempt(writer, sent, gone, over))
      if (answer && !answer.again) return answer
      answer?.rest?.destroy()
      if (clock.monotonicMs() - start > waitMs) return undefined
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
    return undefined
  }

  async #attempt(
    writer: RelayWriter,
    sent: RelayedRequest,
    gone: AbortSignal,
    over: () => boolean,
  ): Promise<RelayedAnswer | undefined> {
    const stop = new AbortController()
    const onGone = (): void => stop.abort()
    gone.addEventListener('abort', onGone, { once: true })
    // A writer that was replaced meanwhile may be stopped and never answer.
    const isReplaced = (): boolean => this.#deps.writer()?.epoch !== writer.epoch
    const watch = setInterval(() => (over() || isReplaced()) && stop.abort(), RETRY_MS)
    try {
      return await sendRelayed(writer, sent, this.#sender, stop.signal)
    } catch {
      return undefined
    } finally {
      clearInterval(watch)
      gone.removeEventListener('abort', onGone)
    }
  }

  /**
   * Passes a request on.
   * @returns the request when no writer answered it in time; undefined when the client has its answer
   */
  async #relay(
    request: IncomingMessage,
    response: ServerResponse,
    waitMs: number,
  ): Promise<RelayedRequest | undefined> {
    const target = requestTarget(request)
    const { address: clientAddress, scheme, authority, confidential } = clientConnection(request)
    const caller = callerOf(request)
    const body = await readHeldBody(request, {
      maxBytes: mostBytes(target.path, this.#deps.limits),
      memory: this.#deps.memory,
      // The writer reads the impersonation headers.
      owner: requestOwner(request),
    })
    const gone = new AbortController()
    const onClose = (): void => gone.abort()
    response.once('close', onClose)
    const sent: RelayedRequest = {
      method: request.method ?? 'GET',
      target,
      rawHeaders: request.rawHeaders,
      body: body.take(),
      claims: {
        clientAddress,
        client: { scheme, authority, confidential },
        principal: caller.kind === 'principal' ? caller.principal : undefined,
      },
    }
    const answer = await this.#ask(sent, waitMs, gone.signal).finally(() => body.release())
    response.off('close', onClose)
    if (!answer) return sent
    writeRelayed(response, answer)
    return undefined
  }

  /** Passes a cancel on. Without a writer it does not fail: the client gets 204, and the cancel is passed on later. */
  async #cancel(request: IncomingMessage, response: ServerResponse, path: StatementPath): Promise<void> {
    const { uris, limits } = this.#deps
    if (!uris.verifyPage(path)) throw new HttpProblem(404, 'Query not found')
    const unanswered = await this.#relay(request, response, limits.deleteValidityWaitMs)
    if (!unanswered) return
    if (this.#cancels >= MOST_CANCELS) throw noWriter()
    response.writeHead(204, { 'cache-control': 'no-store' }).end()
    this.#cancels++
    const answer = await this.#ask(unanswered, CANCEL_TRIED_FOR_MS, this.#closing.signal, CANCEL_TRIED_FOR_MS)
    this.#cancels--
    answer?.rest?.destroy()
  }

  async #poll(request: IncomingMessage, response: ServerResponse, path: StatementPath): Promise<void> {
    const { uris, lastKnown, checkResults, clock, limits } = this.#deps
    const page = uris.verifyPage(path)
    if (!page) throw new HttpProblem(404, 'Query not found')
    if (!(await this.#relay(request, response, limits.longPollMs + POLL_GRACE_MS))) return
    if (request.method === 'HEAD') return void response.writeHead(200, { 'cache-control': 'no-store' }).end()
    // The mac proves that the query exists. Its state is unknown until a coordinator writes the log again.
    const waiting = { uris, lastKnown, now: clock.now, checkResults }
    await sendWaiting(request, response, waiting, { ...page, base: baseUri(request) })
  }
}

function noWriter(): HttpProblem {
  return new HttpProblem(503, 'No coordinator writes the event log now', { 'retry-after': '1' })
}

/**
 * Whether only the writer can process a request: statements, tasks, resource groups, clusters, reports of replays,
 * erasures, acts, and requests that end a query.
 */
function isWriters(method: string, path: string): boolean {
  if (/^\/v1\/(statement|stage|task|resourceGroupState|cluster|replay|erasure|act)(\/|$)/.test(path)) return true
  return (method === 'DELETE' && path.startsWith('/v1/query/')) || (method === 'PUT' && KILLING.test(path))
}

const KILLING = /^\/v1\/query\/[^/]+\/(?:killed|preempted)\/?$/

function mostBytes(path: string, limits: WriterRelayDeps['limits']): number {
  if (path.startsWith('/v1/task')) return limits.taskBodyBytes
  if (path.startsWith('/v1/replay')) return MAX_REPLAY_BYTES
  if (path.startsWith('/v1/erasure')) return MAX_ERASURE_BYTES
  if (path.startsWith('/v1/act')) return MAX_ACT_BYTES
  return KILLING.test(path) ? MAX_KILL_MESSAGE_BYTES : limits.statementBytes
}
