import { setTimeout as sleep } from 'node:timers/promises'
import { settlesWithin } from '../../../shared/deadline.ts'
import { deferred } from '../../../shared/deferred.ts'
import { REMOTE_STAGE } from '../../../planner/query-plan.ts'
import type { Clock } from '../../../shared/clock.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import type { Cluster } from '../../clusters/cluster.ts'
import {
  AnswerNotRead,
  ClusterLost,
  type RelayPort,
  type RemoteAnswer,
  type RemoteError,
  type RemoteTail,
  type RemoteUri,
} from '../../clusters/relay/relay-port.ts'
import type { HoldBytes } from '../../clusters/relay/counted-bytes.ts'
import { readFirst } from '../../clusters/relay/read-first.ts'
import type { RelayedPage } from '../../clusters/relay/sealed-address.ts'
import { SingleFetch } from '../../clusters/relay/single-fetch.ts'
import type { RelayedQueryAnswer, RemoteAnswers, RemotePoll, RemotePolled } from '../registry/remote-answers.ts'
import type { PageMemory } from '../results/page-memory.ts'
import type { ResponseHeader } from '../session/session-headers.ts'
import { FirstAnswers, isQueued, type HeldAnswer } from './first-answers.ts'
import type { RelayedWork } from './remote-stats.ts'

/** The end of one attempt at a cluster. */
export type RemoteOutcome =
  /** The last answer of the cluster was read to its end. */
  | { readonly kind: 'done'; readonly tail: RemoteTail }
  | { readonly kind: 'failed'; readonly error: RemoteError }
  | { readonly kind: 'lost'; readonly error: ClusterLost; readonly rowsSent: boolean }
  /** This server cannot continue, such as without memory for an answer. */
  | { readonly kind: 'stopped'; readonly error: EngineError }

export interface RemoteRunDeps {
  readonly relay: Pick<RelayPort, 'fetch' | 'keepAlive' | 'cancel'>
  readonly clock: Pick<Clock, 'now'>
  /** Keeps the rows of a small last answer. If it drops them, they are fetched again. */
  readonly pages: Pick<PageMemory, 'get' | 'set'>
  /** Called with the newest figures of the cluster. */
  readonly onStats: (work: RelayedWork) => void
  /** Called once, with the first `executing` address: with it a successor can keep the query alive. */
  readonly onExecuting: (uri: RemoteUri) => void
  /** Called when the cluster says that the query has finished; its last answer may still follow. */
  readonly onFinished: (work: RelayedWork) => void
  readonly hold: HoldBytes
}

/** The last answer of the cluster, once it was read to its end. */
interface LastAnswer {
  readonly token: number
  readonly page: RelayedPage
  readonly answer: Pick<RemoteAnswer, 'head' | 'headers'>
  readonly tail: RemoteTail
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
  /** Whether an earlier coordinator may have sent rows: the log does not know it, and a client may repeat a request. */
  readonly mayHaveSent: boolean
  /** Whether the statement only reads: it can run again as long as no rows were sent. */
  readonly readOnly: boolean
}

/**
 * Passes the answers of a cluster on to the client of a delegated statement. Each poll of the client is one request at
 * the cluster, except for the first answers of a read (see `FirstAnswers`). This object reads no rows ahead, because
 * Trino forgets page n when page n+1 is requested.
 *
 *     poll ─► fetch ─┬─ has nextUri ─► the answer, streamed ─► the client's next poll
 *                    ├─ is the last ─► `outcome` ─► the end is recorded ─► the end of the answer
 *                    └─ lost ────────► `outcome`: another attempt, or the query fails
 *
 * The client gets the end of the last answer once the end of the query is recorded. A small last answer is read whole
 * before. The rows of a large one are passed on meanwhile.
 */
export class RemoteRun implements RemoteAnswers {
  readonly #deps: RemoteRunDeps
  readonly #attempt: RemoteAttempt
  readonly #signal: AbortSignal
  readonly #outcome = deferred<RemoteOutcome>()
  /** Resolves once the end of the query is recorded, with whether the query is FINISHED. */
  readonly #recorded = deferred<boolean>()
  readonly #requests: SingleFetch<{ readonly token: number; readonly uri: RemoteUri }>
  #last: LastAnswer | undefined
  /** The answers that are fetched before the client asks for them. */
  #first: FirstAnswers | undefined
  #rowsSent = false
  /** Whether the attempt has ended: its client then waits for the log. */
  #over = false
  #aliveUri: RemoteUri
  /** The newest address that ends a stage of the cluster early. */
  #partialCancelUri: RemoteUri | undefined
  #hasExecuted = false
  #failureInfo: RemoteError['failureInfo']
  #beat: NodeJS.Timeout | undefined
  #work: RelayedWork
  /** The token of the last page that `#work` counts. If a client requests a page again, its rows are not counted twice. */
  #counted = -1
  readonly #headers = new Map<string, ResponseHeader>()

