import { steadyWall, type Clock } from '../../../shared/clock.ts'
import { secretsNotKept } from '../secrets/secrets-not-kept.ts'
import { ClusterLost, type RemoteAnswer } from '../../clusters/relay/relay-port.ts'
import type { RelayedPage } from '../../clusters/relay/sealed-address.ts'
import { SingleFetch } from '../../clusters/relay/single-fetch.ts'
import { explainedAnswer } from './explained-answer.ts'
import { isBesideLog, type ResultPageSource } from './result-page-source.ts'
import type { QueryId, TaskId } from '../../../shared/ids.ts'
import { changesAtCluster } from '../stream/remote-routed.ts'
import type { EndedQuery, KnownQuery } from '../stream/state.ts'
import { lookUpMs, timely } from './still-writing.ts'
import {
  failedAnswer,
  lastAnswer,
  lostPageFailure,
  pageAnswer,
  statusAnswer,
  type StatementAnswer,
  type StatementView,
} from './statement-answer.ts'

export interface PastAnswersDeps {
  readonly clock: Clock
  readonly pages: ResultPageSource
  /** Later than this after its end a client gets "no such query", milliseconds. */
  readonly answersKeptMs: number
  /** Asks the cluster that ran a statement for a page again; undefined where no clusters are configured. */
  readonly fetchAgain: FetchAgain | undefined
}

/** The first page of the last attempt at a statement: the client's address does not carry it. */
interface FirstPage extends Omit<RelayedPage, 'uri'> {
  /** The task at the cluster, and its first address there, sealed. */
  readonly first: { readonly taskId: TaskId; readonly sealedUri: string }
}

type PastPage = RelayedPage | FirstPage

/** @throws ClusterLost also for a cluster that is no longer configured */
export type FetchAgain = (page: PastPage, signal: AbortSignal) => Promise<RemoteAnswer>

/** Answers from the log about a query that ended before this process started, or that has left its memory. */
export type PastAnswers = (query: EndedQuery, asked: AskedPastPage, waitMs: number) => Promise<StatementAnswer>

/** A page of a result, and the page at a cluster that the client's address carries. */
export interface AskedPastPage {
  readonly token: number
  readonly relayed: RelayedPage | undefined
}

export function createPastAnswers({ clock, pages, answersKeptMs, fetchAgain }: PastAnswersDeps): PastAnswers {
  const again = fetchAgain && createPastFetches(fetchAgain)
  const wall = steadyWall(clock)
  const begunMs = clock.monotonicMs()
  /**
   * Counts from this process's start at the earliest: the wall clock may have jumped between the query's end and then.
   */
  const isForgotten = (endedAt: string): boolean =>
    Math.min(wall() - Date.parse(endedAt), clock.monotonicMs() - begunMs) > answersKeptMs

  return async (query, { token, relayed }, waitMs) => {
    if (isForgotten(query.endedAt)) return { kind: 'unknown' }
    const view: StatementView = { query, liveStats: new Map(), queuedReason: undefined }
    if (query.kind === 'FAILED') return failedAnswer(view, query.failure)
    if (query.planned?.route === 'delegated') return answerAgain(view, { token, relayed }, waitMs, again)
    if (token < query.delivered) return { kind: 'gone' }
    if (token > query.pages.length || (token === query.pages.length && token > 0)) return { kind: 'unknown' }
    // Without these headers the client would continue with an incomplete session.
    if (query.created.redacted && query.finished.responseHeaders.length > 0) {
      const forgetful = { ...query, finished: { ...query.finished, responseHeaders: [] } }
      return failedAnswer({ ...view, query: forgetful }, secretsNotKept().toFailure(), false)
    }
    const record = query.pages[token]
    if (!record) return lastAnswer(view, undefined)
    // A page that is unreadable now is not lost: the page source itself decides that, in time.
    const reading = pages.read(query, token, undefined)
    const bytes = await (isBesideLog(query, token) ? timely(reading, lookUpMs(waitMs)) : reading)
    if (bytes === 'lost') return failedAnswer(view, lostPageFailure(token))
    const page = { token, bytes, rows: record.rows }
    return token === query.pages.length - 1 ? lastAnswer(view, page) : pageAnswer(view, page)
  }
}

function firstPage({ tasks }: KnownQuery): FirstPage | undefined {
  const task = [...tasks.values()].findLast(({ remote }) => remote !== undefined)
  if (!task?.remote) return undefined
  const first = { taskId: task.taskId, sealedUri: task.remote.uri }
  return { attempt: task.attempt, cluster: task.remote.cluster, rowsSent: false, first }
}

type PastFetches = (
  queryId: QueryId,
  page: PastPage,
  token: number,
  waitMs: number,
) => Promise<RemoteAnswer | 'passed' | undefined>

/** Fetches pages of ended statements: for one statement only one at a time. */
function createPastFetches(fetchAgain: FetchAgain): PastFetches {
  const fetches = new Map<QueryId, SingleFetch<{ readonly token: number; readonly page: PastPage }>>()
  return (queryId, page, token, waitMs) => {
    const fetch =
      fetches.get(queryId) ??
      new SingleFetch({
        cluster: page.cluster,
        fetch: (asked, signal) => fetchAgain(asked.page, signal),
        onIdle: () => void fetches.delete(queryId),
      })
    fetches.set(queryId, fetch)
    return fetch.take({ token, page }, waitMs)
  }
}

/**
 * The answer of a delegated statement that has ended: its client lost the answer, or the coordinator died before it sent
 * it. The cluster repeats its last answers for a while.
 */
async function answerAgain(
  view: StatementView,
  { token, relayed }: AskedPastPage,
  waitMs: number,
  again: PastFetches | undefined,
): Promise<StatementAnswer> {
  const first = firstPage(view.query)
  const page = relayed && relayed.attempt === first?.attempt ? relayed : first
  if (!page || !again) return failedAnswer(view, lostPageFailure(token))
  try {
    const answer = await again(view.query.queryId, page, token, waitMs)
    if (!answer) return statusAnswer(view, token)
    if (answer === 'passed') return { kind: 'gone' }
    const { head, headers, data, tail } = explainedAnswer(answer, view.query.planned?.routed)
    tail.catch(() => {})
    const { nextUri } = head
    const rowsSent = page.rowsSent || data !== undefined
    return {
      kind: 'relayed',
      query: view.query,
      next: nextUri && { attempt: page.attempt, cluster: page.cluster, uri: nextUri, rowsSent },
      cancelableStage: undefined,
      columns: head.columns,
      headers,
      data,
      tail,
    }
  } catch (error) {
    if (!(error instanceof ClusterLost)) throw error
    if (error.reason === 'passed') return { kind: 'gone' }
    // The cluster may be back soon: until then the client gets the state.
    if (error.retry === 'later') throw error
    // A change has no rows to lose.
    return changesAtCluster(view.query.planned?.routed)
      ? lastAnswer(view, undefined)
      : failedAnswer(view, lostPageFailure(token))
  }
}
