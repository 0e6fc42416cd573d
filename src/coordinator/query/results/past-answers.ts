import { steadyWall, type Clock } from '../../../shared/clock.ts'
import { secretsNotKept } from '../secrets/secrets-not-kept.ts'
import { isBesideLog, type ResultPageSource } from './result-page-source.ts'
import type { EndedQuery } from '../stream/state.ts'
import { lookUpMs, timely } from './still-writing.ts'
import {
  failedAnswer,
  lastAnswer,
  lostPageFailure,
  pageAnswer,
  type StatementAnswer,
  type StatementView,
} from './statement-answer.ts'

export interface PastAnswersDeps {
  readonly clock: Clock
  readonly pages: ResultPageSource
  /** Later than this after its end a client gets "no such query", milliseconds. */
  readonly answersKeptMs: number
}

/** Answers from the log about a query that ended before this process started, or that has left its memory. */
export type PastAnswers = (query: EndedQuery, token: number, waitMs: number) => Promise<StatementAnswer>

export function createPastAnswers({ clock, pages, answersKeptMs }: PastAnswersDeps): PastAnswers {
  const wall = steadyWall(clock)
  const begunMs = clock.monotonicMs()
  /**
   * Counts from this process's start at the earliest: the wall clock may have jumped between the query's end and then.
   */
  const isForgotten = (endedAt: string): boolean =>
    Math.min(wall() - Date.parse(endedAt), clock.monotonicMs() - begunMs) > answersKeptMs

  return async (query, token, waitMs) => {
    if (isForgotten(query.endedAt)) return { kind: 'unknown' }
    const view: StatementView = { query, liveStats: new Map(), queuedReason: undefined }
    if (query.kind === 'FAILED') return failedAnswer(view, query.failure)
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
