import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { StatementAnswer, StatementService } from '../../coordinator/query/results/statement-service.ts'
import { CLEAR_TRANSACTION } from '../../coordinator/query/session/session-headers.ts'
import type { KnownQuery } from '../../coordinator/query/stream/state.ts'
import { bytesIn } from '../../shared/body-parts.ts'
import type { Clock } from '../../shared/clock.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { QueryId } from '../../shared/ids.ts'
import type { CheckResults } from '../access/results-guard.ts'
import { acceptsJson } from '../edge/accepts-json.ts'
import { baseUri } from '../edge/base-uri.ts'
import { HttpProblem } from '../edge/problem.ts'
import type { ResultPageAddress, StatementPath, StatementUris } from './next-uri.ts'
import { isPassing } from './passing-error.ts'
import { answerText, relayedHead, relayedTail } from './query-results.ts'
import { sendAnswer, sendStream } from './send-answer.ts'
import { answerHeaders } from './session-headers.ts'
import { createSettledAnswers } from './settled-answers.ts'
import type { StatementSpans } from './statement-spans.ts'
import { sendWaiting, type LastKnown } from './waiting-answer.ts'

export interface PollStatementDeps {
  readonly service: Pick<StatementService, 'poll'>
  readonly uris: StatementUris
  readonly clock: Pick<Clock, 'now'>
  readonly spans: Pick<StatementSpans, 'polled'>
  readonly limits: { readonly longPollMs: number }
  /** The last known state of queries about which the log says nothing now. */
  readonly lastKnown: LastKnown
  readonly checkResults: CheckResults
  /** Called for each page that the coordinator sends to the client, with the number of its rows. */
  readonly onDelivered?: (query: KnownQuery, rows: number) => void
  /** Called with the result of each poll. */
  readonly onPolled?: (result: 'data' | 'empty' | 'last' | 'gone' | 'not_found') => void
}

interface Asked extends ResultPageAddress {
  /** Wall clock, milliseconds. */
  readonly startedAt: number
}

/**
 * Makes the handler of `GET /v1/statement/{queryId}/{token}`: waits a while for the page, and sends it, or the state of
 * the query.
 * @param guard throws HttpProblem for a user who may not have the results; `unknown` while the owner is unknown
 */
export function createPollStatement(
  deps: PollStatementDeps,
  guard: (request: IncomingMessage, queryId: QueryId) => Promise<'granted' | 'unknown'> | 'granted',
): (request: IncomingMessage, response: ServerResponse, path: StatementPath) => Promise<void> {
  const settled = createSettledAnswers()
  const waiting = { uris: deps.uris, lastKnown: deps.lastKnown, now: deps.clock.now, checkResults: deps.checkResults }

  function sendStatementAnswer(
    request: IncomingMessage,
    response: ServerResponse,
    asked: Asked,
    answer: Extract<StatementAnswer, { kind: 'answer' }>,
  ): void {
    const { query, page, nextToken } = answer
    const hasRows = page !== undefined && page.rows > 0
    // An answer that repeats the token must name the same page of the cluster again.
    const relayed = nextToken === asked.token ? asked.relayed : undefined
    const make = () => answerText({ initial: false, relayed, ...answer, now: deps.clock.now() }, deps.uris, hasRows)
    const text = answer.settled ? settled.of(asked, nextToken, make) : make()
    const remembered =
      query.kind === 'FINISHED' ? query.finished.responseHeaders : answer.clearsTransaction ? [CLEAR_TRANSACTION] : []
    const headers = answerHeaders(query.created.headerFamily, remembered)
    sendAnswer(request, response, hasRows ? [text.head, ...page.bytes, text.tail] : [text.head], headers)
    deps.onPolled?.(nextToken === undefined ? 'last' : hasRows ? 'data' : 'empty')
    const bytes = page ? bytesIn(page.bytes) : 0
    deps.spans.polled(request, response, {
      query,
      token: asked.token,
      rows: page?.rows ?? 0,
      bytes: () => bytes,
      startedAt: asked.startedAt,
    })
    if (page) deps.onDelivered?.(query, page.rows)
  }

  /**
   * Passes the answer of a cluster on.
   * @returns false when it failed in a way that passes, before a part of it was sent
   */
  async function sendRelayedAnswer(
    request: IncomingMessage,
    response: ServerResponse,
    asked: Asked,
    answer: Extract<StatementAnswer, { kind: 'relayed' }>,
  ): Promise<boolean> {
    const { query, data } = answer
    const head = relayedHead(answer, asked.token, deps.uris)
    const headers = answerHeaders(query.created.headerFamily, answer.headers)
    const tail = answer.tail.then(relayedTail)
    let bytes = 0
    const { token, startedAt } = asked
    deps.spans.polled(request, response, {
      query,
      token,
      rows: data ? undefined : 0,
      bytes: () => bytes,
      startedAt,
    })
    try {
      if (data) bytes = await sendStream(request, response, { head, data, tail }, headers)
      else sendAnswer(request, response, [head + (await tail)], headers)
    } catch (error) {
      if (isPassing(error)) return false
      throw error
    }
    deps.onPolled?.(!answer.next ? 'last' : data ? 'data' : 'empty')
    return true
  }

  /** Sends the last known state, at the end of the long poll: a client asks again immediately. */
  async function sendState(
    request: IncomingMessage,
    response: ServerResponse,
    asked: ResultPageAddress,
    startedAt: number,
  ): Promise<void> {
    await sleep(Math.max(0, deps.limits.longPollMs - (deps.clock.now() - startedAt)))
    deps.onPolled?.('empty')
    await sendWaiting(request, response, waiting, { ...asked, base: baseUri(request) })
  }

  /**
   * Polls the query. A GET is never answered by 503: the mac proves that the query exists. Undefined when its state is
   * unknown now.
   */
  async function pollInTime(asked: ResultPageAddress, startedAt: number): Promise<StatementAnswer | undefined> {
    const waitMs = Math.max(0, deps.limits.longPollMs - (deps.clock.now() - startedAt))
    return deps.service.poll(asked.queryId, asked.token, waitMs, asked.relayed).catch((error: unknown) => {
      if (isPassing(error)) return undefined
      throw error
    })
  }

  return async (request, response, path) => {
    const startedAt = deps.clock.now()
    acceptsJson(request)
    const asked = deps.uris.verifyPage(path)
    if (!asked) throw new HttpProblem(404, 'Query not found')
    const guarded = guard(request, asked.queryId)
    const right = guarded === 'granted' ? guarded : await guarded
    const answer = right === 'granted' ? await pollInTime(asked, startedAt) : undefined
    if (!answer) return sendState(request, response, asked, startedAt)
    switch (answer.kind) {
      case 'gone':
        deps.onPolled?.('gone')
        throw new HttpProblem(410, 'The page is gone: the client has already requested a later one')
      case 'unknown':
        deps.onPolled?.('not_found')
        throw new HttpProblem(404, 'Query not found')
      case 'answer':
        return sendStatementAnswer(request, response, { startedAt, ...asked }, answer)
      case 'relayed':
        if (await sendRelayedAnswer(request, response, { startedAt, ...asked }, answer)) return
        return sendState(request, response, asked, startedAt)
      default:
        return unreachable(answer)
    }
  }
}
