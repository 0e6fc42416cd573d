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
import type { RelayedPage } from '../../clusters/relay/sealed-address.ts'
import type { RelayedQueryAnswer, RemoteAnswers, RemotePoll } from '../registry/remote-answers.ts'
import type { ResponseHeader } from '../session/session-headers.ts'
import type { RelayedWork } from './remote-stats.ts'

/** The last answer of a cluster, whole. */
export interface RemoteEnd {
  readonly answer: RemoteAnswer
  readonly rows: Buffer | undefined
  readonly tail: RemoteTail
}

/** How one attempt at a cluster ended. */
export type RemoteOutcome =
  | { readonly kind: 'done'; readonly end: RemoteEnd }
  | { readonly kind: 'failed'; readonly error: RemoteError }
  | { readonly kind: 'lost'; readonly error: ClusterLost; readonly rowsSent: boolean }

export interface RemoteRunDeps {
  readonly relay: Pick<RelayPort, 'fetch' | 'keepAlive'>
  readonly clock: Pick<Clock, 'now'>
  /** Called with the newest figures of the cluster. */
  readonly onStats: (work: RelayedWork) => void
  /** Called once with an address by which a successor can keep the query alive. */
  readonly onExecuting: (uri: RemoteUri) => void
}

/** One attempt at a cluster: the statement is posted there, and its client fetches the answers through this object. */
export interface RemoteAttempt {
  readonly cluster: Cluster
  /** From 0 on. */
  readonly attempt: number
  /** The first address: the client's address of this server does not carry it. */
  readonly firstUri: RemoteUri
  /** An `executing` address that an earlier coordinator recorded. */
  readonly aliveUri: RemoteUri | undefined
}

/**
 * Passes the answers of a cluster on to the client of a delegated statement. Each poll of the client is one request at
 * the cluster: this object never reads ahead, because Trino forgets page n once n+1 is asked for.
 *
 *     poll ─► fetch ─┬─ has nextUri ──► the answer, streamed ─► the client's next poll
 *                    ├─ is the last ──► read whole ─► `outcome` ─► its end is recorded ─► the answer
 *                    └─ lost ─────────► `outcome`: begun again elsewhere, or failed
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

  /** Resolves when the attempt has ended; the caller then records the end, and calls `recorded`. */
  get outcome(): Promise<RemoteOutcome> {
    return this.#outcome.promise
  }

  /** The newest address, by which the query at the cluster is canceled. */
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

  /** Lets the last answer out: the end of the query is valid. */
  recorded(): void {
    this.#recorded.resolve()
  }

  /** Stops: nothing more is asked of the cluster. */
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
    // Only one request for a page is under way: the cluster may take longer than the client waits for one answer.
    if (this.#pending?.token !== token) this.#pending = { token, answer: this.#fetch(page) }
    const { answer: pending } = this.#pending
    let answered = false
    this.#waiting++
    try {
      if (!(await settlesWithin(pending.then(nothing), waitMs))) return undefined
      // An answer can be read once: two requests for the same page are two requests at the cluster.
      const isTaken = this.#pending?.answer !== pending
      if (!isTaken) this.#pending = undefined
      const answer = await (isTaken ? this.#fetch(page) : pending)
      answered = true
      return await this.#pass(asked, page, answer)
    } catch (error) {
      // The query has ended, and its state is the answer.
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

  /** The page of a poll. An address of an earlier attempt, which sent no rows, is answered from the beginning. */
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

  /** Reads the last answer whole: the end of the query is recorded before the client learns of it. */
  async #end(asked: RemotePoll, answer: RemoteAnswer): Promise<RelayedQueryAnswer | undefined> {
    const parts: Buffer[] = []
    // The tail is waited for below; a break is reported by both.
    answer.tail.catch(() => {})
    let bytes = 0
    for await (const part of answer.data ?? []) {
      bytes += part.length
      if (bytes > MOST_LAST_BYTES)
        throw new ClusterLost(
          this.#attempt.cluster.name,
          'nonsense',
          `its last answer has more than ${MOST_LAST_BYTES} bytes`,
        )
      parts.push(part)
    }
    const tail = await answer.tail
    // Another request for the same page was faster.
    if (this.#over) return undefined
    this.#count(tail)
    this.stop()
    if (tail.error) {
      this.#settle({ kind: 'failed', error: tail.error })
      return undefined
    }
    const end: RemoteEnd = { answer, rows: answer.data && Buffer.concat(parts), tail }
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

  /** Trino keeps a running query alive by any of its `executing` addresses, but a queued one only by its newest. */
  #moved(nextUri: RemoteUri): void {
    const isExecuting = nextUri.includes('/executing/')
    if (isExecuting && this.#hasExecuted) return
    this.#aliveUri = nextUri
    if (!isExecuting) return
    this.#hasExecuted = true
    this.#deps.onExecuting(nextUri)
  }

  /** Tells the cluster from time to time that the client still lives, while the client asks for nothing. */
  #keepAlive(): void {
    clearTimeout(this.#beat)
    const { cluster } = this.#attempt
    this.#beat = setTimeout(() => {
      if (this.#signal.aborted) return
      // A cluster that does not answer now is asked again; the client's next poll finds out whether it is lost.
      this.#deps.relay.keepAlive(cluster, this.#aliveUri).catch(() => {})
      this.#keepAlive()
    }, cluster.clientTimeoutMs / 3)
    this.#beat.unref()
  }
}

/** The most bytes of a last answer, which is held in memory. Trino's pages have 128 MiB at most, and 1 MiB by default. */
const MOST_LAST_BYTES = 128 * 1024 * 1024

function nothing(): void {}

async function* asStream(rows: Buffer): AsyncGenerator<Buffer> {
  yield rows
}
