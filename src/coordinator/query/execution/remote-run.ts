import { settlesWithin } from '../../../shared/deadline.ts'
import { deferred } from '../../../shared/deferred.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { Cluster } from '../../clusters/cluster.ts'
import {
  ClusterLost,
  type RelayPort,
  type RemoteAnswer,
  type RemoteError,
  type RemoteTail,
  type RemoteUri,
} from '../../clusters/relay/relay-port.ts'
import { readWhole } from '../../clusters/relay/read-whole.ts'
import type { RelayedPage } from '../../clusters/relay/sealed-address.ts'
import type { RelayedQueryAnswer, RemoteAnswers, RemotePoll } from '../registry/remote-answers.ts'
import type { ResponseHeader } from '../session/session-headers.ts'
import type { RelayedWork } from './remote-stats.ts'

/** The last answer of a cluster, read to its end. */
export interface RemoteEnd {
  readonly answer: RemoteAnswer
  readonly rows: Buffer | undefined
  readonly tail: RemoteTail
}

/** The end of one attempt at a cluster. */
export type RemoteOutcome =
  | { readonly kind: 'done'; readonly end: RemoteEnd }
  | { readonly kind: 'failed'; readonly error: RemoteError }
  | { readonly kind: 'lost'; readonly error: ClusterLost; readonly rowsSent: boolean }

export interface RemoteRunDeps {
  readonly relay: Pick<RelayPort, 'fetch' | 'keepAlive'>
  readonly clock: Pick<Clock, 'now'>
  /** Called with the newest figures of the cluster. */
  readonly onStats: (work: RelayedWork) => void
  /** Called once, with the first `executing` address: with it a successor can keep the query alive. */
  readonly onExecuting: (uri: RemoteUri) => void
}

/** One attempt at a cluster: the statement is posted there, and its client fetches the answers through this object. */
export interface RemoteAttempt {
  readonly cluster: Cluster
  /** From 0 on. */
  readonly attempt: number
  /** The first address at the cluster. The first nextUri of the client does not contain it. */
  readonly firstUri: RemoteUri
  /** An `executing` address that an earlier coordinator recorded. */
  readonly aliveUri: RemoteUri | undefined
}

/**
 * Passes the answers of a cluster on to the client of a delegated statement. Each poll of the client is one request at
 * the cluster. This object never reads ahead, because Trino forgets page n when page n+1 is requested.
 *
 *     poll ─► fetch ─┬─ has nextUri ──► the answer, streamed ─► the client's next poll
 *                    ├─ is the last ──► read whole ─► `outcome` ─► its end is recorded ─► the answer
 *                    └─ lost ─────────► `outcome`: another attempt, or the query fails
 */
export class RemoteRun implements RemoteAnswers {
  readonly #deps: RemoteRunDeps
  readonly #attempt: RemoteAttempt
  readonly #signal: AbortSignal
  readonly #outcome = deferred<RemoteOutcome>()
  /** Resolves once the end of the query is recorded. */
  readonly #recorded = deferred()
  #pending: { readonly token: number; readonly answer: Promise<RemoteAnswer> } | undefined
  #last: { readonly token: number; readonly end: RemoteEnd } | undefined
  /** Polls that wait for an answer of the cluster. */
  #waiting = 0
  #rowsSent = false
  /** Whether the attempt has ended: its client then waits for the log. */
  #over = false
  #aliveUri: RemoteUri
  #hasExecuted = false
  #beat: NodeJS.Timeout | undefined
  #work: RelayedWork
  readonly #headers = new Map<string, ResponseHeader>()

  constructor(deps: RemoteRunDeps, attempt: RemoteAttempt, signal: AbortSignal) {
    this.#deps = deps
    this.#attempt = attempt
    this.#signal = signal
    this.#aliveUri = attempt.aliveUri ?? attempt.firstUri
    this.#hasExecuted = attempt.aliveUri !== undefined
    const now = deps.clock.now()
    this.#work = { createdAt: now, endedAt: now, pages: 0, bytes: 0, stats: {} }
    this.#outcome.promise.catch(() => {})
    this.#recorded.promise.catch(() => {})
    this.#keepAlive()
  }

