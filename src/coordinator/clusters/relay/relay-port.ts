import { QuipuError, type Retry } from '../../../shared/quipu-error.ts'
import type { ResponseHeader } from '../../query/session/session-headers.ts'
import type { HoldBytes } from './counted-bytes.ts'
import type { RemoteFigures } from './remote-figures.ts'

declare const brand: unique symbol

/**
 * Path and query of an address at a cluster; the origin is the cluster's `url`. The address alone is enough to read the
 * rows, so it is never logged, and leaves this process only in sealed form.
 */
export type RemoteUri = string & { readonly [brand]: 'RemoteUri' }

/** The parts of a cluster that requests to it need. */
export interface RelayTarget {
  readonly name: string
  readonly url: URL
  /** Request headers that authenticate this gateway. Read for each request, so that their files may be replaced. */
  readonly credentials: () => Promise<Readonly<Record<string, string>>>
  /** Certificates (PEM); undefined: the public authorities, and no certificate of this gateway. */
  readonly tls: { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer } | undefined
  /** The cluster ends a query whose client sends no request for this time, milliseconds. */
  readonly clientTimeoutMs: number
}

/** A statement for a cluster. */
export interface RemoteStatement {
  readonly sql: string
  /** The user that the statement runs as at the cluster; undefined: the user of the gateway's credentials. */
  readonly user: string | undefined
  /** `X-Trino-…` headers of the session, and those of the trace. Values are texts; the relay encodes them. */
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Requests to clusters: HTTP and Trino's protocol, and nothing else. Trino does not start a statement at its POST, but
 * at the first GET. Trino repeats the answer of token n, byte for byte, until a request for token n+1 begins. Therefore
 * a caller never fetches two tokens of a query at the same time, and never fetches a page before its client has the
 * page before it.
 */
export interface RelayPort {
  /**
   * Posts a statement. Trino does not start it yet.
   * @throws ClusterLost; the caller may then post the statement to another cluster
   */
  post(
    cluster: RelayTarget,
    statement: RemoteStatement,
    signal: AbortSignal,
  ): Promise<{ readonly remoteId: string; readonly uri: RemoteUri }>
  /**
   * Fetches the answer at an address. Repeats the request for a while if the cluster does not answer.
   * @param hold counts the memory of the answer besides its rows; undefined: it is not counted
   * @throws ClusterLost; the errors of `hold`
   */
  fetch(cluster: RelayTarget, uri: RemoteUri, signal: AbortSignal, hold?: HoldBytes): Promise<RemoteAnswer>
  /**
   * Tells the cluster that the client is still there. Any address of a running query works, even an old one.
   * @returns `unknown` when the cluster no longer knows the address
   * @throws ClusterLost when there is no answer
   */
  keepAlive(cluster: RelayTarget, uri: RemoteUri): Promise<'alive' | 'unknown'>
  /**
   * Ends the query of an address. Resolves once the cluster has ended it or does not know it.
   * @throws ClusterLost when the cluster refuses, or has not answered for so long that it has abandoned the query
   */
  cancel(cluster: RelayTarget, uri: RemoteUri): Promise<void>
  /**
   * Resolves with the figures of a query; undefined when this gateway may not see them, or the cluster no longer knows
   * the query.
   * @throws ClusterLost when there is no answer
   */
  figures(cluster: RelayTarget, remoteId: string): Promise<RemoteFigures | undefined>
}

/** An answer of a cluster. The members before and after the rows are parsed. The rows are passed on as bytes. */
export interface RemoteAnswer {
  readonly head: RemoteHead
  /** The changes of the session that the client must apply. */
  readonly headers: readonly ResponseHeader[]
  /**
   * The JSON array of the rows as the cluster sent it, from `[` to `]`; undefined where there are no rows. It can be
   * read once. It throws ClusterLost when the answer breaks off. A reader that stops early closes the connection.
   */
  readonly data: AsyncIterable<Buffer> | undefined
  /** Resolves once the answer has been read to its end; rejects when it breaks off or its reader stops early. */
  readonly tail: Promise<RemoteTail>
}

export interface RemoteHead {
  readonly id: string
  /** Absent on the last answer. */
  readonly nextUri?: RemoteUri
  readonly partialCancelUri?: RemoteUri
  readonly columns?: readonly RemoteColumn[]
}

export interface RemoteColumn {
  readonly name: string
  /** Trino's text of the type. */
  readonly type: string
  readonly typeSignature?: unknown
}

export interface RemoteTail {
  /** The members of Trino's `stats`, unchanged. */
  readonly stats: Readonly<Record<string, unknown>>
  readonly error?: RemoteError
  readonly warnings: readonly unknown[]
  readonly updateType?: string
  readonly updateCount?: number
  /** Bytes of the rows as JSON. */
  readonly rowsBytes: number
  /** The number of rows, where the answer is so small that the relay counts them. */
  readonly rows?: number
}

/**
 * The failure of a query at its cluster. The cluster's connectors may use error names that this program does not know.
 */
export interface RemoteError {
  readonly message: string
  readonly errorCode: number
  readonly errorName: string
  readonly errorType: string
  readonly errorLocation?: { readonly lineNumber: number; readonly columnNumber: number }
  /** Types and messages of the causes, without the stacks. */
  readonly failureInfo?: Readonly<Record<string, unknown>>
}

/** A request failed. Neither the message nor any field contains an address of the query. */
export class ClusterLost extends QuipuError {
  readonly retry: Retry
  readonly cluster: string
  readonly reason: ClusterLostReason
  /** How long the cluster asks to wait, milliseconds. */
  readonly retryAfterMs: number | undefined

  constructor(
    cluster: string,
    reason: ClusterLostReason,
    message: string,
    options?: ErrorOptions & { readonly retryAfterMs?: number | undefined },
  ) {
    super(`Cluster ${cluster}: ${message}`, options)
    this.cluster = cluster
    this.reason = reason
    this.retry = RETRY[reason]
    this.retryAfterMs = options?.retryAfterMs
  }
}

/**
 * `unreachable`  no connection, a broken connection, or an answer 429 or 5xx of the cluster or of a proxy before it;
 * `stalled`      no byte came within the deadline;
 * `gone`         404: the cluster does not know the query: it was restarted, or the client was silent for too long;
 * `passed`       410: the client has already asked for a later page;
 * `nonsense`     an answer that is not in Trino's protocol;
 * `refused`      the cluster does not accept the request.
 */
export type ClusterLostReason = 'unreachable' | 'stalled' | 'gone' | 'passed' | 'nonsense' | 'refused'

const RETRY: Readonly<Record<ClusterLostReason, Retry>> = {
  unreachable: 'later',
  stalled: 'later',
  gone: 'anew',
  passed: 'never',
  nonsense: 'never',
  refused: 'never',
}

/** The reader of an answer stopped before the end, so the tail is unknown. The same address may be fetched again. */
export class AnswerNotRead extends QuipuError {
  readonly retry = 'later'

  constructor(cluster: string) {
    super(`Cluster ${cluster}: the reader of its answer stopped before the end`)
  }
}
