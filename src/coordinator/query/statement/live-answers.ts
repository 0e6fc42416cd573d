import { LogUnavailable } from '../../../events/event-log.ts'
import { bytesIn, type BodyParts } from '../../../shared/body-parts.ts'
import type { Clock } from '../../../shared/clock.ts'
import { settlesWithin } from '../../../shared/deadline.ts'
import { howToRetry } from '../../../shared/quipu-error.ts'
import type { QueryExecution } from '../query-handle.ts'
import type { QueryRegistry } from '../query-registry.ts'
import type { ResultPageSource } from '../result-page-source.ts'
import { isTerminal, type KnownQuery } from '../state.ts'
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

/** That a page is lost is the end of its query: better later than wrong. */
const CONFIRM_LOSS_MS = 2000

/** Of each query, deliveries are recorded at most so often. */
const DELIVERY_RECORD_MS = 1000

export interface LiveAnswersDeps {
  readonly clock: Clock
  readonly registry: Pick<QueryRegistry, 'touch'>
  readonly pages: ResultPageSource
  readonly stillWriting: StillWriting
}

/** One look at what the valid state of a query has to say about a token. */
interface Poll {
  readonly execution: QueryExecution
  readonly view: StatementView
  readonly token: number
  /** Of the request's time. */
  readonly leftMs: number
}

/**
 * Answers about the queries of this process. A poll looks at the valid state until it has something to say:
 *
 * ```
 * failed ──────────────────────────► its failure
 * token's page is published ───────► the page; the last one once the query's end is valid; a lost one is its end
 * token is behind the last page ───► the end, once it is valid
 * else news, until the time is over ► the state
 * ```
 */
export class LiveAnswers {
  readonly #deps: LiveAnswersDeps
  /** The highest token each query's client asked for: it has all pages before. */
  readonly #asked = new WeakMap<QueryExecution, number>()
  /** When a delivery was last recorded. */
  readonly #recorded = new WeakMap<QueryExecution, number>()

  constructor(deps: LiveAnswersDeps) {
    this.#deps = deps
  }

  /** Waits for something new at most `waitMs`. */
  async poll(execution: QueryExecution, token: number, waitMs: number): Promise<StatementAnswer> {
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
          : await this.#answerPoll({ execution, view: viewOf(execution, query), token, leftMs })
      if (answer) return answer
      if (leftMs <= 0) return statusOf(execution, token)
      await execution.news(revision, leftMs)
    }
  }

  /** @returns undefined when only waiting helps */
  async #answerPoll(at: Poll): Promise<StatementAnswer | undefined> {
    const { view, token, leftMs } = at
    const { query } = view
    if (query.kind === 'FAILED') return failedAnswer(view, query.failure)
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
    // It is published: it will be there again, or is lost; status until then.
    if (bytes === 'away') return leftMs <= 0 ? statusOf(execution, token) : undefined
    if (bytes === 'lost') return this.#answerLoss(at)
    const page = { token, bytes, rows }
    if (isComplete(view.query) && token >= view.query.pages.length - 1) return answerEnd(at, page)
    this.#recordDelivery(execution, page)
    return pageAnswer(view, page)
  }

  /** `away`: its worker or the log. */
  async #bytesOf({ execution, view: { query }, token, leftMs }: Poll): Promise<BodyParts | 'lost' | 'away'> {
    try {
      const reading = this.#deps.pages.read(query, token, execution.pageInMemory(token))
      // A worker may take its time with a large page; what is beside the log comes at once, or the log is away.
      return await (query.pages[token]?.kept === 'log' ? timely(reading, lookUpMs(leftMs)) : reading)
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

  /** Not waited for, not for every page, and only where a restart could otherwise not know. */
  #recordDelivery(execution: QueryExecution, { token, rows, bytes }: AnswerPage): void {
    const now = this.#deps.clock.monotonicMs()
    if (now - (this.#recorded.get(execution) ?? -Infinity) < DELIVERY_RECORD_MS) return
    this.#recorded.set(execution, now)
    execution.recordDelivery(token, rows, bytesIn(bytes))
  }
}

/** The result's last answer: told when the query's end is valid. */
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

function viewOf({ liveStats, queuedReason }: QueryExecution, query: KnownQuery): StatementView {
  return { query, liveStats, queuedReason }
}

/** No page will follow. */
function isComplete(query: KnownQuery): boolean {
  return query.resultComplete || (query.kind === 'FINISHED' && query.pages.length === 0)
}

type Finished = Extract<KnownQuery, { kind: 'FINISHED' }>

/** The log has what the client is to remember without its secrets. */
function forClient({ responseHeaders }: QueryExecution, query: Finished): Finished {
  return responseHeaders ? { ...query, finished: { ...query.finished, responseHeaders: [...responseHeaders] } } : query
}
