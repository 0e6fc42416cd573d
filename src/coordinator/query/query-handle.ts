import type { TaskStats } from '../../execution/api/task.ts'
import type { Failure } from '../../shared/engine-error.ts'
import type { HeldMemory } from '../dispatch/statement-memory.ts'
import type { QueryId, TaskId } from '../../shared/ids.ts'
import type { FrontEndTimes } from '../../sql/front-end.ts'
import type { ConnectorCall } from './connector-calls.ts'
import type { EndedBy, QueryEventOf, QuerySession } from './events.ts'
import type { QueryAggregate } from './query-aggregate.ts'
import type { QuerySecrets } from './query-secrets.ts'
import type { ResponseHeader } from './session-headers.ts'
import type { LiveQuery } from './state.ts'
import type { QueryTotals } from './totals.ts'

/** A statement as it was posted, and what of it is told: `sealedSubmission` makes it. */
export interface PostedStatement {
  /** As typed: what is run. */
  readonly sql: string
  /** As sent: what it is run with. */
  readonly session: QuerySession
  readonly secrets: QuerySecrets
  /** Its secrets taken out. */
  readonly created: QueryEventOf<'QueryCreated'>['data']
}

/** A statement that is accepted. */
export interface Submission extends PostedStatement {
  /** Its part of the memory of all open statements; given back when it has ended. */
  readonly held: HeldMemory
}

/** A query of this coordinator from its POST until it is forgotten. */
export interface QueryExecution {
  readonly queryId: QueryId
  readonly aggregate: QueryAggregate
  /** Newest figures of running tasks, by task id. */
  readonly liveStats: ReadonlyMap<TaskId, TaskStats>
  readonly queuedReason: string | undefined
  /** Steps of the front end, once they are done; this process alone knows of them. */
  readonly times: FrontEndTimes | undefined
  /** What was asked of connectors; of a traced query, and known to this process alone. */
  readonly calls: readonly ConnectorCall[]
  /** What the client is to remember, as it is; the event has it without secrets. */
  readonly responseHeaders: readonly ResponseHeader[] | undefined
  /** Resolves when QueryCreated is valid; rejects when it never will be told. */
  readonly created: Promise<void>
  /** Resolves when the plan, or the failure, is known. */
  readonly planKnown: Promise<void>
  /** Tokens below were passed before this coordinator took the query over. */
  readonly firstToken: number
  /** What it holds of this process's memory, about; once it has ended, what it held until then. */
  readonly bytes: number
  /** Was a nextUri of it ever asked for? */
  readonly followed: boolean
  /** The client follows: statements that change anything go on now. */
  follow(): void
  /** Rises with everything worth telling. */
  readonly revision: number
  /** Resolves when there is something newer than revision `since`, or after `ms`. */
  news(since: number, ms: number): Promise<void>
  /** Bytes of a page that happen to be in memory. */
  pageInMemory(token: number): Buffer | undefined
  /** The client has passed all pages before this token. */
  acknowledge(before: number): void
  /** The client has the last page in hand: QueryFinished is appended. Resolves when it is valid. */
  finish(): Promise<void>
  /** Resolves when QueryFailed with USER_CANCELED is valid, or the query had ended. */
  cancel(): Promise<void>
  /** The same with any failure. @param endedBy who wants it, from outside */
  fail(failure: Failure, endedBy?: EndedBy): Promise<void>
  /** Batches of the stage that have not begun are dropped; the query goes on with what it has. */
  cancelStage(stage: number): Promise<void>
  totals(): QueryTotals | undefined
  recordDelivery(token: number, rows: number, bytes: number): void
  recordLoss(token: number, reason: string): void
  /** This process stops: nothing is told or undone any more, the next coordinator goes on. */
  suspend(): void
  /** Frees what it holds; the query has ended. */
  dispose(): void
}

/** A query that another coordinator left open: its stream as far as it is valid, QueryRecovered included. */
export interface Resumption {
  readonly state: LiveQuery
  readonly sequence: number
  readonly held: HeldMemory
}
