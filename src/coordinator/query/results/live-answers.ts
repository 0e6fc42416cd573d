import { LogUnavailable } from '../../../events/event-log.ts'
import { bytesIn, type BodyParts } from '../../../shared/body-parts.ts'
import type { Clock } from '../../../shared/clock.ts'
import { settlesWithin } from '../../../shared/deadline.ts'
import { howToRetry } from '../../../shared/quipu-error.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import type { QueryExecution } from '../registry/query-handle.ts'
import type { QueryRegistry } from '../registry/query-registry.ts'
import { isBesideLog, type ResultPageSource } from './result-page-source.ts'
import { CLEAR_TRANSACTION } from '../session/session-headers.ts'
import { isTerminal, type KnownQuery } from '../stream/state.ts'
import type { RelayedPage } from '../../clusters/relay/sealed-address.ts'
import { lookUpMs, timely, type StillWriting } from './still-writing.ts'
import {
  failedAnswer,
  lastAnswer,
  lostPageFailure,
  pageAnswer,
  statusAnswer,
  type AnswerPage,
  type StatementAnswer,
  type StatementView,
} from './statement-answer.ts'

/** A lost page ends its query, so the loss is confirmed for this long before it is reported. */
const CONFIRM_LOSS_MS = 2000

/** Deliveries of one query are recorded at most this often. */
const DELIVERY_RECORD_MS = 1000

export interface LiveAnswersDeps {
  readonly clock: Clock
  readonly registry: Pick<QueryRegistry, 'touch'>
  readonly pages: ResultPageSource
  readonly stillWriting: StillWriting
}

/** One look at the valid state of a query, for the answer about a token. */
interface Poll {
  readonly execution: QueryExecution
  readonly view: StatementView
  readonly token: number
  /** The page at a cluster that the client's nextUri contains. */
  readonly relayed: RelayedPage | undefined
  /** Milliseconds left of the request's time. */
  readonly leftMs: number
}

/**
 * Answers polls about the queries of this process. A poll looks at the valid state until there is an answer:
 *
 * ```
 * failed ──────────────────────────► its failure
 * token's page is published ───────► the page; the last one once the query's end is valid; a lost one is its end
 * token is behind the last page ───► the end, once it is valid
 * else wait for news, then ────────► the state
 * ```
 */
export class LiveAnswers {
  readonly #deps: LiveAnswersDeps
  /** The highest token that each query's client has asked for: the client has all pages before it. */
  readonly #asked = new WeakMap<QueryExecution, number>()
  /** When a delivery was last recorded. */
  readonly #recorded = new WeakMap<QueryExecution, number>()

  constructor(deps: LiveAnswersDeps) {
    this.#deps = deps
  }

  /** Answers a poll; waits for something new at most `waitMs`. */
  async poll(
    execution: QueryExecution,
    token: number,
    waitMs: number,
    relayed?: RelayedPage,
  ): Promise<StatementAnswer> {
    const { clock, registry, stillWriting } = this.#deps
    registry.touch(execution.queryId)
    execution.follow()
    const highest = this.#asked.get(execution) ?? execution.firstToken
    if (token < highest) {
      await stillWriting(waitMs)
      return { kind: 'gone' }
    }
    if (token > highest) {
      this.#asked.set(execution, token)
      execution.acknowledge(token)
    }
    const deadline = clock.monotonicMs() + waitMs
    for (;;) {
      const leftMs = deadline - clock.monotonicMs()
      const { revision } = execution
      const query = execution.aggregate.state
      const answer =
        query.kind === 'NONE'
          ? undefined
          : await this.#answerPoll({ execution, view: viewOf(execution, query), token, relayed, leftMs })
      if (answer) return answer
      if (leftMs <= 0) return statusOf(execution, token)
      await execution.news(revision, leftMs)
    }
  }

  /** @returns undefined when the poll must wait */
  async #answerPoll(at: Poll): Promise<StatementAnswer | undefined> {
    const { view, token, leftMs } = at
    const { query } = view
    if (query.kind === 'FAILED') return failedAnswer(view, query.failure)
    if (query.planned?.route === 'delegated')
      // A client that reads a large page slowly sends no other request meanwhile.
      return answerRemote(at, () => this.#deps.registry.touch(query.queryId))
    if (token < query.pages.length) return this.#answerPage(at)
    if (isComplete(query) && token === query.pages.length) return answerEnd(at, undefined)
    if (query.kind !== 'FINISHED') return undefined
    await this.#deps.stillWriting(lookUpMs(leftMs))
    return { kind: 'unknown' }
  }