  /**
   * Resolves when the attempt has ended. The caller then records the end, and after a complete result calls `recorded`.
   */
  get outcome(): Promise<RemoteOutcome> {
    return this.#outcome.promise
  }

  /** An address by which the query at the cluster can be canceled. */
  get uri(): RemoteUri {
    return this.#aliveUri
  }

  get work(): RelayedWork {
    return { ...this.#work, endedAt: this.#deps.clock.now() }
  }

  /** The changes of the session that the cluster sent. */
  get headers(): readonly ResponseHeader[] {
    return [...this.#headers.values()]
  }

  /** Must be called when the end of the query is valid: from then on the last answer is given to the client. */
  recorded(): void {
    this.#recorded.resolve()
  }

  /** Stops the messages to the cluster that the client is still there. */
  stop(): void {
    clearTimeout(this.#beat)
  }

  async poll(asked: RemotePoll): Promise<RelayedQueryAnswer | { readonly kind: 'gone' } | undefined> {
    const { token, waitMs } = asked
    if (this.#last?.token === token) return this.#lastAnswer(asked, this.#last.end)
    if (this.#over) return undefined
    if (asked.relayed?.rowsSent && !this.#isOwn(asked.relayed)) {
      // A part of the result came from another attempt: it must not begin again.
      const error = new ClusterLost(asked.relayed.cluster, 'gone', 'the statement runs elsewhere by now')
      this.#settle({ kind: 'lost', error, rowsSent: true })
      return undefined
    }
    const page = this.#pageOf(asked)
    // A poll may time out before the cluster answers. The next poll of the page then waits for the same request.
    if (this.#pending?.token !== token) this.#pending = { token, answer: this.#fetch(page) }
    const { answer: pending } = this.#pending
    let answered = false
    this.#waiting++
    try {
      if (!(await settlesWithin(pending.then(nothing), waitMs))) return undefined
      // An answer can be read only once. If another poll has taken it, this poll needs a request of its own.
      const isTaken = this.#pending?.answer !== pending
      if (!isTaken) this.#pending = undefined
      const answer = await (isTaken ? this.#fetch(page) : pending)
      answered = true
      return await this.#pass(asked, page, answer)
    } catch (error) {
      // The query has ended: the caller answers with its state.
      if (this.#signal.aborted) return undefined
      if (!(error instanceof ClusterLost)) throw error
      if (error.reason === 'passed') return { kind: 'gone' }
      // An answer that broke off is asked for again; the relay says when the cluster is lost.
      if (answered && error.retry === 'later') return undefined
      this.#settle({ kind: 'lost', error, rowsSent: page.rowsSent || this.#rowsSent })
      return undefined
    } finally {
      this.#waiting--
    }
  }

  /** The page of a poll. An address of an earlier attempt, which sent no rows, gets the first page of this attempt. */
  #pageOf({ relayed }: RemotePoll): RelayedPage {
    const { attempt, cluster, firstUri } = this.#attempt
    if (relayed && this.#isOwn(relayed)) return relayed
    return { attempt, cluster: cluster.name, uri: firstUri, rowsSent: false }
  }

  #isOwn({ attempt, cluster }: RelayedPage): boolean {
    return attempt === this.#attempt.attempt && cluster === this.#attempt.cluster.name
  }

  #fetch({ uri }: RelayedPage): Promise<RemoteAnswer> {
    this.#keepAlive()
    const answer = this.#deps.relay.fetch(this.#attempt.cluster, uri, this.#signal)
    // Reported to the poll that waits for it. A later poll asks again: the cluster may be back by then.
    answer.catch(() => {
      if (this.#waiting === 0 && this.#pending?.answer === answer) this.#pending = undefined
    })
    return answer
  }

  async #pass(asked: RemotePoll, page: RelayedPage, answer: RemoteAnswer): Promise<RelayedQueryAnswer | undefined> {
    for (const header of answer.headers) this.#headers.set(`${header.header}=${header.value}`, header)
    const { nextUri } = answer.head
    if (nextUri === undefined) return this.#end(asked, answer)
    const { attempt, cluster } = this.#attempt
    this.#moved(nextUri)
    const rowsSent = page.rowsSent || answer.data !== undefined
    this.#rowsSent ||= rowsSent
    const tail = answer.tail.then((behind) => {
      this.#count(behind)
      return behind
    })
    tail.catch((error: unknown) => {
      // Nothing that a repetition would mend: the client would be cut off again and again.
      if (error instanceof ClusterLost && error.retry === 'never') this.#settle({ kind: 'lost', error, rowsSent: true })
    })
    return {
      kind: 'relayed',
      query: asked.query,
      next: { attempt, cluster: cluster.name, uri: nextUri, rowsSent },
      // A stage at a cluster cannot be ended early.
      cancelableStage: undefined,
      columns: answer.head.columns,
      headers: answer.headers,
      data: answer.data,
      tail,
    }
  }

  /** Reads the last answer to its end, because the end of the query must be recorded before the client gets it. */
  async #end(asked: RemotePoll, answer: RemoteAnswer): Promise<RelayedQueryAnswer | undefined> {
    const { rows, tail } = await readWhole(this.#attempt.cluster.name, answer, MOST_LAST_BYTES)
    // Another request for the same page was faster.
    if (this.#over) return undefined
    this.#count(tail)
    this.stop()
    if (tail.error) {
      this.#settle({ kind: 'failed', error: tail.error })
      return undefined
    }
    const end: RemoteEnd = { answer, rows, tail }
    this.#last = { token: asked.token, end }
    this.#settle({ kind: 'done', end })
    return this.#lastAnswer(asked, end)
  }

  async #lastAnswer(
    { query, waitMs }: RemotePoll,
    { answer, rows, tail }: RemoteEnd,
  ): Promise<RelayedQueryAnswer | undefined> {
    if (!(await settlesWithin(this.#recorded.promise, waitMs))) return undefined
    return {
      kind: 'relayed',
      query,
      next: undefined,
      cancelableStage: undefined,
      columns: answer.head.columns,
      headers: answer.headers,
      data: rows && asStream(rows),
      tail: Promise.resolve(tail),
    }
  }

  #settle(outcome: RemoteOutcome): void {
    this.#over = true
    this.#outcome.resolve(outcome)
  }

  #count({ stats, rowsBytes }: RemoteTail): void {
    const { pages, bytes } = this.#work
    this.#work = {
      ...this.#work,
      pages: pages + (rowsBytes > 0 ? 1 : 0),
      bytes: bytes + rowsBytes,
      endedAt: this.#deps.clock.now(),
      stats,
    }
    this.#deps.onStats(this.#work)
  }

  /**
   * A request to any `executing` address keeps a running query of Trino alive. A queued query needs its newest address.
   */
  #moved(nextUri: RemoteUri): void {
    const isExecuting = nextUri.includes('/executing/')
    if (isExecuting && this.#hasExecuted) return
    this.#aliveUri = nextUri
    if (!isExecuting) return
    this.#hasExecuted = true
    this.#deps.onExecuting(nextUri)
  }

  /** While the client sends no request, reports to the cluster from time to time that the client is still there. */
  #keepAlive(): void {
    clearTimeout(this.#beat)
    const { cluster } = this.#attempt
    this.#beat = setTimeout(() => {
      if (this.#signal.aborted) return
      // If the cluster does not answer now, the next beat tries again. The client's next poll finds out whether the
      // cluster is lost.
      this.#deps.relay.keepAlive(cluster, this.#aliveUri).catch(() => {})
      this.#keepAlive()
    }, cluster.clientTimeoutMs / 3)
    this.#beat.unref()
  }
}

/**
 * The most bytes of a last answer, which is held in memory. Trino's pages have 128 MiB at most, and 1 MiB by default.
 */
const MOST_LAST_BYTES = 128 * 1024 * 1024

function nothing(): void {}

async function* asStream(rows: Buffer): AsyncGenerator<Buffer> {
  yield rows
}
