import { steadyWall, type Clock } from '../../../shared/clock.ts'
import { secretsNotKept } from '../execution/secrets-not-kept.ts'
import type { ResultPageSource } from '../result-page-source.ts'
import type { EndedQuery } from '../state.ts'
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
  /** Who asks later is told of no such query, milliseconds. */
  readonly answersKeptMs: number
}

/** What a client is told of a query that ended before this process, or that it has forgotten: the log knows it. */
export type PastAnswers = (query: EndedQuery, token: number, waitMs: number) => Promise<StatementAnswer>

export function createPastAnswers({ clock, pages, answersKeptMs }: PastAnswersDeps): PastAnswers {
  const wall = steadyWall(clock)
  const begunMs = clock.monotonicMs()
  /** Counted from this process's start at the earliest: the wall clock may have jumped between the end and that. */
  const isForgotten = (endedAt: string): boolean =>
    Math.min(wall() - Date.parse(endedAt), clock.monotonicMs() - begunMs) > answersKeptMs

  return async (query, token, waitMs) => {
    if (isForgotten(query.endedAt)) return { kind: 'unknown' }
    const view: StatementView = { query, liveStats: new Map(), queuedReason: undefined }
    if (query.kind === 'FAILED') return failedAnswer(view, query.failure)
    if (token < query.delivered) return { kind: 'gone' }
    if (token > query.pages.length || (token === query.pages.length && token > 0)) return { kind: 'unknown' }
    // Without them the client would go on with half a session.
    if (query.created.redacted && query.finished.responseHeaders.length > 0) {
      const forgetful = { ...query, finished: { ...query.finished, responseHeaders: [] } }
      return failedAnswer({ ...view, query: forgetful }, secretsNotKept().toFailure(), false)
    }
    const record = query.pages[token]
    if (!record) return lastAnswer(view, undefined)
    // Not to be had now is not lost: that the page source says by itself, in time.
    const reading = pages.read(query, token, undefined)
    const bytes = await (record.kept === 'log' ? timely(reading, lookUpMs(waitMs)) : reading)
    if (bytes === 'lost') return failedAnswer(view, lostPageFailure(token))
    const page = { token, bytes, rows: record.rows }
    return token === query.pages.length - 1 ? lastAnswer(view, page) : pageAnswer(view, page)
  }
}
