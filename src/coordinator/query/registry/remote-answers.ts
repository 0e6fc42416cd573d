import type { RemoteColumn, RemoteTail } from '../../clusters/relay/relay-port.ts'
import type { RelayedPage } from '../../clusters/relay/sealed-address.ts'
import type { ResponseHeader } from '../session/session-headers.ts'
import type { KnownQuery } from '../stream/state.ts'

/** The answer of the cluster that runs the query. Its rows are passed on while they arrive. */
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
  /** The JSON array of the rows, in parts; undefined where there are none. Its reader always begins to read. */
  readonly data: AsyncIterable<Buffer> | undefined
  /**
   * What stands behind the rows. The client gets it, and with it the end of the answer, once this resolves. If it
   * rejects, the answer is cut off, and the client asks for the same page again.
   */
  readonly tail: Promise<RemoteTail>
}

/** A question of the client of a delegated statement for one page. */
export interface RemotePoll {
  readonly query: KnownQuery
  readonly token: number
  /** The page that the client's address carries; undefined for the first one. */
  readonly relayed: RelayedPage | undefined
  readonly waitMs: number
}

/** The answers of the cluster that runs a statement. */
export interface RemoteAnswers {
  /** @returns undefined when there is no answer yet, and the client must ask for the same page again */
  poll(asked: RemotePoll): Promise<RelayedQueryAnswer | { readonly kind: 'gone' } | undefined>
}