  constructor(deps: RemoteRunDeps, attempt: RemoteAttempt, signal: AbortSignal) {
    this.#deps = deps
    this.#attempt = attempt
    this.#signal = signal
    this.#aliveUri = attempt.aliveUri ?? attempt.firstUri
    this.#hasExecuted = attempt.aliveUri !== undefined
    this.#rowsSent = attempt.mayHaveSent
    const now = deps.clock.now()
    this.#work = {
      createdAt: now,
      endedAt: now,
      pages: 0,
      bytes: 0,
      rows: attempt.mayHaveSent ? undefined : 0,
      stats: {},
    }
    this.#requests = new SingleFetch({
      cluster: attempt.cluster.name,
      signal,
      fetch: ({ uri }, until) => {
        this.#keepAlive()
        return deps.relay.fetch(attempt.cluster, uri, until, deps.hold)
      },
    })
    this.#keepAlive()
  }

  /**
   * Resolves when the attempt has ended. The caller then records the end, and calls `recorded`.
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

  get failureInfo(): RemoteError['failureInfo'] {
    return this.#failureInfo
  }

  /** The changes of the session that the cluster sent. */
  get headers(): readonly ResponseHeader[] {
    return [...this.#headers.values()]
  }

  /**
   * Must be called once the end of the query is valid, or cannot be recorded here.
   * @param isFinished whether the client gets the last answer of the cluster; else it gets the failure of the query
   */
  recorded(isFinished: boolean): void {
    this.#recorded.resolve(isFinished)
  }

  /**
   * Begins to fetch the first answers of a read, before its client asks for them. The caller must not let clients poll
   * this object before the log has the beginning of the attempt.
   */
  begin(): void {
    // At another server than Trino the first answer may have rows.
    if (!isQueued(this.#attempt.firstUri)) return
    const onAnswer = (answer: RemoteAnswer, tail: RemoteTail): void => {
      this.#take(answer)
      this.#count(0, tail)
    }
    this.#first = new FirstAnswers({ requests: this.#requests, onAnswer }, this.#attempt.firstUri)
  }

  /** Stops the messages to the cluster that the client is still there. */
  stop(): void {
    clearTimeout(this.#beat)
  }

  async poll(asked: RemotePoll): Promise<RemotePolled> {
    if (this.#last?.token === asked.token) return this.#repeatLast(asked, this.#last)
    if (this.#over) return undefined
    if (asked.relayed?.rowsSent && !this.#isOwn(asked.relayed)) {
      // A part of the result came from another attempt: it must not begin again.
      const error = new ClusterLost(asked.relayed.cluster, 'gone', 'the statement runs elsewhere by now')
      this.#settle({ kind: 'lost', error, rowsSent: true })
      return undefined
    }
    const page = this.#pageOf(asked)
    let answered = false
    try {
      if (this.#first && !asked.relayed) {
        if (!(await this.#first.areThere(asked.waitMs))) return undefined
        if (this.#first.held) return this.#passHeld(asked, page, this.#first.held)
      }
      const answer = await this.#answerAbout(asked, page)
      if (answer === 'passed') return { kind: 'gone' }
      if (!answer) return undefined
      answered = true
      return await this.#pass(asked, page, answer)
    } catch (error) {
      // The query has ended: the caller answers with its state.
      if (this.#signal.aborted || error instanceof AnswerNotRead) return undefined
      if (error instanceof EngineError) {
        this.#settle({ kind: 'stopped', error })
        return undefined
      }
      if (!(error instanceof ClusterLost)) throw error
      if (error.reason === 'passed') {
        if (!this.#attempt.mayHaveSent || !this.#hasNoRows(page)) return { kind: 'gone' }
        // An earlier coordinator went on from this page, and was killed before its client knew.
        this.#settle({ kind: 'lost', error, rowsSent: false })
        return undefined
      }
      // An answer that broke off is asked for again; the relay says when the cluster is lost.
      if (answered && error.retry === 'later') return undefined
      this.#settle({ kind: 'lost', error, rowsSent: page.rowsSent || this.#rowsSent })
      return undefined
    }
  }

  /**
   * Fetches the answer about a page. A cluster that is no Trino may answer that the page is not there yet, with the
   * same address as nextUri. The client then keeps its address too. If it got another one for the same page, and its
   * request was sent twice, it could get the rows of the page twice.
   * @returns undefined when the page does not come within the time of the poll
   */
  async #answerAbout(asked: RemotePoll, page: RelayedPage): Promise<RemoteAnswer | 'passed' | undefined> {
    const until = performance.now() + asked.waitMs
    for (;;) {
      const left = Math.max(0, until - performance.now())
      const answer = await this.#requests.take({ token: asked.token, uri: page.uri }, left, asked.onRead)
      if (answer === undefined || answer === 'passed' || !isSamePage(page, answer)) return answer
      const tail = await answer.tail.catch((error: unknown) => {
        if (!isPassing(error)) throw error
      })
      if (!tail) return undefined
      this.#take(answer)
      this.#count(asked.token, tail)
      if (performance.now() + SAME_PAGE_PAUSE_MS > until) return undefined
      await sleep(SAME_PAGE_PAUSE_MS)
    }
  }

  async cancelStage(): Promise<boolean> {
    const uri = this.#partialCancelUri
    if (!uri || this.#over) return false
    const canceled = this.#deps.relay.cancel(this.#attempt.cluster, uri)
    canceled.catch(nothing)
    return settlesWithin(canceled, MOST_CANCEL_MS).catch(() => false)
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

  /** Notes what an answer changes. */
  #take({ head, headers }: Pick<RemoteAnswer, 'head' | 'headers'>): void {
    for (const header of headers) this.#headers.set(`${header.header}=${header.value}`, header)
    this.#partialCancelUri = head.partialCancelUri
    if (head.nextUri !== undefined) this.#moved(head.nextUri)
  }

  async #pass(asked: RemotePoll, page: RelayedPage, answer: RemoteAnswer): Promise<RelayedQueryAnswer | undefined> {
    this.#take(answer)
    const { nextUri } = answer.head
    if (nextUri === undefined) return this.#passLast(asked, page, answer)
    const rowsSent = page.rowsSent || answer.data !== undefined
    this.#rowsSent ||= rowsSent
    const tail = answer.tail.then((behind) => {
      this.#count(asked.token, behind)
      return behind
    })
    tail.catch(this.#onCut)
    return { ...relayedAnswer(asked, answer), next: { ...page, uri: nextUri, rowsSent }, tail }
  }

  /** Passes an answer on that was fetched before the client asked for it. */
  #passHeld(asked: RemotePoll, page: RelayedPage, { answer, next }: HeldAnswer): RelayedQueryAnswer {
    return { ...relayedAnswer(asked, answer), next: { ...page, uri: next } }
  }

  /**
   * Whether the client of a read has no rows, although an earlier coordinator may have gone on from this page: the
   * first answers are fetched before the client asks for them. `queued` answers never have rows.
   */
  #hasNoRows({ uri, rowsSent }: RelayedPage): boolean {
    return this.#attempt.readOnly && !rowsSent && isQueued(uri)
  }

  /** Handles a failure while rows are read. If a repeated request cannot succeed either, the attempt is lost. */
  readonly #onCut = (error: unknown): void => {
    if (error instanceof EngineError) this.#settle({ kind: 'stopped', error })
    if (error instanceof ClusterLost && error.retry === 'never') this.#settle({ kind: 'lost', error, rowsSent: true })
  }

  /** The end of the last answer waits for the record. */
  async #passLast(asked: RemotePoll, page: RelayedPage, answer: RemoteAnswer): Promise<RelayedQueryAnswer | undefined> {
    const first = await readFirst(answer, MOST_HELD_BYTES)
    if (first.kind === 'whole') {
      if (first.rows) this.#deps.pages.set(asked.token, first.rows)
      const last = this.#ended(asked, page, answer, first.tail)
      return last && this.#heldLast(asked, last)
    }
    this.#rowsSent = true
    const tail = answer.tail.then(async (behind) => {
      // Without a valid end the client's connection is cut: it requests the page again, and gets the failure.
      const isFinished = this.#ended(asked, page, answer, behind) !== undefined && (await this.#recorded.promise)
      if (!isFinished) throw new AnswerNotRead(page.cluster)
      return behind
    })
    tail.catch(this.#onCut)
    return { ...relayedAnswer(asked, answer), data: first.data, tail }
  }

  /** Ends the attempt, after its last answer was read. @returns undefined when the query has failed */
  #ended(
    { token }: RemotePoll,
    page: RelayedPage,
    { head, headers }: RemoteAnswer,
    tail: RemoteTail,
  ): LastAnswer | undefined {
    this.stop()
    if (this.#over) return this.#last
    this.#count(token, tail)
    if (tail.error) {
      this.#failureInfo = tail.error.failureInfo
      this.#settle({ kind: 'failed', error: tail.error })
      return undefined
    }
    this.#last = { token, page, answer: { head, headers }, tail }
    this.#settle({ kind: 'done', tail })
    return this.#last
  }

  /** Gives the last answer again: from memory, or else from the cluster, which repeats it. */
  async #repeatLast(asked: RemotePoll, last: LastAnswer): Promise<RemotePolled> {
    if (last.tail.rowsBytes === 0 || this.#deps.pages.get(last.token)) return this.#heldLast(asked, last)
    if (!(await this.#isFinished(asked))) return undefined
    try {
      const answer = await this.#requests.take({ token: asked.token, uri: last.page.uri }, asked.waitMs, asked.onRead)
      if (answer === 'passed') return { kind: 'gone' }
      return answer && relayedAnswer(asked, answer)
    } catch (error) {
      if (error instanceof AnswerNotRead || isPassing(error)) return undefined
      if (error instanceof ClusterLost) return { kind: 'lost' }
      throw error
    }
  }

  async #heldLast(asked: RemotePoll, { token, answer, tail }: LastAnswer): Promise<RelayedQueryAnswer | undefined> {
    if (!(await this.#isFinished(asked))) return undefined
    const rows = this.#deps.pages.get(token)
    if (!rows && tail.rowsBytes > 0) return undefined
    return relayedAnswer(asked, { ...answer, data: rows && asStream(rows), tail: Promise.resolve(tail) })
  }

  /** Waits until the end of the query is recorded. */
  async #isFinished({ waitMs }: RemotePoll): Promise<boolean> {
    const isRecorded = await settlesWithin(this.#recorded.promise.then(nothing), waitMs)
    return isRecorded && this.#recorded.promise
  }

  #settle(outcome: RemoteOutcome): void {
    this.#over = true
    this.#outcome.resolve(outcome)
  }

  #count(token: number, { stats, rowsBytes, rows }: RemoteTail): void {
    const { pages, bytes, rows: before } = this.#work
    const endedAt = this.#deps.clock.now()
    this.#work = { ...this.#work, endedAt, stats }
    if (rowsBytes > 0 && token > this.#counted) {
      this.#counted = token
      const sum = before === undefined || rows === undefined ? undefined : before + rows
      this.#work = { ...this.#work, pages: pages + 1, bytes: bytes + rowsBytes, rows: sum }
    }
    this.#deps.onStats(this.#work)
    if (stats['state'] === 'FINISHED') this.#deps.onFinished(this.#work)
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
    if (this.#over) return
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

/** The longest time that a client waits for the end of a stage at a cluster. */
const MOST_CANCEL_MS = 5_000
/** The most bytes of the rows of a last answer that are read before a part of it is passed on. */
const MOST_HELD_BYTES = 64 * 1024

/** The pause before a page is requested again that was not there yet. The cluster has waited for the page before. */
const SAME_PAGE_PAUSE_MS = 5

/** Whether the page is not there yet: the answer has nothing for the client, and names the same page again. */
function isSamePage({ uri }: RelayedPage, { head, headers, data }: RemoteAnswer): boolean {
  return head.nextUri === uri && !data && headers.length === 0
}

/** Whether the same request may succeed later. */
function isPassing(error: unknown): boolean {
  return error instanceof ClusterLost && error.retry === 'later'
}

/** An answer of the cluster without an address that follows. */
function relayedAnswer({ query }: RemotePoll, { head, headers, data, tail }: RemoteAnswer): RelayedQueryAnswer {
  return {
    kind: 'relayed',
    query,
    next: undefined,
    cancelableStage: head.partialCancelUri && REMOTE_STAGE,
    columns: head.columns,
    headers,
    data,
    tail,
  }
}

function nothing(): void {}

async function* asStream(rows: Buffer): AsyncGenerator<Buffer> {
  yield rows
}
