import type { TaskStats } from '../../../execution/api/task.ts'
import type { Failure } from '../../../shared/engine-error.ts'
import type { HeldMemory } from '../../dispatch/statement-memory.ts'
import type { QueryId, TaskId } from '../../../shared/ids.ts'
import type { FrontEndTimes } from '../../../sql/front-end.ts'
import type { ConnectorCall } from '../statistics/connector-calls.ts'
import type { EndedBy, QueryEventOf } from '../stream/events.ts'
import type { QueryAggregate } from '../stream/query-aggregate.ts'
import type { PostedStatement } from '../secrets/query-secrets.ts'
import type { ResponseHeader } from '../session/session-headers.ts'
import type { LiveQuery } from '../stream/state.ts'
import type { RemoteAnswers } from './remote-answers.ts'
import type { QueryTotals } from '../statistics/totals.ts'

/** An accepted statement. */
export interface Submission extends PostedStatement {
  /** Its part of the memory of all open statements; released when it has ended. */
  readonly held: HeldMemory
}

/** A query of this coordinator, from its POST until the coordinator drops it from memory. */
export interface QueryExecution {
  readonly queryId: QueryId
  readonly aggregate: QueryAggregate
  /** Newest figures of running tasks, by task id. */
  readonly liveStats: ReadonlyMap<TaskId, TaskStats>
  readonly queuedReason: string | undefined
  /** Times of the front end's steps, once they are done; only this process knows them. */
  readonly times: FrontEndTimes | undefined
  /** Calls to connectors, of a traced query; only this process knows them. */
  readonly calls: readonly ConnectorCall[]
  /** Response headers that the client is to remember, complete; the event has them without secrets. */
  readonly responseHeaders: readonly ResponseHeader[] | undefined
  /** Resolves when QueryCreated is valid; rejects when it never will be. */
  readonly created: Promise<void>
  /** Resolves when the plan, or the failure, is known. */
  readonly planKnown: Promise<void>
  /** Clients passed the tokens below this one before this coordinator took the query over. */
  readonly firstToken: number
  /** Bytes of this process's memory that the query holds, about; after its end, the bytes that it held until then. */
  readonly bytes: number
  /** The answers of the cluster that runs the statement; undefined for statements that run here. */
  readonly remote: RemoteAnswers | undefined
  /** Whether a client has ever asked for a nextUri of the query. */
  readonly followed: boolean
  /** Notes that the client follows: statements that change anything continue now. */
  follow(): void
  /** Increases with every change that an answer should show. */
  readonly revision: number
  /** Resolves when there is something newer than revision `since`, or after `ms`. */
  news(since: number, ms: number): Promise<void>
  /** The bytes of a page, if they happen to be in memory. */
  pageInMemory(token: number): Buffer | undefined
  /** Notes that the client has passed all pages before this token. */
  acknowledge(before: number): void
  /** Appends QueryFinished: the client has received the last page. Resolves when the event is valid. */
  finish(): Promise<void>
  /** Cancels the query. Resolves when QueryFailed with USER_CANCELED is valid, or the query had ended. */
  cancel(): Promise<void>
  /** Fails the query like `cancel`, with any failure. @param endedBy the user that ends it from outside */
  fail(failure: Failure, endedBy?: EndedBy): Promise<void>
  /**
   * Keeps a waiting query from starting until it is released. Resolves when the event is valid.
   * @returns false where the query does not wait, or another act holds it, or this act held it before
   */
  hold(data: QueryEventOf<'QueryHeld'>['data']): Promise<boolean>
  /** Lets a held query start once there is a slot. @returns false where this act did not release it */
  release(data: QueryEventOf<'QueryReleased'>['data']): Promise<boolean>
  /** Drops batches of the stage that have not begun; the query continues with the rows that it has. */
  cancelStage(stage: number): Promise<void>
  totals(): QueryTotals | undefined
  recordDelivery(token: number, rows: number, bytes: number): void
  recordLoss(token: number, reason: string): void
  /**
   * Stops without an end: this process stops, so it answers and undoes nothing more, and the next coordinator
   * continues.
   */
  suspend(): void
  /** Frees what the query holds, after its end. */
  dispose(): void
}

/** A query that another coordinator left open: its stream as far as it is valid, QueryRecovered included. */
export interface Resumption {
  readonly state: LiveQuery
  readonly sequence: number
  readonly held: HeldMemory
}
