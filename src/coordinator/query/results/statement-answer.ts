import type { TaskStats } from '../../../execution/api/task.ts'
import type { BodyParts } from '../../../shared/body-parts.ts'
import { failureOf, type Failure } from '../../../shared/engine-error.ts'
import type { KnownQuery } from '../stream/state.ts'
import type { TaskId } from '../../../shared/ids.ts'
import type { RemoteError } from '../../clusters/relay/relay-port.ts'
import type { RelayedQueryAnswer } from '../registry/remote-answers.ts'

/** The answer to a client about a query at one token. */
export type StatementAnswer =
  | QueryAnswer
  | RelayedQueryAnswer
  | { readonly kind: 'gone' }
  | { readonly kind: 'unknown' }

export interface QueryAnswer extends StatementView {
  readonly kind: 'answer'
  /** The token of the answer's nextUri; absent on the last one. */
  readonly nextToken: number | undefined
  readonly page: AnswerPage | undefined
  /** The query's failure, or that of a lost page. */
  readonly failure: Failure | undefined
  /** True when this answer is final: a repeated request gets the same bytes. */
  readonly settled: boolean
}

/** The data that every answer about a query has. */
export interface StatementView {
  readonly query: KnownQuery
  readonly liveStats: ReadonlyMap<TaskId, TaskStats>
  readonly queuedReason: string | undefined
  /** The cluster's error with its causes, while this process knows it. */
  readonly failureInfo?: RemoteError['failureInfo']
  /** Whether the statement ends the transaction of its client, even if the statement fails. */
  readonly clearsTransaction?: boolean
}

export interface AnswerPage {
  readonly token: number
  readonly bytes: BodyParts
  readonly rows: number
}

/** The state of a query while there is nothing new at `token`: the client asks for the same token again. */
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

/** The last answer when the rest of the result, or all of it, will not come. */
export function failedAnswer(view: StatementView, failure: Failure, settled = true): QueryAnswer {
  return { kind: 'answer', ...view, nextToken: undefined, page: undefined, failure, settled }
}

export function lostPageFailure(token: number): Failure {
  return failureOf('PAGE_TRANSPORT_ERROR', `Page ${token} of the result is lost`)
}
