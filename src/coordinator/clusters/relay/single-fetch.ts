import { settlesWithin } from '../../../shared/deadline.ts'
import { deferred, type Deferred } from '../../../shared/deferred.ts'
import { AnswerNotRead, type RemoteAnswer } from './relay-port.ts'

export interface SingleFetchDeps<Page> {
  /** The name of the cluster, for errors. */
  readonly cluster: string
  /** Sends the request for a page to the cluster. */
  readonly fetch: (page: Page, signal: AbortSignal) => Promise<RemoteAnswer>
  /** Ends the request that is under way. */
  readonly signal?: AbortSignal
  /** Called when no request is under way any more. */
  readonly onIdle?: () => void
}

interface Fetched {
  readonly token: number
  readonly answer: Promise<RemoteAnswer>
  /** Resolves once the answer was read to its end, or was dropped. */
  readonly over: Deferred
  readonly abort: AbortController
  /** Whether one of the client's requests has the answer. It can be read only once. */
  isTaken: boolean
  /** When a part of the answer was read last, monotonic milliseconds. */
  readAt: number
  /** Ends an answer that no request takes. */
  left: NodeJS.Timeout | undefined
}

/** A reader that took nothing for this long is stopped if the client asks for the page again, milliseconds. */
const SILENT_MS = 500
/** An answer that no request takes is dropped after this time, milliseconds. */
const LEFT_MS = 30_000

/**
 * The requests at a cluster for the pages of one statement. At most one is under way, however many requests the client
 * sends at once: Trino forgets page n when a request for page n+1 begins, and an answer may be large.
 *
 *     the same page    waits until the request before has its answer; an answer that nobody reads is fetched again
 *     a later page     ends the request for the page before: the client has that page
 *     an earlier page  is `passed`
 *     any page         can be fetched before the client asks for it, if the caller has the page before
 */
export class SingleFetch<Page extends { readonly token: number }> {
  readonly #deps: SingleFetchDeps<Page>
  #current: Fetched | undefined
  #highest = -1
  /** The page that was fetched ahead last. */
  #ahead = -1

  constructor(deps: SingleFetchDeps<Page>) {
    this.#deps = deps
  }

  /**
   * Fetches a page, unless its answer is on its way. The caller must read the answer, or close its data.
   * @param waitMs how long to wait for the answer
   * @param onRead called when the caller reads a part of the rows
   * @returns undefined when there is no answer yet, and the request continues: a later call takes its answer. Also when
   * the page after this one was fetched ahead
   * @throws the errors of the request; AnswerNotRead when a later page is asked for meanwhile
   */
  async take(page: Page, waitMs: number, onRead?: () => void): Promise<RemoteAnswer | 'passed' | undefined> {
    const until = performance.now() + waitMs
    for (;;) {
      if (page.token < this.#highest) return 'passed'
      if (page.token < this.#ahead) return undefined
      this.#highest = page.token
      const known = this.#current
      if (known && known.token !== page.token) this.#drop(known)
      const current = this.#current ?? this.#begin(page)
      const left = until - performance.now()
      if (current.isTaken) {
        if (await settlesWithin(current.over.promise, left)) continue
        // Its client may have lost the connection without a sign of it.
        if (performance.now() - current.readAt > SILENT_MS) this.#drop(current)
        return undefined
      }
      if (!(await settlesWithin(current.answer.then(nothing), left))) return undefined
      if (current.isTaken || this.#current !== current) continue
      current.isTaken = true
      return this.#given(current, await current.answer, onRead)
    }
  }

  /**
   * Fetches a page before the client asks for it. The caller has the page before.
   * @param isTaken whether the caller takes the answer. Otherwise it is left for the client, like an answer that does not
   * come within the time, or fails
   */
  async takeAhead(
    page: Page,
    waitMs: number,
    isTaken: (answer: RemoteAnswer) => boolean,
  ): Promise<RemoteAnswer | undefined> {
    this.#ahead = page.token
    if (this.#current) this.#drop(this.#current)
    const current = this.#begin(page)
    try {
      if (!(await settlesWithin(current.answer.then(nothing), waitMs))) return undefined
    } catch {
      return undefined
    }
    const answer = await current.answer
    if (current.isTaken || this.#current !== current || !isTaken(answer)) return undefined
    current.isTaken = true
    return this.#given(current, answer, undefined)
  }

  #begin(page: Page): Fetched {
    const { fetch, signal } = this.#deps
    const abort = new AbortController()
    const onAbort = (): void => abort.abort(signal?.reason)
    if (signal?.aborted) onAbort()
    signal?.addEventListener('abort', onAbort)
    const over = deferred()
    const answer = fetch(page, abort.signal)
    const left = setTimeout(() => this.#drop(current), LEFT_MS)
    left.unref()
    const { token } = page
    const current: Fetched = { token, answer, over, abort, isTaken: false, readAt: performance.now(), left }
    this.#current = current
    // Reported to the calls that wait for it. A later call fetches again: the cluster may be back by then.
    answer.catch(() => this.#close(current))
    void over.promise.then(() => signal?.removeEventListener('abort', onAbort))
    return current
  }

  #given(current: Fetched, answer: RemoteAnswer, onRead: (() => void) | undefined): RemoteAnswer {
    current.readAt = performance.now()
    clearTimeout(current.left)
    const close = (): void => this.#close(current)
    answer.tail.then(close, close)
    if (!answer.data) return answer
    const source = answer.data[Symbol.asyncIterator]()
    const data: AsyncIterable<Buffer> = {
      [Symbol.asyncIterator]: () => ({
        next: () => {
          current.readAt = performance.now()
          onRead?.()
          return source.next()
        },
        return: async () => {
          await source.return?.()
          return { done: true, value: undefined }
        },
      }),
    }
    return { ...answer, data }
  }

  /** Ends a request or the reading of its answer. */
  #drop(current: Fetched): void {
    current.abort.abort(new AnswerNotRead(this.#deps.cluster))
    this.#close(current)
  }

  #close(current: Fetched): void {
    clearTimeout(current.left)
    if (this.#current === current) this.#current = undefined
    current.over.resolve()
    if (!this.#current) this.#deps.onIdle?.()
  }
}

function nothing(): void {}
