import { settlesWithin } from '../../../shared/deadline.ts'
import type { RemoteAnswer, RemoteTail, RemoteUri } from '../../clusters/relay/relay-port.ts'
import type { SingleFetch } from '../../clusters/relay/single-fetch.ts'

/** How long answers without rows are fetched before the client asks for them, milliseconds. */
const EMPTY_MS = 500

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
 * The cluster forgets an answer when the next one is requested. If this process is killed meanwhile, the client has no
 * rows, so the read runs again. Rows are never held: a client that has them could repeat its first request after a
 * restart, and would get them twice.
 */
export class FirstAnswers {
  readonly #deps: FirstAnswersDeps
  readonly #done: Promise<void>
  #held: HeldAnswer | undefined

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
  areThere(waitMs: number): Promise<boolean> {
    return settlesWithin(this.#done, waitMs)
  }

  async #fetch(firstUri: RemoteUri): Promise<void> {
    const until = performance.now() + EMPTY_MS
    for (let uri = firstUri; ;) {
      const page = { token: this.#held ? 1 : 0, uri }
      // An answer that is not accepted, or comes late or not at all, is left for the client.
      const answer = await this.#deps.requests.takeAhead(page, until - performance.now(), isEmpty)
      const next = answer?.head.nextUri
      if (!answer || next === undefined) return
      const tail = await answer.tail
      this.#held = { answer, next }
      this.#deps.onAnswer(answer, tail)
      uri = next
    }
  }
}

/** Whether another answer follows, and this one has no rows and changes nothing of the client's session. */
function isEmpty({ head, headers, data }: RemoteAnswer): boolean {
  return head.nextUri !== undefined && headers.length === 0 && !data
}
