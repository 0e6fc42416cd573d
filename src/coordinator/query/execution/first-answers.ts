import { settlesWithin } from '../../../shared/deadline.ts'
import type { HoldBytes } from '../../clusters/relay/counted-bytes.ts'
import type { RemoteAnswer, RemoteTail, RemoteUri } from '../../clusters/relay/relay-port.ts'
import { readFirst } from '../../clusters/relay/read-first.ts'
import type { SingleFetch } from '../../clusters/relay/single-fetch.ts'

/** How long answers without rows are fetched before the client asks for them, milliseconds. */
const EMPTY_MS = 500
/** How long the answers behind the first rows are awaited, milliseconds. The client gets the rows after that. */
const BEHIND_ROWS_MS = 25

export interface FirstAnswersDeps {
  readonly requests: Pick<SingleFetch<{ readonly token: number; readonly uri: RemoteUri }>, 'takeAhead'>
  /** Called with each answer that was fetched, and with the members behind its rows. */
  readonly onAnswer: (answer: RemoteAnswer, tail: RemoteTail) => void
  readonly hold: HoldBytes
}

/** An answer with rows, and the page that follows it. */
interface HeldAnswer {
  readonly answer: RemoteAnswer
  readonly rows: Buffer
  readonly tail: RemoteTail
  next: RemoteUri
}

/**
 * The first answers of a read, fetched before the client asks for them. A short statement has several answers without
 * rows, and each request of a client takes time.
 *
 *     queued ─► queued ─► executing ─► rows ─► no rows ─► no rows ─► last
 *     └──── never sent ───────────┘    held    └─ never sent ──┘    the client's second request
 *
 * The cluster forgets an answer when the next one is requested. If this process is killed meanwhile, the client has none
 * of them, so the read runs again.
 */
export class FirstAnswers {
  readonly #deps: FirstAnswersDeps
  readonly #done: Promise<void>
  #uri: RemoteUri
  #held: HeldAnswer | undefined
  #release = (): void => {}

  constructor(deps: FirstAnswersDeps, firstUri: RemoteUri) {
    this.#deps = deps
    this.#uri = firstUri
    this.#done = this.#fetchAll()
    // Reported to the client's request.
    this.#done.catch(() => {})
  }

  /** The page that the client's first request gets, unless it gets the held rows. */
  get uri(): RemoteUri {
    return this.#uri
  }

  /** The first rows, if they are held. */
  get held(): Readonly<HeldAnswer> | undefined {
    return this.#held
  }

  /** Whether the answers are there within the time. After that, `uri` and `held` stay. */
  areThere(waitMs: number): Promise<boolean> {
    return settlesWithin(this.#done, waitMs)
  }

  /** Frees the rows: the client has them. */
  forget(): void {
    this.#held = undefined
    this.#release()
  }

  async #fetchAll(): Promise<void> {
    const until = performance.now() + EMPTY_MS
    for (;;) {
      const { answer, next } = await this.#take(0, this.#uri, until, isSmall)
      if (!answer) return
      const read = await readFirst(answer, Infinity)
      if (read.kind === 'larger') throw new Error('rows without a limit are whole')
      const { rows, tail } = read
      if (rows) return this.#holdRows({ answer, rows, tail, next })
      this.#deps.onAnswer(answer, tail)
      this.#uri = next
    }
  }

  /** Holds the first rows, and fetches what is behind them. */
  async #holdRows(held: HeldAnswer): Promise<void> {
    try {
      this.#release = this.#deps.hold(held.rows.length)
    } catch {
      // The cluster still has these rows.
      return
    }
    this.#held = held
    this.#deps.onAnswer(held.answer, held.tail)
    const until = performance.now() + BEHIND_ROWS_MS
    for (;;) {
      const { answer, next } = await this.#take(1, held.next, until, (one) => isSmall(one) && !one.data)
      if (!answer) return
      this.#deps.onAnswer(answer, await answer.tail)
      held.next = next
    }
  }

  /** Fetches an answer. If it is not accepted, or comes late or not at all, it is left for the client. */
  async #take(
    token: number,
    uri: RemoteUri,
    until: number,
    accepts: (answer: RemoteAnswer) => boolean,
  ): Promise<
    | { readonly answer: RemoteAnswer; readonly next: RemoteUri }
    | { readonly answer: undefined; readonly next?: undefined }
  > {
    const answer = await this.#deps.requests.takeAhead({ token, uri }, until - performance.now(), accepts)
    const next = answer?.head.nextUri
    return answer && next !== undefined ? { answer, next } : { answer: undefined }
  }
}

/** Whether another answer follows, and this one has no rows or few, and changes nothing of the client's session. */
function isSmall({ head, headers, data, isWhole }: RemoteAnswer): boolean {
  return head.nextUri !== undefined && headers.length === 0 && (!data || isWhole)
}
