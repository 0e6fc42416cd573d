import type { TaskStats } from '../../../execution/api/task.ts'
import type { BodyParts } from '../../../shared/body-parts.ts'
import { failureOf, type Failure } from '../../../shared/engine-error.ts'
import type { KnownQuery } from '../state.ts'
import type { TaskId } from '../../../shared/ids.ts'

/** What a client is told of a query at one token. */
export type StatementAnswer = QueryAnswer | { readonly kind: 'gone' } | { readonly kind: 'unknown' }

export interface QueryAnswer extends StatementView {
  readonly kind: 'answer'
  /** What the answer's nextUri counts to; absent on the last one. */
  readonly nextToken: number | undefined
  readonly page: AnswerPage | undefined
  /** The query's failure, or that of a page that is lost. */
  readonly failure: Failure | undefined
  /** No such answer may change any more: asked again, it is the same to the byte. */
  readonly settled: boolean
}

/** What every answer about a query has. */
export interface StatementView {
  readonly query: KnownQuery
  readonly liveStats: ReadonlyMap<TaskId, TaskStats>
  readonly queuedReason: string | undefined
}

export interface AnswerPage {
  readonly token: number
  readonly bytes: BodyParts
  readonly rows: number
}

/** How a query stands while there is nothing new at `token`: the same is asked again. */
export function statusAnswer(view: StatementView, token: number): QueryAnswer {
  return { kind: 'answer', ...view, nextToken: token, page: undefined, failure: undefined, settled: false }
}

export function pageAnswer(view: StatementView, page: AnswerPage): QueryAnswer {
  return { kind: 'answer', ...view, nextToken: page.token + 1, page, failure: undefined, settled: true }
}

/** The last answer of a result, with its last page where it has one. */
export function lastAnswer(view: StatementView, page: AnswerPage | undefined): QueryAnswer {
  return { kind: 'answer', ...view, nextToken: undefined, page, failure: undefined, settled: true }
}

/** The last answer when nothing comes of the rest, or of all. */
export function failedAnswer(view: StatementView, failure: Failure, settled = true): QueryAnswer {
  return { kind: 'answer', ...view, nextToken: undefined, page: undefined, failure, settled }
}

export function lostPageFailure(token: number): Failure {
  return failureOf('PAGE_TRANSPORT_ERROR', `Page ${token} of the result is lost`)
}
