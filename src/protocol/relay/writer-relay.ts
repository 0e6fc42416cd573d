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
import { MAX_KILL_MESSAGE_BYTES } from '../query/end-query.ts'
import { MAX_REPLAY_BYTES } from '../replay/replay-routes.ts'
import type { StatementRoutes } from '../statement/statement-routes.ts'
import { sendWaiting, type LastKnown } from '../statement/waiting-answer.ts'
import { clientConnection } from '../edge/client-connection.ts'
import {
  sendRelayed,
  logRelayed,
  type RelayedAnswer,
  type RelayedRequest,
  type RelaySender,
  type RelayWriter,
} from './send-relayed.ts'

export interface WriterRelayDeps {
  readonly clock: Clock
  /** The coordinator that writes the log; this one itself once it does. Undefined while nobody does. */
  readonly writer: () => RelayWriter | undefined
  /** The writer was heard of lately: its answer is worth waiting for. */
  readonly writerLives: () => boolean
  /** Whom to believe that it is the writer. */
  readonly trust: ServerTrust
  /** Of the credentials of what is passed on. */
  readonly key: Buffer
  readonly uris: StatementUris
  /** Of queries whose writer does not answer. */
  readonly lastKnown: LastKnown
  readonly checkResults: CheckResults
  /** Bodies count from before they are read until they are answered. */
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
  /** For what only the writer can do; false, having done nothing, for all else. */
  readonly routes: StatementRoutes
  /**
   * Sends something of this coordinator's own to the one that writes, once.
   * @returns its answer, JSON; undefined when it was not taken
   */
  post(path: string, body: unknown): Promise<unknown>
  close(): void
}

/** The writer answers a poll after the long poll's time, and may then read a page. */
const POLL_GRACE_MS = 500
/** No answer takes longer. */
const LONGEST_MS = 15_000
/** A cancel that no writer took in its time is passed on for so long, while the client has its answer. */
const CANCEL_TRIED_FOR_MS = 60_000
/** Cancels that are passed on so at once. */
const MOST_CANCELS = 10_000
const RETRY_MS = 50
const OWN_MS = 5_000

/**
 * Passes statements, and whatever else changes something, on to the coordinator that writes the log. A take-over is a
 * pause: a request is sent again, to whoever writes then. A POST whose answer was lost is repeated as its client would:
 * a statement that nobody follows does nothing.
 */
