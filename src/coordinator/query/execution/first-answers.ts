import { settlesWithin } from '../../../shared/deadline.ts'
import { deferred } from '../../../shared/deferred.ts'
import type { RemoteAnswer, RemoteTail, RemoteUri } from '../../clusters/relay/relay-port.ts'
import type { SingleFetch } from '../../clusters/relay/single-fetch.ts'

/** How long answers without rows are fetched before the client asks for them, milliseconds. */
const EMPTY_MS = 500
/**
 * If the next answer takes longer than this, milliseconds, the client gets the held answer: it needs about this time to
 * send its second request, which then waits for the next answer.
 */
const NEXT_MS = 2

export interface FirstAnswersDeps {
  readonly requests: Pick<SingleFetch<{ readonly token: number; readonly uri: RemoteUri }>, 'takeAhead'>
  /** Called with each answer that was fetched, and with the members behind its rows. */
  readonly onAnswer: (answer: RemoteAnswer, tail: RemoteTail) => void
}

/** The answer to the client's first request, which has no rows, and the address for the second request. */
export interface HeldAnswer {
  readonly answer: RemoteAnswer
  readonly next: RemoteUri
}

/**
 * The first answers of a read, fetched before the client asks for them. A short statement has several answers without
 * rows, and each request of a client takes time.
 *
 *     queued ─► queued ─► executing ─► rows
 *     └─ never sent ─┘    held         left for the client's second request
 *
 * Once the statement is executing, an answer that does not come soon is left for the client too.
 *
 * The cluster forgets an answer when the next one is requested. If this process is killed meanwhile, the client has no
 * rows, so the read runs again. Rows are never held: a client that has them could repeat its first request after a
 * restart, and would get them twice.
 */
export class FirstAnswers {
  readonly #deps: FirstAnswersDeps
  readonly #done: Promise<void>
  /** Resolves when the statement is executing, and its next answer does not come soon. */
  readonly #isSlow = deferred()
  #slow: NodeJS.Timeout | undefined
  #held: HeldAnswer | undefined
  /** Whether all further answers are left for the client. */
  #isOver = false

  constructor(deps: FirstAnswersDeps, firstUri: RemoteUri) {
    this.#deps = deps
    this.#done = this.#fetch(firstUri)
    // `areThere` reports the error to the client's request.
    this.#done.catch(() => {})
  }

  /** The answer to the client's first request; undefined if the client must fetch it. */
  get held(): HeldAnswer | undefined {
    return this.#held
  }

  /**
   * Waits until the first answers have been fetched.
   * @returns whether they were fetched within the time; `held` does not change after that
   */
  async areThere(waitMs: number): Promise<boolean> {
    const areThere = await settlesWithin(Promise.race([this.#done, this.#isSlow.promise]), waitMs)
    if (areThere) this.#isOver = true
    return areThere
  }

  async #fetch(firstUri: RemoteUri): Promise<void> {
    const until = performance.now() + EMPTY_MS
    for (let uri = firstUri; ;) {
      const page = { token: this.#held ? 1 : 0, uri }
      // An answer that is not accepted, or comes late or not at all, is left for the client.
      const answer = await this.#deps.requests.takeAhead(page, until - performance.now(), this.#hold)
      clearTimeout(this.#slow)
      if (!answer || !this.#held) return
      this.#deps.onAnswer(answer, await answer.tail)
      if (!isQueued(uri)) this.#slow = setTimeout(this.#isSlow.resolve, NEXT_MS)
      uri = this.#held.next
    }
  }

  /** Holds an answer if another one follows, and this one has no rows and changes nothing of the client's session. */
  readonly #hold = (answer: RemoteAnswer): boolean => {
    const { head, headers, data } = answer
    if (this.#isOver || head.nextUri === undefined || headers.length > 0 || data) return false
    this.#held = { answer, next: head.nextUri }
    return true
  }
}

/** Whether a page of a Trino belongs to a query that waits or is planned: it never has rows. */
export function isQueued(uri: RemoteUri): boolean {
  return uri.includes('/queued/')
}