  async #answerPage(at: Poll): Promise<StatementAnswer | undefined> {
    const { execution, view, token, leftMs } = at
    const { rows } = view.query.pages[token]!
    const bytes = await this.#bytesOf(at)
    // The page is published: it will be readable again, or is lost. Until then the client gets the status.
    if (bytes === 'away') return leftMs <= 0 ? statusOf(execution, token) : undefined
    if (bytes === 'lost') return this.#answerLoss(at)
    const page = { token, bytes, rows }
    if (isComplete(view.query) && token >= view.query.pages.length - 1) return answerEnd(at, page)
    this.#recordDelivery(execution, page)
    return pageAnswer(view, page)
  }

  /** The bytes of a page. `away`: its worker or the log does not answer now. */
  async #bytesOf({ execution, view: { query }, token, leftMs }: Poll): Promise<BodyParts | 'lost' | 'away'> {
    try {
      const reading = this.#deps.pages.read(query, token, execution.pageInMemory(token))
      // A worker may take long for a large page. A page beside the log comes at once, unless the log is unreachable.
      return await (isBesideLog(query, token) ? timely(reading, lookUpMs(leftMs)) : reading)
    } catch (error) {
      if (howToRetry(error) === 'never') throw error
      return 'away'
    }
  }

  async #answerLoss({ execution, view, token }: Poll): Promise<StatementAnswer> {
    const failure = lostPageFailure(token)
    await this.#deps.stillWriting(CONFIRM_LOSS_MS)
    execution.recordLoss(token, failure.message)
    if (!isTerminal(view.query.kind)) await execution.fail(failure)
    return failedAnswer(viewOf(execution, view.query), failure)
  }

  /**
   * Records a delivery. Not awaited, not for every page, and only where a restarted coordinator could not know
   * otherwise.
   */
  #recordDelivery(execution: QueryExecution, { token, rows, bytes }: AnswerPage): void {
    const now = this.#deps.clock.monotonicMs()
    if (now - (this.#recorded.get(execution) ?? -Infinity) < DELIVERY_RECORD_MS) return
    this.#recorded.set(execution, now)
    execution.recordDelivery(token, rows, bytesIn(bytes))
  }
}

/** The answer of the cluster that runs the statement. Its pages are not in the log. */
async function answerRemote(
  { execution, view, token, relayed, leftMs }: Poll,
  onRead: () => void,
): Promise<StatementAnswer | undefined> {
  const { query } = view
  const answer = await execution.remote?.poll({ query, token, relayed, waitMs: Math.max(0, leftMs), onRead })
  switch (answer?.kind) {
    case undefined:
      return undefined
    case 'lost':
      return failedAnswer(view, lostPageFailure(token), false)
    case 'gone':
      return { kind: 'gone' }
    case 'relayed':
      return answer
    default:
      return unreachable(answer)
  }
}

/** The last answer of the result; it is given once the query's end is valid. */
async function answerEnd(
  { execution, view, leftMs }: Poll,
  page: AnswerPage | undefined,
): Promise<StatementAnswer | undefined> {
  if (view.query.kind === 'FINISHED') return lastAnswer({ ...view, query: forClient(execution, view.query) }, page)
  await settlesWithin(execution.finish(), leftMs)
  const ended = execution.aggregate.state
  return ended.kind === 'FINISHED' ? lastAnswer({ ...view, query: forClient(execution, ended) }, page) : undefined
}

function statusOf(execution: QueryExecution, token: number): StatementAnswer {
  const { intended, state } = execution.aggregate
  const query = intended.kind === 'NONE' || isTerminal(intended.kind) ? state : intended
  if (query.kind === 'NONE') throw new LogUnavailable('the query is not in the log yet')
  return statusAnswer(viewOf(execution, query), token)
}

function viewOf(execution: QueryExecution, query: KnownQuery): StatementView {
  const { liveStats, queuedReason, responseHeaders, remote } = execution
  const clearsTransaction = responseHeaders?.some(({ header }) => header === CLEAR_TRANSACTION.header)
  return {
    query,
    liveStats,
    queuedReason,
    ...(remote?.failureInfo && { failureInfo: remote.failureInfo }),
    ...(clearsTransaction && { clearsTransaction }),
  }
}

/** Whether no page will follow. */
function isComplete(query: KnownQuery): boolean {
  return query.resultComplete || (query.kind === 'FINISHED' && query.pages.length === 0)
}

type Finished = Extract<KnownQuery, { kind: 'FINISHED' }>

/** The log has the response headers without their secrets; the client gets them whole. */
function forClient({ responseHeaders }: QueryExecution, query: Finished): Finished {
  return responseHeaders ? { ...query, finished: { ...query.finished, responseHeaders: [...responseHeaders] } } : query
}