export function createWriterRelay(deps: WriterRelayDeps): WriterRelay {
  const { clock, limits } = deps
  const http = createHttpClient(deps.trust, { keepAlive: true, maxSockets: 512, noDelay: true })
  /** By how much the clock of a writer is before this one, by its epoch: the newest alone. */
  let ahead = { epoch: 0, milliseconds: 0 }
  const closing = new AbortController()
  let cancels = 0
  const sender: RelaySender = {
    key: deps.key,
    http,
    // What a client is to send again, and what every answer has.
    mostHeadBytes: 2 * limits.headerBytes,
    now: ({ epoch }) => clock.now() + (ahead.epoch === epoch ? ahead.milliseconds : 0),
    onClock: ({ epoch }, now) => (ahead = { epoch, milliseconds: now - clock.now() }),
  }

  /** Until the writer answers, or the time is over while nothing is heard of it. */
  async function ask(
    sent: RelayedRequest,
    waitMs: number,
    gone: AbortSignal,
    longestMs = LONGEST_MS,
  ): Promise<RelayedAnswer | undefined> {
    const start = clock.monotonicMs()
    const over = (): boolean => {
      const passed = clock.monotonicMs() - start
      return gone.aborted || passed > longestMs || (passed > waitMs && !deps.writerLives())
    }
    while (!over()) {
      const writer = deps.writer()
      const answer = writer && (await attempt(writer, sent, gone, over))
      if (answer && !answer.again) return answer
      answer?.rest?.destroy()
      if (clock.monotonicMs() - start > waitMs) return undefined
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
    return undefined
  }

  async function attempt(
    writer: RelayWriter,
    sent: RelayedRequest,
    gone: AbortSignal,
    over: () => boolean,
  ): Promise<RelayedAnswer | undefined> {
    const stop = new AbortController()
    const onGone = (): void => stop.abort()
    gone.addEventListener('abort', onGone, { once: true })
    // A writer that was replaced meanwhile may be stopped and never answer.
    const watch = setInterval(() => (over() || deps.writer()?.epoch !== writer.epoch) && stop.abort(), RETRY_MS)
    try {
      return await sendRelayed(writer, sent, sender, stop.signal)
    } catch {
      return undefined
    } finally {
      clearInterval(watch)
      gone.removeEventListener('abort', onGone)
    }
  }

  /** @returns the request when no writer answered it in time; undefined when the client has its answer */
  async function relay(
    request: IncomingMessage,
    response: ServerResponse,
    waitMs: number,
  ): Promise<RelayedRequest | undefined> {
    const target = requestTarget(request)
    const { address: clientAddress, scheme, authority, confidential } = clientConnection(request)
    const caller = callerOf(request)
    const body = await readHeldBody(request, {
      maxBytes: mostBytes(target.path, limits),
      memory: deps.memory,
      // As whom it acts the writer reads.
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
    const answer = await ask(sent, waitMs, gone.signal).finally(() => body.release())
    response.off('close', onClose)
    if (!answer) return sent
    logRelayed(response, answer)
    return undefined
  }

  /** A cancel does not fail while no writer is there: the client is told that it was taken, and it is passed on later. */
  async function cancel(request: IncomingMessage, response: ServerResponse, path: StatementPath): Promise<void> {
    if (!deps.uris.verifyPage(path)) throw new HttpProblem(404, 'Query not found')
    const unanswered = await relay(request, response, limits.deleteValidityWaitMs)
    if (!unanswered) return
    if (cancels >= MOST_CANCELS) throw noWriter()
    response.writeHead(204, { 'cache-control': 'no-store' }).end()
    cancels++
    const answer = await ask(unanswered, CANCEL_TRIED_FOR_MS, closing.signal, CANCEL_TRIED_FOR_MS)
    cancels--
    answer?.rest?.destroy()
  }

  async function poll(request: IncomingMessage, response: ServerResponse, path: StatementPath): Promise<void> {
    const page = deps.uris.verifyPage(path)
    if (!page) throw new HttpProblem(404, 'Query not found')
    if (!(await relay(request, response, limits.longPollMs + POLL_GRACE_MS))) return
    if (request.method === 'HEAD') return void response.writeHead(200, { 'cache-control': 'no-store' }).end()
    // The query is known by its mac; what it does now is told once somebody writes the log again.
    const waiting = { uris: deps.uris, lastKnown: deps.lastKnown, now: clock.now, checkResults: deps.checkResults }
    await sendWaiting(request, response, waiting, { ...page, base: baseUri(request) })
  }

  return {
    async routes(request, response, path) {
      if (!isWriters(request.method ?? 'GET', path)) return false
      const statement = statementPath(path)
      if (statement && (request.method === 'GET' || request.method === 'HEAD')) {
        await poll(request, response, statement)
        return true
      }
      if (statement && request.method === 'DELETE') {
        await cancel(request, response, statement)
        return true
      }
      const waitMs =
        request.method === 'DELETE' || request.method === 'PUT' ? limits.deleteValidityWaitMs : limits.postLogWaitMs
      if (await relay(request, response, waitMs)) throw noWriter()
      return true
    },
    async post(path, body) {
      const writer = deps.writer()
      if (!writer) return undefined
      const answer = await sendRelayed(
        writer,
        {
          method: 'POST',
          target: { text: path, authority: undefined },
          rawHeaders: ['content-type', 'application/json'],
          body: Buffer.from(JSON.stringify(body)),
          claims: { own: true },
        },
        sender,
        AbortSignal.timeout(OWN_MS),
      ).catch(() => undefined)
      answer?.rest?.destroy()
      return answer?.status === 200 ? parseJson(answer.body.toString('utf8')) : undefined
    },
    close() {
      closing.abort()
      http.close()
    },
  }
}

function noWriter(): HttpProblem {
  return new HttpProblem(503, 'No coordinator writes the event log now', { 'retry-after': '1' })
}

/** Statements, tasks, resource groups, what replays tell of themselves, and what ends a query. */
function isWriters(method: string, path: string): boolean {
  if (/^\/v1\/(statement|stage|task|resourceGroupState|replay)(\/|$)/.test(path)) return true
  return (method === 'DELETE' && path.startsWith('/v1/query/')) || (method === 'PUT' && KILLING.test(path))
}

const KILLING = /^\/v1\/query\/[^/]+\/(?:killed|preempted)\/?$/

function mostBytes(path: string, limits: WriterRelayDeps['limits']): number {
  if (path.startsWith('/v1/task')) return limits.taskBodyBytes
  if (path.startsWith('/v1/replay')) return MAX_REPLAY_BYTES
  return KILLING.test(path) ? MAX_KILL_MESSAGE_BYTES : limits.statementBytes
}
