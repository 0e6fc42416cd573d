import type { RemoteColumn, RemoteError, RemoteTail } from '../../clusters/relay/relay-port.ts'
import type { RelayedPage } from '../../clusters/relay/sealed-address.ts'
import type { ResponseHeader } from '../session/session-headers.ts'
import type { KnownQuery } from '../stream/state.ts'

/** One answer of the cluster that runs the query. Its rows are passed on while they arrive. */
export interface RelayedQueryAnswer {
  readonly kind: 'relayed'
  readonly query: KnownQuery
  /** The page that follows, at the next token; undefined on the last answer. */
  readonly next: RelayedPage | undefined
  /** The stage that `partialCancelUri` ends early; undefined where the cluster offers none. */
  readonly cancelableStage: number | undefined
  readonly columns: readonly RemoteColumn[] | undefined
  /** The changes of the session that the client must apply. */
  readonly headers: readonly ResponseHeader[]
  /** The JSON array of the rows, in parts; undefined where there are none. The receiver must begin to read them. */
  readonly data: AsyncIterable<Buffer> | undefined
  /**
   * The members after the rows. Once this resolves, the client gets them and the end of the answer. If it rejects, the
   * connection is cut, and the client requests the same page again.
   */
  readonly tail: Promise<RemoteTail>
}

/** A client's request for one page of a delegated statement. */
export interface RemotePoll {
  readonly query: KnownQuery
  readonly token: number
  /** The page that the client's nextUri contains; undefined in the first request. */
  readonly relayed: RelayedPage | undefined
  readonly waitMs: number
  /** Called when a part of the rows is read. */
  readonly onRead: () => void
}

/**
 * The result of a poll. `gone`: the client has requested a later page. `lost`: the query has finished, and its cluster
 * no longer has the page. Undefined: there is no answer yet, and the client must request the same page again.
 */
export type RemotePolled = RelayedQueryAnswer | { readonly kind: 'gone' | 'lost' } | undefined

/** Gives the answers of the cluster that runs a statement. */
export interface RemoteAnswers {
  /** Types and messages of the causes of the cluster's error, in Trino's form. No event has them. */
  readonly failureInfo: RemoteError['failureInfo']
  poll(asked: RemotePoll): Promise<RemotePolled>
  /**
   * Ends the stage that the last answer allowed to end early. The query continues with the rows that it has.
   * @returns whether the cluster has taken the request
   */
  cancelStage(): Promise<boolean>
}
